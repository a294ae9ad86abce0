"""Farms in wind that varies over a site: against uniform wind, slow twins and slow definitions."""

import json
import pickle

import numba
import numpy as np
import pytest
import xarray

import field_cases as cases
from conftest import default_first
from field_cases import BINS, CASES, HEIGHTS, WEIBULL, Case, X, Y
from leeward.errors import InputError
from leeward.wind import Neighbours, Shear, Site, Turbine, WindFarm
from leeward.wind.wake_models import BastankhahGaussian, wake_model
from naive import NaiveField, effective_speeds
from references import model_name as names
from test_gradient import assert_close, differences, smooth_turbine

NYGAARD = wake_model("nygaard_2022")
LINEAR = BastankhahGaussian(superposition="linear", reference_speed="effective", expansion=0.02)
DIRECTIONS = np.arange(0.0, 360.0, 22.5)
SPEEDS = np.array([5.0, 7.0, 9.0, 11.0, 14.0])
MAPPED = ("everything", "speed-up and turbulence", "table", "series", "terrain following with speed-up")
PART = X[1:4], Y[:3]  # small, so that wakes are strong
WEIBULL_SETTINGS = [WEIBULL[name].values for name in ("Sector_frequency", "Weibull_A", "Weibull_k")]


def site_of(name, **options):
    return CASES[name].site(DIRECTIONS, SPEEDS, **options)


# --- the same wind everywhere ---


def everywhere(dataset, **more):
    """Return a dataset with its values, and others, at each point of a grid and at two heights."""
    grid = xarray.DataArray(np.ones((len(X), len(Y), 2)), {"x": X, "y": Y, "h": HEIGHTS}, ("x", "y", "h"))
    dataset = dataset.assign(more)
    fixed = ("wd", "WD", "ws", "Elevation")
    return dataset.assign({name: dataset[name] * grid for name in dataset.data_vars if name not in fixed})


def weibull_site(**options):
    options = {"directions": DIRECTIONS, "speeds": SPEEDS, **options}
    return Site.from_weibull(*WEIBULL_SETTINGS, 0.08, **options)


def scaled_table(factor):
    """Return the Weibull site with speeds multiplied by a factor, and the same probabilities."""
    conditions = weibull_site().conditions
    return Site.from_table(DIRECTIONS, factor * SPEEDS, conditions.weight, 0.08, kind="exact")


def pairs():
    """Yield the name of a kind of wind, the wind on a grid, and the same wind without one."""
    directions, speed = cases.steps()
    hills = xarray.DataArray(np.full((len(X), len(Y)), 55.0), {"x": X, "y": Y}, ("x", "y"))
    series = xarray.Dataset({"TI": 0.08, "wd": ("time", directions)}, {"time": np.arange(cases.STEPS)})
    yield "weibull", Case(everywhere(WEIBULL)), weibull_site()
    yield "weibull linear", Case(everywhere(WEIBULL), "linear"), weibull_site(interpolation="linear")
    yield "turbulence", Case(everywhere(WEIBULL[["TI"]]).merge(WEIBULL.drop_vars("TI"))), weibull_site()
    yield "speed-up of 1", Case(everywhere(WEIBULL, Speedup=1.0)), weibull_site()
    yield "speed-up of 1.1", Case(everywhere(WEIBULL, Speedup=1.1)), scaled_table(1.1)
    bins = cases.with_local_bins(everywhere(WEIBULL, Speedup=1.1))
    yield "local bins", Case(bins), weibull_site(speeds=1.1 * SPEEDS)
    yield "density", Case(everywhere(WEIBULL, Air_density=1.225)), weibull_site()
    yield "elevated", Case(everywhere(WEIBULL, Elevation=hills), distances="elevated"), weibull_site()
    yield "no shear", Case(WEIBULL, sector_shear=("power", 0.0)), weibull_site()
    hub = Case(WEIBULL, sector_shear=("logarithmic", 0.1))
    yield "shear at its reference", hub, weibull_site()
    table = cases.table()
    yield "table", Case(everywhere(table)), Case(table).site(DIRECTIONS)
    yield "table linear", Case(everywhere(table), "linear"), Case(table, "linear").site(DIRECTIONS)
    at_speeds = {"WS": ("time", speed)}
    yield "series", Case(everywhere(series, **at_speeds)), Site.from_time_series(directions, speed, 0.08)
    faster = everywhere(series, Speedup=1.1).assign_coords(ws=("time", speed))
    yield "series with speed-up", Case(faster), Site.from_time_series(directions, 1.1 * speed, 0.08)


