"""Wind that varies over the site as a dataset and in PyWake: the same numbers there and back."""

from dataclasses import replace

import numpy as np
import pytest
import xarray

import field_cases as cases
from field_cases import CASES, SPEED_UP, WEIBULL, Case
from leeward.errors import InputError
from leeward.peers.floris import to_floris
from leeward.peers.pywake import to_pywake
from leeward.wind import Neighbours, Shear, Site, Turbine, WindFarm
from leeward.wind.field_wind import FieldWind
from test_export_plants import needs_pywake

DIRECTIONS = np.arange(0.0, 360.0, 15.0)
SPEEDS = np.arange(3.0, 26.0, 2.0)
SHEAR = Shear.power([0.1, 0.2, 0.15, 0.25], 100.0)


def site_of(name):
    return CASES[name].site(DIRECTIONS, SPEEDS)


def farm_of(site, model="nygaard_2022"):
    """Return a farm of two types beside existing turbines, and the positions of its own."""
    types = [Turbine.generic(15, 240, 150), Turbine.generic(10, 195, 121)]
    x, y = cases.layout(9, 5)
    there = Neighbours(x[6:], y[6:], [types[0], Turbine.generic(3, 110, 90), types[1]])
    return WindFarm(site, [types[i % 2] for i in range(6)], model, neighbours=there), x[:6], y[:6]


def assert_same(site, model="nygaard_2022"):
    farm, x, y = farm_of(site, model)
    case = to_pywake(farm, x, y)
    assert case.n_turbines == 6
    assert case.aep_gwh() == pytest.approx(farm.aep_gwh(x, y), rel=1e-9)
    return case


# --- PyWake ---

# those with the air density, and those with distances that PyWake lacks, are errors
POSSIBLE = [name for name, case in CASES.items() if case.distances == "straight" and "Air_density" not in case.dataset]
QUICK = ("weibull", "local bins", "turbulence at 15 m/s", "table linear", "series", "power shear on a speed-up")


@needs_pywake
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in POSSIBLE]
)
def test_pywake_has_the_same_aep(name):
    assert_same(site_of(name))


@needs_pywake
@pytest.mark.slow
@pytest.mark.parametrize("name", ["weibull", "speed-up and turbulence", "series"])
@pytest.mark.parametrize("model", ["jensen", "bastankhah_gaussian", "iea37_gaussian", "no_wake"])
def test_other_wake_models(model, name):
    assert_same(site_of(name), model)


@needs_pywake
def test_local_bins_with_turbulence_at_15_m_s():
    """As in a folder of WAsP's grids."""
    data = cases.with_local_bins(cases.with_turbulence(SPEED_UP).rename(TI="TI_15"))
    site = Case(data, "linear").site(DIRECTIONS, SPEEDS)
    assert_same(site)


@needs_pywake
def test_weights_of_the_steps():
    """A time series with shear has them. PyWake gives each step the same."""
    rng = np.random.default_rng(3)
    weight = rng.dirichlet(np.ones(40))
    series = Site.from_time_series(rng.uniform(0, 360, 40), rng.uniform(4, 16, 40), rng.uniform(0.05, 0.12, 40), weight)
    case = assert_same(series.with_shear(SHEAR))
    assert len(case.layout["time"]) == 40
    equal = Site.from_time_series(case.layout["wd"], case.layout["ws"], 0.08).with_shear(SHEAR)
    farm, x, y = farm_of(equal)
    assert case.aep_gwh() != pytest.approx(farm.aep_gwh(x, y), rel=1e-3)


@needs_pywake
@pytest.mark.parametrize("law", [SHEAR, Shear.logarithmic(0.03, 100.0)], ids=["power", "logarithmic"])
def test_shear_of_uniform_wind(law):
    values = [WEIBULL[name].values for name in ("Sector_frequency", "Weibull_A", "Weibull_k")]
    rose = Site.from_weibull(*values, 0.08, directions=DIRECTIONS, speeds=SPEEDS)
    case = assert_same(rose.with_shear(law))
    table = Site.from_table([0.0, 120.0, 240.0], [8.0, 12.0], [[0.1, 0.2], [0.1, 0.1], [0.3, 0.2]], 0.07, kind="exact")
    assert_same(table.with_shear(law))
    assert set(case.layout) == {"x", "y", "type", "wd", "ws"}


@needs_pywake
@pytest.mark.parametrize("name", ["speed-up", "speed-up and turbulence"])
def test_extrapolation(name):
    site = CASES[name].site(DIRECTIONS, SPEEDS, extrapolate=True)
    farm, x, y = farm_of(site)
    x, y = x + 2500.0, y - 1500.0
    assert not site.field.data.x[-1] > x.max()
    assert to_pywake(farm, x, y).aep_gwh() == pytest.approx(farm.aep_gwh(x, y), rel=1e-9)


@needs_pywake
def test_elevation_on_an_uneven_grid():
    """PyWake has no use for it in straight distances, and needs equal steps."""
    dataset = cases.with_elevation(cases.weibull_field(cases.UNEVEN_X, cases.UNEVEN_Y), cases.UNEVEN_X, cases.UNEVEN_Y)
    assert_same(Case(dataset).site(DIRECTIONS, SPEEDS))


