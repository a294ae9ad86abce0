"""The gradient in wind that varies over a site: against differences, at borders of cells too, and PyWake's autograd."""

import numpy as np
import pytest

import field_cases as cases
from field_cases import CASES, X, Y
from leeward.wind import Neighbours, Turbine, WindFarm
from leeward.wind.overlap import CELLS_CROSSWIND, CELLS_RADIUS
from leeward.wind.wake_models import BastankhahGaussian, Jensen, Nygaard2022, wake_model
from references import model_name as names
from test_gradient import assert_close, cubic_turbine, differences, smooth_turbine

NYGAARD, BASTANKHAH = wake_model("nygaard_2022"), wake_model("bastankhah_gaussian")
LINEAR = BastankhahGaussian(superposition="linear", reference_speed="effective", expansion=0.02)
MODELS = [
    NYGAARD,
    BASTANKHAH,
    LINEAR,
    BastankhahGaussian(induction="momentum", reference_speed="effective"),
    BastankhahGaussian(superposition="linear"),
    wake_model("iea37_gaussian"),
    Jensen(expansion=0.04),
    pytest.param(wake_model("no_wake"), marks=pytest.mark.slow),
]
HARDEST = ("everything", "power shear on a speed-up", "table", "series")
DIRECTIONS = np.arange(0.0, 360.0, 22.5)
SPEEDS = np.array([5.0, 7.0, 9.0, 11.0, 14.0])  # not a multiple of the lanes
COUNT = 4
PART = X[1:4], Y[:3]  # small, so that wakes are strong


@pytest.fixture
def smooth_table(monkeypatch):
    """Replace the overlap factors of the default model by planes: their interpolation has few kinks."""
    rows, columns = np.meshgrid(np.arange(CELLS_RADIUS + 1), np.arange(CELLS_CROSSWIND + 1), indexing="ij")
    factors = np.clip(1.0 - columns / 650.0, 0.0, None) * (1.0 - rows / 3000.0)
    table = np.ascontiguousarray(np.stack([factors[:-1], factors[1:]], axis=-1)).ravel()
    table.flags.writeable = False  # as the true one
    monkeypatch.setattr(Nygaard2022, "table", lambda self: table)


def low_turbine():
    """Return another type: smaller, lower, with other curves."""
    return Turbine(
        wind_speeds_m_s=[0, 40],
        power_mw=[0, 5],
        thrust_coefficient=[0.75, 0.15],
        rotor_diameter_m=130,
        hub_height_m=95,
    )


def site_of(name):
    return CASES[name].site(DIRECTIONS, SPEEDS)


def mixed_farm(name, model, seed):
    """Return a farm of two types beside an existing turbine, and its positions."""
    x, y = cases.layout(COUNT + 1, seed, *PART, border_m=20.0)
    types = [smooth_turbine(), low_turbine()]
    each = [types[i % 2] for i in range(COUNT)]
    there = Neighbours(x[COUNT:], y[COUNT:], types[1])
    return WindFarm(site_of(name), each, model, neighbours=there), x[:COUNT], y[:COUNT]


def step_of(farm):
    """Return the step of differences (m): a small one where wakes or lines that follow the terrain have kinks."""
    is_smooth = farm.wake_model.name not in ("nygaard_2022", "jensen")
    return 1.0 if is_smooth and farm.site.field.data.distances != "terrain_following" else 0.01


def assert_exact(farm, x, y):
    aep, by_x, by_y = farm.aep_gradient(x, y)
    assert aep == pytest.approx(farm.aep_gwh(x, y), rel=1e-13)
    assert_close([by_x, by_y], differences(farm.aep_gwh, x, y, step_of(farm)), rel=1e-6)


@pytest.mark.usefixtures("smooth_table")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("model", [NYGAARD, LINEAR], ids=names)
def test_every_kind_of_field(model, name):
    assert_exact(*mixed_farm(name, model, seed=1))


@pytest.mark.usefixtures("smooth_table")
@pytest.mark.parametrize("name", HARDEST)
@pytest.mark.parametrize("model", MODELS, ids=names)
def test_every_wake_model(model, name):
    assert_exact(*mixed_farm(name, model, seed=2))


@pytest.mark.slow
@pytest.mark.usefixtures("smooth_table")
@pytest.mark.parametrize("name", [name for name in CASES if name not in HARDEST])
@pytest.mark.parametrize("model", MODELS[1:], ids=names)
def test_every_wake_model_in_every_kind_of_field(model, name):
    assert_exact(*mixed_farm(name, model, seed=13))


def test_constant_thrust():
    x, y = cases.layout(COUNT, 4, *PART, border_m=20.0)
    assert_exact(WindFarm(site_of("everything"), cubic_turbine(), LINEAR), x, y)


# PyWake's site uses the air density of the nearest sector
@pytest.mark.parametrize("name", [name for name in CASES if name != "density by sector"])
def test_against_autograd(name, turbines, pywake):
    case = CASES[name]
    x, y = cases.layout(10, seed=5)
    kinds = np.arange(10) % len(turbines)
    _, by_x, by_y = WindFarm(site_of(name), [turbines[k] for k in kinds]).aep_gradient(x, y)

    def compute():
        import pywake_peer as peer

        given = {"wd": DIRECTIONS, "ws": cases.BINS if case.is_table else SPEEDS}
        if case.is_series:
            given = dict(zip(("wd", "ws", "time"), (*cases.steps(), True), strict=True))
        farm = peer.peer_farm(NYGAARD, peer.peer_field(case, density=True), turbines)
        return {"gradient": farm.aep_gradients(wrt_arg=["x", "y"], x=x, y=y, type=kinds, **given)}

    pywake.numbers(compute).assert_close("gradient", [by_x, by_y], of_largest=1e-9)


