"""windIO files whose wind varies over the site and with height: the same numbers there and back."""

import importlib.util

import numpy as np
import pytest
import xarray
import yaml

import field_cases as cases
from field_cases import CASES, WEIBULL
from leeward.campaign import load
from leeward.campaign.plants import plant_farm
from leeward.errors import InputError
from leeward.export import windio
from leeward.export.plant import Plant
from leeward.layout import Area
from leeward.readers.windio_plant import read_plant
from leeward.wind import Neighbours, Shear, Site, Turbine, WindFarm
from run_cases import leeward_here
from test_wind_files import package

if importlib.util.find_spec("windIO") is None:
    pytest.skip("windIO is not installed", allow_module_level=True)

DIRECTIONS = np.arange(0.0, 360.0, 15.0)
SPEEDS = np.arange(4.0, 17.0, 2.0)
NAMES = {
    **{
        "Sector_frequency": "sector_probability",
        "Weibull_A": "weibull_a",
        "Weibull_k": "weibull_k",
        "P": "probability",
    },
    **{"TI": "turbulence_intensity", "h": "height", "wd": "wind_direction"},
    **{"ws": "wind_speed", "WS": "wind_speed"},
}


def saved(path, site, crs=""):
    """Write the plant of a farm with neighbours in some wind; return the farm and the positions of its turbines."""
    x, y = cases.layout(6, 5)
    types = Turbine.generic(15, 240, 150), Turbine.generic(3, 110, 90)
    farm = WindFarm(site, types[0], "nygaard_2022", neighbours=Neighbours(x[4:], y[4:], types[1]))
    west, south, east, north = cases.X[0], cases.Y[0], cases.X[-1], cases.Y[-1]
    area = Area.from_arrays([west, east, east, west], [south, south, north, north])
    plant = Plant(farm, x[:4], y[:4], "", "grid", "west", crs, "", 0.0, 60.0, area, 700.0)
    path.write_text(yaml.safe_dump(windio.windio_plant(plant)))
    return farm, x[:4], y[:4]


def resource(path, dataset, **changes):
    """Write a dataset as a windIO energy resource."""
    data = {NAMES.get(name, name): dataset[name].values.tolist() for name in dataset.coords}
    for name, variable in dataset.data_vars.items():
        dims = [NAMES.get(dim, dim) for dim in variable.dims]
        data[NAMES.get(name, name)] = {"data": variable.values.tolist(), "dims": dims}
    data = {name: value for name, value in {**data, **changes}.items() if value is not None}
    path.write_text(yaml.safe_dump({"name": "own", "wind_resource": data}))
    return path


# --- there and back ---

POSSIBLE = ["weibull", "weibull uneven", "turbulence", "table", "series", "power shear"]
SITES = {name: CASES[name].site(DIRECTIONS, SPEEDS) for name in POSSIBLE} | {
    "every degree": Site.from_dataset(cases.WEIBULL_FIELD),
    "shear of one level": Site.from_dataset(
        cases.weibull_field(heights=np.array([100.0])), shear=Shear.power(0.1, 100.0)
    ),
    "shear of a table": Site.from_table([0, 90, 180], [6, 9], np.full((3, 2), 1 / 6), kind="exact").with_shear(
        Shear.power(0.1, 100.0)
    ),
    "a reference series": Site.from_dataset(
        cases.with_turbulence(cases.series_with_speed_up().drop_vars("Speedup")).isel(wd=0, drop=True)
    ),
}


QUICK = ("every degree", "series", "shear of a table")


@pytest.mark.parametrize(
    "name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in SITES]
)
def test_a_plant_keeps_its_wind(name, tmp_path):
    farm, x, y = saved(tmp_path / "plant.yaml", SITES[name])
    found = plant_farm(read_plant(tmp_path / "plant.yaml"))  # windIO's schema accepts it
    assert found.site.field is not None
    assert found.aep_gwh(x, y) == pytest.approx(farm.aep_gwh(x, y), rel=1e-12)
    campaign = load(tmp_path / "plant.yaml")
    assert campaign.problem(0, 0).farm.aep_gwh(x, y) == pytest.approx(farm.aep_gwh(x, y), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("speed-up", "cannot hold all of its wind: speed-ups; export arrays"),
        ("weibull linear", "linear interpolation between sectors"),
        ("local bins with shear", "speed-ups, bins of local speeds, shear other than one exponent"),
        ("turbulence at 15 m/s", "a turbulence intensity that depends on the speed"),
        ("density", "air densities"),
        ("elevated", "elevated distances"),
        ("logarithmic shear", "shear other than one exponent"),
        ("power shear by sector", "shear other than one exponent"),
        ("series with speed-up", "speed-ups, a turbulence intensity by sector in a time series"),
    ],
)
def test_wind_that_windio_cannot_hold(name, says, tmp_path):
    dataset = CASES[name].dataset
    case = CASES[name]
    if name == "series with speed-up":
        case = case.replaced(dataset.assign(TI=("wd", np.linspace(0.05, 0.1, cases.SECTORS))))
    with pytest.raises(InputError, match=says):
        saved(tmp_path / "plant.yaml", case.site(DIRECTIONS, SPEEDS))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("low", "high"), [(0.0, 2.0), (0.5, 0.5)])
