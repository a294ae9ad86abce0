"""Wind that varies over a site: PyWake's AEP to 1e-9, and its effective wind speeds to 1e-8."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import xarray

import field_cases as cases
from conftest import default_first
from field_cases import BINS, CASES, SPEED_UP, WEIBULL, Case
from leeward.errors import InputError
from leeward.wind import Neighbours, Site, Turbine, WindFarm
from leeward.wind.wake_models import wake_model
from references import model_name as names
from test_against_pywake import MODELS

DIRECTIONS = np.arange(0.0, 360.0, 7.5)
SPEEDS = np.arange(3.0, 26.0)
COUNT = 12  # turbines
EXISTING = 4  # of them are neighbours
HARDEST = ("everything", "table", "power shear on a speed-up", "series with linear speed-up")

MAPPED = (
    "weibull",
    "speed-up and turbulence",
    "table",
    "elevated with speed-up",
    "terrain following with speed-up",
    "power shear on a speed-up",
)


def conditions_of(case):
    """Return the conditions as arguments of PyWake's simulation."""
    if case.is_series:
        direction, speed = cases.steps()
        return {"wd": direction, "ws": speed, "time": True}
    return {"wd": DIRECTIONS, "ws": BINS if case.is_table else SPEEDS}


def site_of(case):
    return case.site(DIRECTIONS, SPEEDS)


def density_at(case, x, y):
    """Return the air density at places, linear in all axes, as an argument of PyWake's simulation."""
    if "Air_density" not in case.dataset:
        return {}
    density = case.dataset["Air_density"]
    at = {name: xarray.DataArray(values, dims="i") for name, values in (("x", x), ("y", y))}
    if "wd" in density.dims:
        density = density.pad(wd=(0, 1), mode="wrap").assign_coords(wd=np.r_[cases.CENTRES, 360.0])
        at["wd"] = xarray.DataArray(DIRECTIONS, dims="wd")
    return {"Air_density": density.interp(at).values}


def assert_same(pywake, case, farm, turbines, x, y, kinds):
    """Compare a farm with that of the turbines at x, y, of which the last ones are its neighbours."""
    own = len(x) - (0 if farm.neighbours is None else len(farm.neighbours.x))

    def compute():
        import pywake_peer as peer

        given = conditions_of(case)
        there = peer.peer_farm(farm.wake_model, peer.peer_field(case), turbines)
        result = there(x, y, type=kinds, **given, **density_at(case, x, y))
        shape = (len(x), len(given["wd"]), 1 if case.is_series else len(given["ws"]))
        aep = float(result.aep().ilk()[:own].sum())
        return {"aep": aep, "speed": np.broadcast_to(result.WS_eff.ilk(), shape)[:own]}

    theirs = pywake.numbers(compute)
    theirs.assert_close("aep", farm.aep_gwh(x[:own], y[:own]), rtol=1e-9)
    ours = farm.simulate(x[:own], y[:own], per_condition=True)
    theirs.assert_close("aep", ours.total_aep_gwh, rtol=1e-9)
    theirs.assert_close("speed", ours.condition_speed_m_s, atol=1e-8)


def mixed_farm(case, model, turbines, seed):
    """Return a farm of several types beside existing turbines, and the positions and types of all of them."""
    x, y = cases.layout(COUNT, seed)
    kinds = np.random.default_rng(seed).integers(0, len(turbines), COUNT)
    each, own = [turbines[k] for k in kinds], COUNT - EXISTING
    there = Neighbours(x[own:], y[own:], each[own:])
    return WindFarm(site_of(case), each[:own], model, neighbours=there), x, y, kinds


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_field(name, turbine, pywake):
    x, y = cases.layout(COUNT, seed=1)
    farm = WindFarm(site_of(CASES[name]), turbine)
    assert_same(pywake, CASES[name], farm, [turbine], x, y, np.zeros(COUNT, int))


def test_sectors_without_wind(turbine, pywake):
    """Their scale and shape may be 0, as in files of WAsP. Between such a point and others they are interpolated."""
    data = cases.weibull_field()
    for name in ("Sector_frequency", "Weibull_A", "Weibull_k"):
        data[name].values[1:3, 1, :, 3] = 0.0
    data["Sector_frequency"] /= data["Sector_frequency"].sum("wd")
    x, y = cases.layout(COUNT, seed=1)
    x[0], y[0] = cases.X[1] + 700.0, cases.Y[1]  # between two of these points
    farm = WindFarm(site_of(Case(data)), turbine)
    assert_same(pywake, Case(data), farm, [turbine], x, y, np.zeros(COUNT, int))
    assert np.isfinite(farm.aep_gradient(x, y)[1:]).all()
    assert WindFarm(Site.from_settings(farm.site.settings()), turbine).aep_gwh(x, y) == farm.aep_gwh(x, y)


@pytest.mark.parametrize("name", CASES)
def test_mixed_types_beside_existing_turbines(name, turbines, pywake):
    farm, x, y, kinds = mixed_farm(CASES[name], "nygaard_2022", turbines, seed=2)
    assert_same(pywake, CASES[name], farm, turbines, x, y, kinds)


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_every_wake_model(model, turbines, pywake):
    case = CASES["speed-up and turbulence"]
    farm, x, y, kinds = mixed_farm(case, model, turbines, seed=3)
    assert_same(pywake, case, farm, turbines, x, y, kinds)