@needs_pywake
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("density", "PyWake takes the air density as an argument of each call; leave it out of the site"),
        ("density by sector", "PyWake takes the air density"),
        ("elevated", "distances are 'elevated', which PyWake computes in another way; expected 'straight'"),
        ("everything", "distances are 'elevated'"),
        ("terrain following", "distances are 'terrain_following', which PyWake computes in another way"),
    ],
)
def test_what_pywake_lacks(name, says):
    farm, x, y = farm_of(site_of(name))
    with pytest.raises(InputError, match=says):
        to_pywake(farm, x, y)


@pytest.mark.parametrize("name", ["weibull", "series", "power shear"])
def test_floris_has_one_wind_rose(name):
    farm, x, y = farm_of(site_of(name))
    farm = WindFarm(farm.site, farm.turbine[0], "jensen")
    with pytest.raises(InputError, match=r"which the wind rose of FLORIS cannot express.*\.npz.*to_pywake"):
        to_floris(farm, x, y)


# --- datasets ---


def numbers(site):
    """Return the settings of a site without the name of its file."""
    return {**site.settings()["field"], "source": None}


def options_of(site):
    """Return what a dataset does not hold."""
    data = site.field.data
    found = {"interpolation": data.interpolation, "shear": data.shear, "distances": data.distances}
    if data.kind != "series":
        found["directions"] = data.directions
    return found | {"extrapolate": data.extrapolate}


@pytest.mark.parametrize("name", [name for name in CASES if name != "table with shear"])  # it has weights
def test_a_dataset_gives_the_same_site(name):
    """To the last bit."""
    site = site_of(name)
    again = Site.from_dataset(site.to_dataset(), **options_of(site))
    assert numbers(again) == numbers(site)


@pytest.mark.parametrize(
    "name", ["everything", "turbulence at 15 m/s", "table linear", "series", "series with speed-up"]
)
def test_a_dataset_in_a_file_gives_the_same_site(name, tmp_path):
    site = site_of(name)
    site.to_dataset().to_netcdf(tmp_path / "site.nc", engine="h5netcdf")
    again = Site.from_file(tmp_path / "site.nc", **options_of(site))
    assert numbers(again) == numbers(site)


def test_the_coordinate_system_is_in_the_dataset():
    site = Site.from_dataset(CASES["weibull"].dataset, crs="EPSG:25832")
    assert site.to_dataset().attrs["crs"] == "EPSG:25832"
    assert Site.from_dataset(site.to_dataset()).crs == "EPSG:25832"


def test_the_density_is_in_kg_m3():
    site = site_of("density by sector")
    given, found = CASES["density by sector"].dataset["Air_density"], site.to_dataset()["Air_density"]
    xarray.testing.assert_allclose(found.transpose(*given.dims), given, rtol=1e-15)


def test_uniform_wind_has_no_dataset(site):
    with pytest.raises(InputError, match=r"the same everywhere; its numbers are in settings\(\)"):
        site.to_dataset()


def test_missing_values_stay_missing():
    data = CASES["weibull"].dataset.copy(deep=True)
    data["Weibull_A"].values[0, 0] = np.nan
    site = Site.from_dataset(data, directions=DIRECTIONS, speeds=SPEEDS)
    again = Site.from_dataset(site.to_dataset(), **options_of(site))
    assert numbers(again) == numbers(site)


def test_weights_of_the_steps_are_in_a_dataset():
    series = Site.from_time_series([0.0, 90.0], [8.0, 9.0], 0.08, [0.2, 0.8]).with_shear(SHEAR)
    again = Site.from_dataset(series.to_dataset(), shear=SHEAR)
    assert series.field.data.weight.tolist() == [0.2, 0.8]
    assert again.conditions.weight.ravel().tolist() == [0.2, 0.8]


def test_a_series_of_one_step_is_in_a_dataset():
    one = Site.from_dataset(cases.series_field().isel(time=[3]))
    assert numbers(Site.from_dataset(one.to_dataset())) == numbers(one)


@needs_pywake
@pytest.mark.slow
@pytest.mark.parametrize("name", ["weibull linear", "local bins", "table", "speed-up on a field"])
def test_a_site_of_pywake_made_of_ours_gives_ours(name):
    site = site_of(name)
    farm, x, y = farm_of(site)
    theirs = to_pywake(farm, x, y).model.site
    speeds = {} if CASES[name].is_table else {"speeds": SPEEDS}
    again = Site.from_pywake(theirs, directions=DIRECTIONS, **speeds)
    assert numbers(again) == numbers(site)


def test_another_turbulence_intensity(turbine):
    x, y = cases.layout(5, 6)
    for name in ("turbulence at 15 m/s", "series", "everything"):
        site = site_of(name)
        expected = CASES[name].site(DIRECTIONS, SPEEDS, turbulence_intensity=0.11)
        assert numbers(site.with_turbulence(0.11)) == numbers(expected)
        aep = WindFarm(site.with_turbulence(0.11), turbine).aep_gwh(x, y)
        assert aep == WindFarm(expected, turbine).aep_gwh(x, y) != WindFarm(site, turbine).aep_gwh(x, y)


def test_a_field_on_few_directions_is_part_of_another(turbine):
    """`directions` chooses conditions; the values of the grid do not change."""
    data = site_of("weibull").field.data
    few = Site(FieldWind(replace(data, directions=np.array([0.0, 90.0, 180.0, 270.0]))))
    assert few.field.data.values["weibull_a"].tobytes() == data.values["weibull_a"].tobytes()
    assert few.conditions.weight.shape == (4, len(SPEEDS))