# --- conditions drawn at random, and the gross yield ---


@pytest.mark.usefixtures("smooth_table")
@pytest.mark.parametrize("name", ["everything", "local bins with shear", "table linear", "series with linear speed-up"])
@pytest.mark.parametrize("model", [NYGAARD, LINEAR], ids=names)
def test_drawn_conditions(model, name):
    farm, x, y = mixed_farm(name, model, seed=6)
    drawn = farm.site.draw(60, np.random.default_rng(6))
    _, by_x, by_y = farm.aep_gradient(x, y, drawn)
    slopes = differences(lambda x, y: farm.aep_gradient(x, y, drawn)[0], x, y, step_of(farm))
    assert_close([by_x, by_y], slopes, rel=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_gross_yield(name):
    farm, x, y = mixed_farm(name, BASTANKHAH, seed=7)
    gross, by_x, by_y = farm.gross_aep_gradient(x, y)
    np.testing.assert_allclose(gross, farm.simulate(x, y).gross_aep_gwh, rtol=1e-12)
    slopes = differences(lambda x, y: farm.gross_aep_gradient(x, y)[0].sum(), x, y, step=1.0)
    if np.abs(slopes).max() > 1e-9:
        assert_close([by_x, by_y], slopes, rel=1e-6)
    else:  # the free wind is the same everywhere
        assert not np.any([by_x, by_y])


# --- borders of cells ---


def slope_on_one_side(f, step):
    """Return the derivative of f at 0 from f(0), f(step) .. f(4 step), to the fourth order."""
    return np.dot([-25.0, 48.0, -36.0, 16.0, -3.0], [f(step * i) for i in range(5)]) / (12.0 * step)


@pytest.mark.parametrize("name", ["everything", "speed-up", "table", "density", "elevated with speed-up", "series"])
def test_on_a_border_the_cell_to_the_east_and_north_counts(name):
    farm, x, y = mixed_farm(name, LINEAR, seed=8)
    x[0], y[1] = X[2], Y[1]
    _, by_x, by_y = farm.aep_gradient(x, y)

    def moved(east, north):
        return farm.aep_gwh(x + np.eye(COUNT)[0] * east, y + np.eye(COUNT)[1] * north)

    east, west = (slope_on_one_side(lambda h: moved(h, 0.0), step) for step in (1.0, -1.0))
    north, south = (slope_on_one_side(lambda h: moved(0.0, h), step) for step in (1.0, -1.0))
    largest = np.abs([by_x, by_y]).max()
    assert by_x[0] == pytest.approx(east, abs=1e-6 * largest)
    assert by_y[1] == pytest.approx(north, abs=1e-6 * largest)
    assert abs(east - west) > 1e-4 * largest
    assert abs(north - south) > 1e-4 * largest


@pytest.mark.parametrize("name", ["everything", "speed-up", "table", "series"])
def test_on_the_border_of_the_grid_its_cell_counts(name):
    farm, x, y = mixed_farm(name, LINEAR, seed=9)
    x[0], x[1], y[2], y[3] = X[0], X[-1], Y[0], Y[-1]
    _, by_x, by_y = farm.aep_gradient(x, y)
    largest = np.abs([by_x, by_y]).max()
    for i, inward, gradient, axis in ((0, 1.0, by_x, 0), (1, -1.0, by_x, 0), (2, 1.0, by_y, 1), (3, -1.0, by_y, 1)):

        def moved(h, i=i, axis=axis):
            change = h * np.eye(COUNT)[i]
            return farm.aep_gwh(x + change, y) if axis == 0 else farm.aep_gwh(x, y + change)

        assert gradient[i] == pytest.approx(slope_on_one_side(moved, inward), abs=1e-6 * largest)


@pytest.mark.parametrize("name", ["everything", "speed-up", "table", "series", "elevated with speed-up"])
def test_the_wind_is_constant_outside_the_grid(name):
    """Of the wind at the border. The wakes still change."""
    site = site_of(name).unchecked()
    farm = WindFarm(site, smooth_turbine(), LINEAR)
    x = np.array([X[0] - 300.0, X[0] - 900.0, X[-1] + 400.0, X[2] + 100.0, X[2] + 700.0])
    y = np.array([Y[1] + 200.0, Y[1] + 800.0, Y[-1] + 500.0, Y[-1] + 700.0, Y[0] - 600.0])
    assert_exact(farm, x, y)
    gross, by_x, by_y = farm.gross_aep_gradient(x, y)
    at_border = farm.gross_aep_gradient(np.clip(x, X[0], X[-1]), np.clip(y, Y[0], Y[-1]))[0]
    np.testing.assert_array_equal(gross, at_border)
    assert not by_x[:3].any()
    assert not by_y[2:].any()
    assert by_y[:2].all()
    assert by_x[3:].all()