@pytest.mark.slow
@pytest.mark.parametrize("name", HARDEST)
@pytest.mark.parametrize("model", MODELS[1:], ids=names)
def test_every_wake_model_in_other_fields(model, name, turbines, pywake):
    farm, x, y, kinds = mixed_farm(CASES[name], model, turbines, seed=4)
    assert_same(pywake, CASES[name], farm, turbines, x, y, kinds)


def test_local_bins_if_only_the_height_changes_the_wind(turbines, pywake):
    case = Case(cases.with_local_bins(WEIBULL), sector_shear=("power", cases.ALPHA))
    assert any("shear hardly changes the yield here" in note for note in case.site().notes)
    farm, x, y, kinds = mixed_farm(case, "nygaard_2022", turbines, seed=5)
    assert_same(pywake, case, farm, turbines, x, y, kinds)


def test_default_bins(turbine, pywake):
    case, (x, y) = CASES["weibull linear"], cases.layout(COUNT, seed=5)
    farm = WindFarm(case.site(), turbine)

    def compute():
        import pywake_peer as peer

        return {"aep": peer.peer_farm(farm.wake_model, peer.peer_field(case), [turbine]).aep(x, y)}

    pywake.numbers(compute).assert_close("aep", farm.aep_gwh(x, y), rtol=1e-9)


# --- distances on hills ---


@pytest.mark.parametrize("name", ["jensen", "bastankhah_gaussian"])
def test_steep_hills(name, turbine, pywake):
    """Turbines may stand above the tops of others."""
    case = Case(cases.with_elevation(SPEED_UP, high=600.0), distances="elevated")
    x, y = cases.layout(COUNT, seed=6)
    farm = WindFarm(site_of(case), turbine, name)
    assert_same(pywake, case, farm, [turbine], x, y, np.zeros(COUNT, int))


def test_elevation_counts_only_if_asked(turbine):
    x, y = cases.layout(COUNT, seed=1)
    straight = WindFarm(site_of(Case(cases.HILLS)), turbine).aep_gwh(x, y)
    assert straight == WindFarm(site_of(CASES["speed-up and turbulence"]), turbine).aep_gwh(x, y)
    assert straight != WindFarm(site_of(CASES["elevated with speed-up"]), turbine).aep_gwh(x, y)


# --- files and objects ---

RIDGE_TURBINES = [Turbine.generic(2, 80, 67), Turbine.generic(3, 110, 95)]  # between 30 m and 200 m


@pytest.fixture(scope="module")
def ridge():
    """The folder of WAsP's grids in PyWake. It holds a pickle of PyWake too."""
    package = importlib.util.find_spec("py_wake").submodule_search_locations[0]
    return Path(package) / "examples" / "data" / "ParqueFicticio"


def ridge_layout():
    x, y = cases.layout(8, 7, np.array([262878.0, 264778.0]), np.array([6504714.0, 6506614.0]), apart_m=200.0)
    return x, y, np.arange(8) % 2


def ridge_numbers():
    from py_wake.examples.data.ParqueFicticio import ParqueFicticioSite
    from py_wake.site.distance import StraightDistance

    import pywake_peer as peer

    x, y, kinds = ridge_layout()
    site = ParqueFicticioSite(distance=StraightDistance())
    there = peer.peer_farm(wake_model("nygaard_2022"), site, RIDGE_TURBINES)
    result = there(x, y, type=kinds)
    some = there(x, y, type=kinds, wd=[7.0, 100.0, 283.0], ws=[5.0, 9.0, 12.0])
    return {"aep": float(result.aep().sum()), "speed": some.WS_eff.ilk()}


def assert_ridge(pywake, read):
    """read: a function from options to the site."""
    x, y, kinds = ridge_layout()
    each = [RIDGE_TURBINES[k] for k in kinds]
    theirs = pywake.numbers(ridge_numbers)
    theirs.assert_close("aep", WindFarm(read(), each).aep_gwh(x, y), rtol=1e-9)
    few = WindFarm(read(directions=[7.0, 100.0, 283.0], speeds=[5.0, 9.0, 12.0]), each)
    theirs.assert_close("speed", few.simulate(x, y, per_condition=True).condition_speed_m_s, atol=1e-8)


def test_a_folder_of_wasp_grids(ridge, pywake):
    assert_ridge(pywake, lambda **options: Site.from_file(ridge, interpolation="linear", **options))


@pytest.mark.slow
def test_a_site_of_wasp_grids(pywake):
    from py_wake.examples.data.ParqueFicticio import ParqueFicticioSite

    assert_ridge(pywake, lambda **options: Site.from_pywake(ParqueFicticioSite(), **options))


def numbers_of(site):
    """Return the settings of the field of a site, without the name of its file."""
    return {name: value for name, value in site.settings()["field"].items() if name != "source"}