def test_weights_of_steps(low, high, tmp_path):
    """Other than the share of the time that a step has."""
    weight = ("time", np.linspace(low, high, cases.STEPS) / cases.STEPS)
    site = Site.from_dataset(cases.series_field().assign(weight=weight))
    with pytest.raises(InputError, match="cannot hold all of its wind: weights of time steps"):
        saved(tmp_path / "plant.yaml", site)


def test_turbines_outside_the_grid(tmp_path):
    site = Site.from_dataset(cases.WEIBULL_FIELD.isel(x=slice(1, 4)), extrapolate=True)
    with pytest.raises(InputError, match="cannot hold all of its wind: turbines outside the grid"):
        saved(tmp_path / "plant.yaml", site)


@pytest.mark.slow
def test_the_commands_take_such_a_plant(tmp_path):
    farm, x, y = saved(tmp_path / "plant.yaml", SITES["weibull"])
    done = leeward_here("aep", "plant.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{farm.aep_gwh(x, y):.9g}"[:9] in done.stdout
    done = leeward_here("run", "plant.yaml", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Weibull distributions on a grid of 5 × 4 points × 2 heights" in done.stdout + done.stderr


def test_the_coordinate_system_of_a_plant(tmp_path):
    saved(tmp_path / "plant.yaml", SITES["weibull"], crs="EPSG:25832")
    assert plant_farm(read_plant(tmp_path / "plant.yaml")).site.crs == "EPSG:25832"
    assert not [remark for remark in load(tmp_path / "plant.yaml").remarks if "coordinate" in remark]


# --- energy resources ---


@pytest.mark.parametrize("form", ["yaml", "nc"])
@pytest.mark.parametrize("name", ["weibull", "table", "series"])
def test_an_energy_resource_on_a_grid(name, form, tmp_path):
    """Values in the file itself, and in a NetCDF file that it includes."""
    dataset = CASES[name].dataset
    path = tmp_path / "wind.yaml"
    if form == "yaml":
        dataset = dataset.rename(wd="WD") if name == "series" else dataset
        resource(path, dataset.rename(WD="wind_direction") if name == "series" else dataset)
    else:
        known = {old: new for old, new in NAMES.items() if old in dataset.variables}
        dataset.rename(known).to_netcdf(tmp_path / "wind.nc", engine="h5netcdf")
        path.write_text("name: own\nwind_resource: !include wind.nc\n")
    x, y = cases.layout(6, 5)
    turbine = Turbine.generic(10, 195, 121)
    expected = WindFarm(Site.from_dataset(CASES[name].dataset), turbine).aep_gwh(x, y)
    assert WindFarm(Site.from_file(path), turbine).aep_gwh(x, y) == pytest.approx(expected, rel=1e-12)


def test_probabilities_within_sectors_on_a_grid(tmp_path):
    """The share of each speed in its sector, times the frequency of the sector."""
    table = cases.table_field()
    sectors = table["P"].sum("ws")
    within = table.assign(P=table["P"] / sectors, Sector_frequency=sectors)
    found = Site.from_file(resource(tmp_path / "wind.yaml", within)).to_dataset()
    np.testing.assert_allclose(found["P"].transpose(*table["P"].dims), table["P"], rtol=1e-12)


def test_shear_in_an_energy_resource(tmp_path):
    resource(tmp_path / "wind.yaml", WEIBULL, shear={"alpha": 0.2, "h_ref": 80.0})
    site = Site.from_file(tmp_path / "wind.yaml")
    same = Site.from_dataset(WEIBULL).with_shear(Shear.power(0.2, 80.0))
    x, y = cases.layout(6, 5)
    for hub_height_m in (80.0, 150.0):
        turbine = Turbine.generic(4, 130, hub_height_m)
        assert WindFarm(site, turbine).aep_gwh(x, y) == pytest.approx(WindFarm(same, turbine).aep_gwh(x, y), rel=1e-12)
    own = Site.from_file(tmp_path / "wind.yaml", shear=Shear.power(0.0, 80.0))  # instead of that of the file
    assert own.field.data.shear.values == (0.0,)


def test_the_reference_height_of_a_grid(tmp_path):
    at_one = {name: CASES["weibull"].dataset.isel(h=0, drop=True)[name] for name in CASES["weibull"].dataset.data_vars}
    resource(tmp_path / "wind.yaml", xarray.Dataset(at_one), reference_height=50.0)
    data = yaml.safe_load((tmp_path / "wind.yaml").read_text())["wind_resource"]
    saved(tmp_path / "plant.yaml", SITES["weibull"])
    plant = yaml.safe_load((tmp_path / "plant.yaml").read_text())
    plant["site"]["energy_resource"]["wind_resource"] = data
    (tmp_path / "plant.yaml").write_text(yaml.safe_dump(plant))
    remarks = read_plant(tmp_path / "plant.yaml").remarks
    assert "wind: the wind at 50 m is used at hub height, 90, 150 m" in remarks
    resource(tmp_path / "wind.yaml", xarray.Dataset(at_one), reference_height=50.0, shear={"alpha": 0.1, "h_ref": 80.0})
    with pytest.raises(InputError, match="shear has h_ref 80, but reference_height is"):
        Site.from_file(tmp_path / "wind.yaml")


def test_options_of_a_resource_on_a_grid(tmp_path):
    path = resource(tmp_path / "wind.yaml", cases.WEIBULL_FIELD, turbulence_intensity=None)
    assert "no turbulence intensity is given: 0.1 is used" in Site.from_file(path).notes
    site = Site.from_file(path, directions=[0, 180], speeds=[6, 9], turbulence_intensity=0.07, extrapolate=True)
    assert site.conditions.weight.shape == (2, 2)
    assert site.notes == ()
    assert site.field.data.extrapolate
    assert site.field.data.values["turbulence"].item() == 0.07


def test_gaps_of_a_grid(tmp_path):
    """A missing value is an error in an area, not elsewhere."""
    gap = cases.WEIBULL_FIELD["Weibull_A"].copy()
    gap[0, 0] = np.nan
    site = Site.from_file(resource(tmp_path / "wind.yaml", cases.WEIBULL_FIELD.assign(Weibull_A=gap)))
    farm = WindFarm(site, Turbine.generic(10, 195, 121))
    farm.aep_gwh(cases.X[2:4], cases.Y[2:4])
    with pytest.raises(InputError, match=r"wind.yaml has no weibull_a \(NaN\)"):
        farm.aep_gwh([cases.X[0] + 100.0], [cases.Y[0] + 100.0])


DIRECTION_BY_HEIGHT = {"data": [[270.0, 280.0]] * 3, "dims": ["time", "height"]}
PROFILE = {
    "time": ["2020-01-01", "2020-01-02", "2020-01-03"],
    "height": [80.0, 160.0],
    "wind_speed": {"data": [[9.0, 10.0], [8.0, 8.5], [11.0, 12.0]], "dims": ["time", "height"]},
    "wind_direction": {"data": [270.0, 280.0, 10.0], "dims": ["time"]},
    "turbulence_intensity": {"data": 0.07, "dims": []},
}


def test_a_profile_over_time(tmp_path):
    site = Site.from_file(resource(tmp_path / "wind.yaml", xarray.Dataset(), **PROFILE))
    farm = WindFarm(site, Turbine.generic(10, 195, 120.0))
    at_hub = Site.from_time_series([270.0, 280.0, 10.0], [9.5, 8.25, 11.5], 0.07)
    x, y = cases.layout(6, 5)
    expected = WindFarm(at_hub, Turbine.generic(10, 195, 120.0)).aep_gwh(x, y)
    assert farm.aep_gwh(x, y) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"wind_direction": DIRECTION_BY_HEIGHT}, "depends on time, height; expected time: wakes follow one direction"),
        ({"height": None}, "wind_speed: depends on height, but the resource has no height; expected its coordinates"),
        ({"height": [80.0, 120.0, 160.0]}, "wind_speed has 2 values along height; expected 3"),
        ({"height": [160.0, 80.0]}, r"h\[1\] is 80 after 160; expected increasing"),
        ({"time": None}, "time is missing"),
        ({"shear": {"alpha": 0.1, "h_ref": 80.0}}, "shear is given beside several heights; remove one of them"),
        (
            {"turbulence_intensity": {"data": [0.1], "dims": ["stability"]}},
            "depends on stability; expected x, y",
        ),
        (
            {"wind_turbine": [0, 1, 2], "turbulence_intensity": {"data": [0.1] * 3, "dims": ["wind_turbine"]}},
            "turbulence_intensity: depends on wind_turbine; expected x, y, height, time",
        ),
    ],
)
def test_bad_resources_on_a_grid(changes, says, tmp_path):
    path = resource(tmp_path / "wind.yaml", xarray.Dataset(), **{**PROFILE, **changes})
    with pytest.raises(InputError, match=says) as error:
        Site.from_file(path)
    assert str(path) in str(error.value)


def test_the_example_of_windio_lacks_sectors():
    """Its Parque Ficticio has two of twelve sectors."""
    folder = package("windIO") / "examples" / "plant" / "plant_energy_resource"
    for name in ("GriddedResource.yaml", "GriddedResource_nc.yaml"):
        with pytest.raises(InputError, match=r"wd\[1\] is 30; expected 180: .*are sectors missing"):
            Site.from_file(folder / name)


def test_wind_by_turbine():
    folder = package("windIO") / "examples" / "plant" / "plant_energy_resource"
    with pytest.raises(InputError, match="varies with wind_turbine; expected the same wind"):
        Site.from_file(folder / "WTResource.yaml")