SAME = {name: (field, uniform) for name, field, uniform in pairs()}


def assert_same_farms(one, other, x, y):
    assert one.aep_gwh(x, y) == pytest.approx(other.aep_gwh(x, y), rel=1e-12)
    slopes, expected = (np.array(farm.aep_gradient(x, y)[1:]) for farm in (one, other))
    np.testing.assert_allclose(slopes, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("model", [NYGAARD, LINEAR], ids=names)
def test_the_same_wind_everywhere(model, name, turbine, turbines):
    field, uniform = SAME[name]
    x, y = cases.layout(8, 1, *PART)
    hub_100 = Turbine.generic(8, 170, 100)
    types = [hub_100] if name == "shear at its reference" else [turbine, turbines[1]]
    each = [types[i % len(types)] for i in range(8)]
    there = Neighbours(x[6:], y[6:], each[6:])
    site = field.site(DIRECTIONS, SPEEDS)
    assert site.field is not None
    assert uniform.field is None
    assert_same_farms(
        *(WindFarm(each_site, each[:6], model, neighbours=there) for each_site in (site, uniform)), x[:6], y[:6]
    )


def test_default_bins(turbine):
    """So many that the kernels take them in several parts."""
    x, y = cases.layout(25, 2, apart_m=300.0)
    field = Case(everywhere(WEIBULL, Speedup=1.0)).site()
    assert_same_farms(WindFarm(field, turbine), WindFarm(Site.from_weibull(*WEIBULL_SETTINGS, 0.08), turbine), x, y)


@pytest.mark.parametrize("bins", ["site", "local"])
def test_more_speeds_than_a_kernel_takes_at_once(bins, turbine):
    many, few = np.linspace(3.0, 25.0, 1201), [20.0, 110.0, 200.0, 290.0]
    x, y = cases.layout(4, 3, *PART)
    data = everywhere(WEIBULL, Speedup=1.0).assign_attrs(speed_bins=bins)
    field, uniform = Case(data).site(few, many), weibull_site(directions=few, speeds=many)
    assert_same_farms(WindFarm(field, turbine), WindFarm(uniform, turbine), x, y)
    ours, theirs = (WindFarm(site, turbine).simulate(x, y, per_condition=True) for site in (field, uniform))
    np.testing.assert_allclose(ours.condition_speed_m_s, theirs.condition_speed_m_s, rtol=1e-12)
    np.testing.assert_allclose(ours.effective_speed_m_s, theirs.effective_speed_m_s, rtol=1e-12)
    np.testing.assert_allclose(ours.gross_aep_gwh, theirs.gross_aep_gwh, rtol=1e-12)


def test_one_column_of_a_grid_extends_everywhere(turbine):
    x, y = cases.layout(6, 4)
    one = CASES["everything"].dataset.isel(x=[2])
    site = CASES["weibull linear"].replaced(one).site(DIRECTIONS, SPEEDS)
    wide = CASES["weibull linear"].replaced(one.sel(x=X, method="nearest").assign_coords(x=X)).site(DIRECTIONS, SPEEDS)
    assert WindFarm(site, turbine).aep_gwh(x, y) == pytest.approx(WindFarm(wide, turbine).aep_gwh(x, y), rel=1e-13)


# --- settings, processes and threads ---


@pytest.mark.parametrize("name", CASES)
def test_settings_restore_the_site(name, turbine):
    """To the last bit, also through text."""
    site = site_of(name)
    x, y = cases.layout(6, 5, *PART)
    again = Site.from_settings(json.loads(json.dumps(site.settings())))
    assert again.settings() == site.settings()
    assert WindFarm(again, turbine).aep_gwh(x, y) == WindFarm(site, turbine).aep_gwh(x, y)


def test_settings_keep_what_is_missing(turbine):
    data = CASES["weibull"].dataset.copy(deep=True)
    data["Weibull_A"][{"x": 0, "y": 0}] = np.nan
    site = Site.from_dataset(data, extrapolate=True, crs="EPSG:25832", directions=DIRECTIONS, speeds=SPEEDS)
    again = Site.from_settings(json.loads(json.dumps(site.settings())))
    assert (again.crs, again.field.data.extrapolate) == ("EPSG:25832", True)
    assert again.field.data.missing["weibull_a"].sum() == 1
    x, y = cases.layout(6, 5, *PART)
    assert WindFarm(again, turbine).aep_gwh(x, y) == WindFarm(site, turbine).aep_gwh(x, y)
    strict = Site.from_dataset(data, directions=DIRECTIONS, speeds=SPEEDS)
    with pytest.raises(InputError, match=r"turbine 1 at .* has no weibull_a \(NaN\)"):
        WindFarm(strict, turbine).aep_gwh([X[2], X[0] + 10.0], [Y[1], Y[0] + 10.0])


FEWER = ["weibull", "speed-up", "local bins", "power shear by sector", "series with shear", "density by sector"]


@pytest.mark.parametrize("directions", [np.arange(0.0, 360.0, 30.0), np.r_[0:80:10, 90:360:30]], ids=["even", "uneven"])
def test_directions_that_do_not_fill_the_sectors_are_kept(directions):
    """Fewer directions would have another gross yield: sectors of 45 degrees do not get equally many."""
    site = Site.from_dataset(cases.SPEED_UP, directions=directions)
    np.testing.assert_array_equal(site.fewer_directions().conditions.direction, directions)


def test_uneven_directions_are_drawn_from():
    directions = np.r_[np.arange(0.0, 90.0, 5.0), 180.0, 270.0]
    site = Site.from_dataset(cases.SPEED_UP, directions=directions)
    assert set(site.coarser(10, [8.0, 10.0]).conditions.direction) <= set(directions)


@pytest.mark.parametrize("name", [*FEWER, "more exponents than sectors"])
def test_fewer_directions_have_the_same_gross_yield(name, turbine):
    case = Case(WEIBULL, sector_shear=("power", np.linspace(0.0, 0.3, 12))) if name not in CASES else CASES[name]
    site, (x, y) = case.site(np.arange(0.0, 360.0, 1.5)), cases.layout(5, 19)
    gross = [WindFarm(each, turbine).gross_aep_gradient(x, y)[0] for each in (site, site.fewer_directions())]
    np.testing.assert_allclose(*gross, rtol=1e-12)


@pytest.mark.parametrize("name", ["speed-up", None], ids=["field", "the same everywhere"])
def test_net_and_gross_yield(name, turbine):
    x, y = cases.layout(6, 20, *PART)
    farm = WindFarm(weibull_site() if name is None else site_of(name), turbine)
    gross = farm.gross_aep_gradient(x, y)
    lost = farm.net_minus_gross_gradient(x, y)
    for ours, net, free in zip(lost, farm.aep_gradient(x, y), (gross[0].sum(), *gross[1:]), strict=True):
        np.testing.assert_allclose(ours, net - free, rtol=0, atol=1e-12 * np.abs(net).max())
    assert lost[0] < 0
    assert farm.net_minus_gross_gwh(x, y) == pytest.approx(lost[0], rel=1e-11)


@pytest.mark.parametrize("name", ["everything", "table", "series"])
def test_results_do_not_depend_on_threads(name, turbine):
    x, y = cases.layout(20, 6)
    at_x, at_y = cases.layout(20, 7, apart_m=10.0)
    site = CASES[name].site(np.arange(0.0, 360.0, 1.0), np.arange(3.0, 26.0))
    one, three = (WindFarm(site, turbine, threads=n) for n in (1, 3))
    assert one.aep_gwh(x, y) == three.aep_gwh(x, y)
    for ours, theirs in zip(one.aep_gradient(x, y), three.aep_gradient(x, y), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    maps = [farm.next_turbine_aep_gwh(x, y, at_x, at_y) for farm in (one, three)]
    np.testing.assert_array_equal(*maps)


@pytest.mark.parametrize("name", ["everything", "series"])
def test_a_used_farm_can_be_pickled(name, turbine):
    farm = WindFarm(site_of(name), turbine)
    x, y = cases.layout(6, 8)
    aep = farm.aep_gradient(x, y)[0]
    assert pickle.loads(pickle.dumps(farm)).aep_gradient(x, y)[0] == aep


def test_a_wake_model_says_which_speed_its_deficits_are_relative_to(turbine):
    class Vague(BastankhahGaussian):
        name = "vague"
        relative_to = "somewhere"

    with pytest.raises(
        InputError, match="wake model vague: relative_to is 'somewhere'; expected one of source, target"
    ):
        WindFarm(site_of("speed-up"), turbine, Vague())


def test_large_coordinates_lose_no_precision(turbine):
    """Moving the grid and the turbines by whole kilometres changes nothing."""
    x, y = (np.round(values, 3) for values in cases.layout(12, 9))
    there = CASES["everything"].dataset
    here = there.assign_coords(x=X - 700_000.0, y=Y - 6_240_000.0)
    farms = [WindFarm(CASES["everything"].replaced(data).site(DIRECTIONS, SPEEDS), turbine) for data in (there, here)]
    aep = farms[0].aep_gwh(x, y)
    assert farms[1].aep_gwh(x - 700_000.0, y - 6_240_000.0) == pytest.approx(aep, rel=1e-10, abs=0)


# --- conditions drawn at random ---


@pytest.mark.parametrize("name", ["everything", "local bins with shear", "table linear", "series", "speed-up"])
def test_the_sampled_gradient_is_unbiased_for_the_sum_over_the_conditions(name, turbine):
    x, y = cases.layout(4, 10, *PART)
    farm = WindFarm(site_of(name), turbine)
    exact = np.r_[farm.aep_gradient(x, y)]
    rng, rounds = np.random.default_rng(10), 200
    estimates = np.array([np.r_[farm.sampled_aep_gradient(x, y, 140, rng)] for _ in range(rounds)])
    error = estimates.std(axis=0, ddof=1) / np.sqrt(rounds)
    assert (np.abs(estimates.mean(axis=0) - exact) < 4.5 * error).all()
    assert error[0] < 0.01 * exact[0]


@pytest.mark.parametrize("name", CASES)
def test_each_condition_drawn_once_is_the_sum(name, turbine):
    """The draws have the weights of the conditions, times a factor that makes them unbiased."""
    x, y = cases.layout(4, 11, *PART)
    farm = WindFarm(site_of(name), turbine)
    conditions = farm.site.conditions
    row, column = (index.ravel() for index in np.indices(conditions.weight.shape))
    drawn = conditions.drawn(row, column, conditions.weight.ravel())
    every, exact = (np.r_[farm.aep_gradient(x, y, each)] for each in (drawn, None))
    np.testing.assert_allclose(every[:1], exact[:1], rtol=1e-12)
    np.testing.assert_allclose(every[1:], exact[1:], rtol=0, atol=1e-11 * np.abs(exact[1:]).max())


# --- one turbine more or fewer ---


def test_simulation_adds_up(turbines):
    x, y = cases.layout(8, 12, *PART)
    farm = WindFarm(site_of("everything"), [turbines[i % 3] for i in range(8)])
    simulation = farm.simulate(x, y, per_condition=True)
    weight = simulation.condition_weight
    power = (simulation.condition_power_mw * weight).sum(axis=(1, 2))
    np.testing.assert_allclose(power, simulation.power_mw, rtol=1e-12)
    gross = (simulation.condition_gross_power_mw * weight).sum(axis=(1, 2)) * 8.76
    np.testing.assert_allclose(gross, simulation.gross_aep_gwh, rtol=1e-12)
    alone = [WindFarm(farm.site, farm.turbine[i]).aep_gwh(x[i : i + 1], y[i : i + 1]) for i in range(8)]
    np.testing.assert_allclose(simulation.gross_aep_gwh, alone, rtol=1e-12)
    assert simulation.total_aep_gwh == pytest.approx(farm.aep_gwh(x, y), rel=1e-13)
    assert 0 < simulation.total_wake_loss < 0.3


@pytest.mark.parametrize("name", MAPPED)
@pytest.mark.parametrize("model", default_first([NYGAARD, LINEAR, wake_model("jensen")], names))
def test_a_further_turbine_with_its_rotor_is_one_more_turbine(model, name, turbines):
    site, (x, y) = site_of(name), cases.layout(9, 13)
    at_x, at_y = cases.layout(3, 14)
    farm = WindFarm(site, turbines[0], model)
    foreseen = farm.next_turbine_aep_gwh(x, y, at_x, at_y, turbine=turbines[1])
    for i in range(3):
        more = WindFarm(site, [turbines[0]] * 9 + [turbines[1]], model).simulate(np.r_[x, at_x[i]], np.r_[y, at_y[i]])
        assert foreseen[i] == pytest.approx(more.aep_gwh[9], rel=1e-12)


@pytest.mark.parametrize("name", MAPPED)
def test_a_growing_map_is_the_same_as_a_new_one(name, turbines):
    """To the last bit, turbine by turbine, with points that go and with neighbours."""
    x, y = cases.layout(9, 15)
    farm = WindFarm(site_of(name), turbines[0], neighbours=Neighbours(x[8:], y[8:], turbines[2]))
    at_x, at_y = cases.layout(30, 16, apart_m=50.0)
    growing = farm.next_turbine_map(at_x, at_y, rotor_average=False)
    for count in range(9):
        if count == 5:
            kept = np.arange(30) % 3 > 0
            growing.keep(kept)
            at_x, at_y = at_x[kept], at_y[kept]
        anew = farm.next_turbine_aep_gwh(x[:count], y[:count], at_x, at_y, rotor_average=False)
        np.testing.assert_array_equal(growing.aep_gwh(x[:count], y[:count]), anew)
    elsewhere = growing.aep_gwh(x[:4] + 100.0, y[:4])
    anew = farm.next_turbine_aep_gwh(x[:4] + 100.0, y[:4], at_x, at_y, rotor_average=False)
    np.testing.assert_array_equal(elsewhere, anew)


def farms_with_one_more_or_fewer(farm, x, y, at_x, at_y, turbine):
    """Return the AEP (GWh) that the farm loses without each turbine, and that it gains from one more at each point."""

    def aep(each, x, y):
        return WindFarm(farm.site, each, farm.wake_model, neighbours=farm.neighbours).aep_gwh(x, y)

    each, whole = farm.turbine, farm.aep_gwh(x, y)
    count = len(x)
    fewer = [aep(each[:i] + each[i + 1 :], np.delete(x, i), np.delete(y, i)) for i in range(count)]
    more = [aep([*each, turbine], np.r_[x, at_x[i]], np.r_[y, at_y[i]]) for i in range(len(at_x))]
    return whole - np.array(fewer), np.array(more) - whole


@pytest.mark.parametrize("name", MAPPED)
@pytest.mark.parametrize("model", default_first([NYGAARD, BastankhahGaussian(), LINEAR], names))
def test_worth_and_gain_of_a_turbine(model, name, turbines):
    """About: thrust does not follow."""
    x, y = cases.layout(9, 17)
    each = [turbines[i % 3] for i in range(8)]
    farm = WindFarm(site_of(name), each, model, neighbours=Neighbours(x[8:], y[8:], turbines[2]))
    at_x, at_y = cases.layout(5, 18)
    fewer, more = farms_with_one_more_or_fewer(farm, x[:8], y[:8], at_x, at_y, turbines[1])
    own = farm.simulate(x[:8], y[:8]).aep_gwh.min()
    np.testing.assert_allclose(farm.marginal_aep_gwh(x[:8], y[:8]), fewer, rtol=0, atol=0.02 * own)
    gain = farm.next_turbine_gain(x[:8], y[:8], at_x, at_y, turbine=turbines[1])
    np.testing.assert_allclose(gain, more, rtol=0, atol=0.02 * own)


@pytest.mark.parametrize("name", [*MAPPED, "power shear on a speed-up"])
@pytest.mark.parametrize(
    "model",
    default_first(
        [NYGAARD, BastankhahGaussian(), BastankhahGaussian(superposition="linear"), wake_model("jensen")], names
    ),
)
def test_worth_and_gain_are_exact_where_thrust_is_constant(model, name):
    turbine = Turbine.cubic(15, 200, 120, cut_in_m_s=2.0, rated_speed_m_s=20, cut_out_m_s=60, thrust_coefficient=0.7)
    x, y = cases.layout(8, 19, *PART, apart_m=400.0)
    at_x, at_y = cases.layout(5, 20, *PART)
    farm = WindFarm(site_of(name), [turbine] * 8, model)
    fewer, more = farms_with_one_more_or_fewer(farm, x, y, at_x, at_y, turbine)
    np.testing.assert_allclose(farm.marginal_aep_gwh(x, y), fewer, rtol=1e-9)
    np.testing.assert_allclose(farm.next_turbine_gain(x, y, at_x, at_y), more, rtol=1e-9)


# --- plain Python ---

SMALL_X, SMALL_Y = np.array([0.0, 900.0, 1500.0]), np.array([0.0, 1300.0])
SMALL_HEIGHTS = np.array([90.0, 160.0])
SMALL = cases.weibull_field(SMALL_X, SMALL_Y, SMALL_HEIGHTS, sectors=4)
SMALL_UNIFORM = cases.uniform_weibull(sectors=4)
SMALL_GRID = {"x": SMALL_X, "y": SMALL_Y}
SMALL_SPEED_UP = cases.with_speed_up(SMALL, **SMALL_GRID, heights=SMALL_HEIGHTS)
SMALL_SHEAR = [0.1, 0.25, 0.05, 0.3]
SMALL_STEPS = 5


def small_series(dims, *axes):
    return xarray.Dataset(
        {
            "WS": (dims, cases.waves(6.0, 12.0, 61, *axes)),
            "TI": (dims, cases.waves(0.06, 0.14, 62, *axes)),
            "wd": ("time", [15.0, 80.0, 181.0, 200.0, 355.0]),
        },
        {**SMALL_GRID, "time": np.arange(SMALL_STEPS)},
    )


SMALL_CASES = {
    "weibull": Case(SMALL),
    "everything": Case(
        cases.with_local_bins(
            cases.with_density(cases.with_elevation(SMALL_SPEED_UP, **SMALL_GRID, high=60.0), **SMALL_GRID, sectors=4)
        ),
        "linear",
        distances="elevated",
    ),
    "table": Case(cases.table_field(**SMALL_GRID, heights=SMALL_HEIGHTS)),
    "table linear": Case(cases.table_field(**SMALL_GRID, heights=SMALL_HEIGHTS), "linear"),
    "power shear": Case(cases.with_speed_up(SMALL_UNIFORM, **SMALL_GRID), sector_shear=("power", SMALL_SHEAR)),
    "logarithmic shear": Case(SMALL_UNIFORM, "linear", ("logarithmic", SMALL_SHEAR)),
    "series": Case(small_series(("x", "y", "time"), SMALL_X, SMALL_Y, SMALL_STEPS)),
}
SMALL_DIRECTIONS = np.arange(10.0, 360.0, 60.0)
SMALL_SPEEDS = np.array([7.0, 9.0, 12.0])
SMALL_PLACES = np.array([150.0, 700.0, 1200.0]), np.array([200.0, 900.0, 400.0])
SMALL_TYPES = [Turbine.generic(15, 240, 150), Turbine.generic(8, 170, 110)]


def naive_winds(name, turbines, x, y, speeds):
    """Return free speed, probability, turbulence and density of each turbine in each condition, and the elevation."""
    case = SMALL_CASES[name]
    shear, linear = case.sector_shear, case.interpolation == "linear"
    edges = np.r_[
        1.5 * speeds[0] - 0.5 * speeds[1], 0.5 * (speeds[1:] + speeds[:-1]), 1.5 * speeds[-1] - 0.5 * speeds[-2]
    ]
    found = np.empty((4, len(x), len(SMALL_DIRECTIONS), len(speeds)))
    ground = []
    for i, turbine in enumerate(turbines):
        field = NaiveField(case.dataset, x[i], y[i], turbine.hub_height_m, linear, shear)
        ground.append(float(field.here["Elevation"]) if case.distances == "elevated" else 0.0)
        for d, direction in enumerate(SMALL_DIRECTIONS):
            density = field.value("Air_density", direction) / 1.225 if "Air_density" in field.here else 1.0
            for s, speed in enumerate(speeds):
                probability = field.probability(direction, 60.0, s, edges)
                free = speed * field.factor(direction)
                found[:, i, d, s] = free, probability, field.value("TI", direction), density
    return found, ground


@pytest.mark.tiny
@pytest.mark.parametrize("name", [name for name in SMALL_CASES if name != "series"])
def test_against_a_slow_twin(name):
    case, (x, y) = SMALL_CASES[name], SMALL_PLACES
    turbines = [SMALL_TYPES[i % 2] for i in range(3)]
    speeds = BINS[:3] if case.is_table else SMALL_SPEEDS
    if case.is_table:
        case = case.replaced(case.dataset.isel(ws=slice(3)))
    site = case.site(SMALL_DIRECTIONS, speeds)
    (free, probability, turbulence, density), ground = naive_winds(name, turbines, x, y, speeds)
    ours = WindFarm(site, turbines).simulate(x, y, per_condition=True)
    np.testing.assert_allclose(ours.condition_weight, probability, rtol=1e-12)
    for d, direction in enumerate(SMALL_DIRECTIONS):
        for s in range(len(speeds)):
            here = (slice(None), d, s)
            wind = (free[here], turbulence[here], ground, list(density[here]))
            # the table that PyWake and we interpolate in is good to about 1e-5
            expected = effective_speeds(x, y, turbines, direction, *wind)
            np.testing.assert_allclose(ours.condition_speed_m_s[here], expected, rtol=0, atol=1e-3)
    gross = [turbine.power_mw(free[i]) * density[i] * probability[i] for i, turbine in enumerate(turbines)]
    np.testing.assert_allclose(ours.gross_aep_gwh, np.sum(gross, axis=(1, 2)) * 8.76, rtol=1e-12)


@pytest.mark.tiny
def test_a_series_against_a_slow_twin():
    case, (x, y) = SMALL_CASES["series"], SMALL_PLACES
    ours = WindFarm(case.site(), SMALL_TYPES[0]).simulate(x, y, per_condition=True)
    for step in range(SMALL_STEPS):
        fields = [NaiveField(case.dataset.isel(time=step), *place, 150.0).here for place in zip(x, y, strict=True)]
        speed, turbulence = ([float(field[name]) for field in fields] for name in ("WS", "TI"))
        expected = effective_speeds(x, y, [SMALL_TYPES[0]] * 3, float(case.dataset["wd"][step]), speed, turbulence)
        np.testing.assert_allclose(ours.condition_speed_m_s[:, step, 0], expected, rtol=0, atol=1e-3)
    np.testing.assert_array_equal(ours.condition_weight, 1.0 / SMALL_STEPS)


@pytest.mark.slow
@pytest.mark.tiny
@pytest.mark.parametrize("name", SMALL_CASES)
def test_every_question_runs_uncompiled_too(name):
    x, y = SMALL_PLACES
    site = SMALL_CASES[name].site(SMALL_DIRECTIONS, SMALL_SPEEDS)
    farm = WindFarm(site, smooth_turbine(), LINEAR, neighbours=Neighbours(x[2:], y[2:], SMALL_TYPES[1]))
    x, y = x[:2], y[:2]
    simulation = farm.simulate(x, y)
    aep, by_x, by_y = farm.aep_gradient(x, y)
    assert aep == pytest.approx(simulation.total_aep_gwh, rel=1e-13)
    assert_close([by_x, by_y], differences(farm.aep_gwh, x, y, step=1.0), rel=1e-6)
    gross, _, _ = farm.gross_aep_gradient(x, y)
    np.testing.assert_allclose(gross, simulation.gross_aep_gwh, rtol=1e-12)
    drawn, by_x, by_y = farm.sampled_aep_gradient(x, y, 5, np.random.default_rng(0))
    assert drawn > 0
    assert len(by_x) == len(by_y) == 2
    alone = WindFarm(site, smooth_turbine(), LINEAR)
    free = alone.next_turbine_aep_gwh([], [], x, y)
    np.testing.assert_allclose(free, gross, rtol=1e-12)
    assert alone.next_turbine_gain(x[:1], y[:1], x[1:], y[1:])[0] <= free[1]
    assert (alone.marginal_aep_gwh(x, y) <= gross).all()


def test_kernels_are_compiled_once_for_every_kind_of_field():
    """Arrays of xarray, which cannot be written, and whole numbers would be other types for the compiler."""
    sites = [case.site() for case in CASES.values()]
    frozen = cases.weibull_field()
    for name in ("x", "y", "h"):
        assert not frozen[name].values.flags.writeable
    sites += [Site.from_dataset(frozen), Site.from_settings(Site.from_dataset(frozen).settings())]
    sites += [Site.from_dataset(cases.WEIBULL, shear=Shear.power(0.1, height)) for height in (100, 100.0)]
    kinds = set()
    for site in sites:
        local = site.conditions.local
        kinds.add(
            (
                numba.typeof(site.field.values),
                numba.typeof(local.rows(site.conditions.direction, site.conditions.speed)),
            )
        )
    assert len(kinds) == 1