@pytest.mark.slow
def test_both_readers_of_wasp_grids(ridge):
    """Number for number. The wind of WAsP is linear between sectors in PyWake."""
    from py_wake.examples.data.ParqueFicticio import ParqueFicticioSite

    ours = numbers_of(Site.from_file(ridge, interpolation="linear"))
    theirs = numbers_of(Site.from_pywake(ParqueFicticioSite()))
    both = ours["values"].keys() & theirs["values"].keys()
    assert {name: ours["values"][name] for name in both} == {name: theirs["values"][name] for name in both}
    assert {**ours, "values": None} == {**theirs, "values": None}


# PyWake's sites lack the directions of time series, and the distances of leeward
OBJECTS = [name for name, case in CASES.items() if case.distances == "straight" and not case.is_series]


@pytest.mark.slow
@pytest.mark.parametrize("name", OBJECTS)
def test_sites_of_pywake(name):
    import pywake_peer as peer

    theirs = peer.peer_field(CASES[name], density=True)
    speeds = {} if CASES[name].is_table else {"speeds": SPEEDS}
    assert numbers_of(Site.from_pywake(theirs, directions=DIRECTIONS, **speeds)) == numbers_of(site_of(CASES[name]))


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_dimensions_does_not_matter(name):
    case = CASES[name]
    turned = case.replaced(case.dataset.transpose(*reversed([*case.dataset.dims])))
    assert numbers_of(site_of(turned)) == numbers_of(site_of(case))


@pytest.mark.parametrize("name", ["everything", "local bins", "table", "series"])
def test_netcdf_files(name, tmp_path):
    case = CASES[name]
    case.dataset.to_netcdf(tmp_path / "site.nc", engine="h5netcdf")
    read = Site.from_file(tmp_path / "site.nc", interpolation=case.interpolation, distances=case.distances)
    assert numbers_of(read) == numbers_of(case.site())


@pytest.mark.slow
def test_the_air_density_of_a_site_of_pywake(turbine, pywake):
    """PyWake uses it for turbines whose power scales with the density, as by default."""
    import pywake_peer as peer

    case, (x, y) = CASES["density"], cases.layout(COUNT, seed=1)
    theirs = peer.peer_field(case, density=True)

    def compute():
        there = peer.peer_farm(wake_model("nygaard_2022"), theirs, [turbine])
        return {"aep": there.aep(x, y, wd=DIRECTIONS, ws=SPEEDS)}

    farm = WindFarm(Site.from_pywake(theirs, directions=DIRECTIONS, speeds=SPEEDS), turbine)
    assert farm.aep_gwh(x, y) == pytest.approx(WindFarm(site_of(case), turbine).aep_gwh(x, y), rel=1e-12)
    pywake.numbers(compute).assert_close("aep", farm.aep_gwh(x, y), rtol=1e-9)


# --- turning of the wind ---


def turned_case():
    return Case(cases.with_turning(cases.with_turbulence(SPEED_UP)))


@pytest.mark.slow
def test_wakes_follow_the_reference_direction_where_the_wind_turns(turbine, pywake):
    from py_wake.site.distance import StraightDistance

    import pywake_peer as peer

    case, (x, y) = turned_case(), cases.layout(COUNT, seed=8)
    theirs = peer.peer_field(case, StraightDistance())
    site = Site.from_pywake(theirs, directions=DIRECTIONS, speeds=SPEEDS)
    assert any("Turning is not used" in note for note in site.notes)
    assert_same(pywake, case, WindFarm(site, turbine), [turbine], x, y, np.zeros(COUNT, int))
    with pytest.raises(InputError, match=r"its distance has wind_direction='WD_i'.*expected .*='wd'"):
        Site.from_pywake(peer.peer_field(case, StraightDistance(wind_direction="WD_i")))


def test_turning_changes_no_yield(turbine):
    x, y = cases.layout(COUNT, seed=8)
    case = turned_case()
    still = case.replaced(case.dataset.drop_vars("Turning"))
    assert WindFarm(site_of(case), turbine).aep_gwh(x, y) == WindFarm(site_of(still), turbine).aep_gwh(x, y)
    assert any("Turning is not used" in note for note in site_of(case).notes)


# --- one more turbine ---


@pytest.mark.parametrize("name", MAPPED)
@pytest.mark.parametrize("model", default_first(["nygaard_2022", "bastankhah_gaussian", "jensen"]))
def test_the_map_of_a_further_turbine(model, name, turbine, pywake):
    case, (x, y) = CASES[name], cases.layout(COUNT, seed=9)
    at_x, at_y = cases.layout(40, seed=10, apart_m=10.0)
    farm = WindFarm(site_of(case), turbine, model)

    def compute():
        from py_wake.flow_map import Points

        import pywake_peer as peer

        result = peer.peer_farm(farm.wake_model, peer.peer_field(case), [turbine])(x, y, **conditions_of(case))
        return {"aep": result.aep_map(Points(at_x, at_y, np.full(40, turbine.hub_height_m))).values}

    ours = farm.next_turbine_aep_gwh(x, y, at_x, at_y, rotor_average=False)
    pywake.numbers(compute).assert_close("aep", ours, rtol=1e-9)
