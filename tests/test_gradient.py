"""The gradient is exact: against differences where the model is smooth, against PyWake's autograd everywhere."""

import numpy as np
import pytest

from conftest import random_layout
from leeward.wind import Neighbours, Site, Turbine, WindFarm
from leeward.wind.wake_models import BastankhahGaussian, Jensen, wake_model
from references import model_name

SMOOTH = [
    wake_model("bastankhah_gaussian"),
    BastankhahGaussian(induction="momentum", reference_speed="effective"),
    BastankhahGaussian(superposition="linear", reference_speed="effective", expansion=0.02),
    wake_model("iea37_gaussian"),
]


def smooth_turbine():
    """Power and thrust change with the wind speed, and have no knots where the wind blows."""
    return Turbine(
        wind_speeds_m_s=[0, 40],
        power_mw=[0, 13],
        thrust_coefficient=[0.85, 0.05],
        rotor_diameter_m=198,
        hub_height_m=119,
    )


def cubic_turbine():
    return Turbine.cubic(60, 198, 119, cut_in_m_s=0.1, rated_speed_m_s=40, cut_out_m_s=50, thrust_coefficient=0.8)


def differences(f, x, y, step):
    """Central differences of the fourth order with respect to each x and each y."""
    gradient = np.zeros((2, len(x)))
    for row, offset in enumerate(np.eye(2)):
        for i in range(len(x)):
            change = np.zeros(len(x))
            change[i] = step

            def at(h, change=change, offset=offset):
                return f(x + h * offset[0] * change, y + h * offset[1] * change)

            gradient[row, i] = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
    return gradient


def assert_close(ours, expected, rel):
    ours, expected = np.ravel(ours), np.ravel(expected)
    assert np.abs(ours - expected).max() <= rel * np.abs(expected).max()


@pytest.mark.parametrize("make_turbine", [smooth_turbine, cubic_turbine])
@pytest.mark.parametrize("model", SMOOTH, ids=lambda m: m.name)
def test_against_differences_on_smooth_curves(model, make_turbine):
    site = Site.from_weibull(
        [0.3, 0.3, 0.2, 0.2], [9, 10, 11, 9], [2, 2, 2.2, 2], 0.08, directions=np.arange(0, 360, 9)
    )
    farm = WindFarm(site, make_turbine(), model)
    x, y = random_layout(8, seed=2, density_m=900.0, origin=(0, 0))
    aep, by_x, by_y = farm.aep_gradient(x, y)
    assert aep == pytest.approx(farm.aep_gwh(x, y), rel=1e-13)
    assert_close([by_x, by_y], differences(farm.aep_gwh, x, y, step=1.0), rel=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        wake_model("nygaard_2022"),
        wake_model("bastankhah_gaussian"),
        BastankhahGaussian(reference_speed="effective", superposition="linear"),
        wake_model("iea37_gaussian"),
        wake_model("jensen"),
        Jensen(expansion=0.04),
    ],
    ids=model_name,
)
def test_against_autograd(model, site_file, turbines, pywake):
    directions, speeds = np.arange(0.0, 360.0, 15.0), np.arange(4.0, 20.0, 2.0)
    site = Site.from_netcdf(site_file, directions=directions, speeds=speeds)
    x, y = random_layout(14, seed=11, density_m=1000.0, apart_m=350.0)
    kinds = np.arange(14) % len(turbines)
    _, by_x, by_y = WindFarm(site, [turbines[k] for k in kinds], model).aep_gradient(x, y)

    def compute():
        import pywake_peer as peer

        farm = peer.peer_farm(model, peer.peer_site(site_file), turbines)
        case = {"x": x, "y": y, "type": kinds, "wd": directions, "ws": speeds}
        return {"gradient": farm.aep_gradients(wrt_arg=["x", "y"], **case)}

    pywake.numbers(compute).assert_close("gradient", [by_x, by_y], of_largest=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "nygaard_2022",
        "bastankhah_gaussian",
        "iea37_gaussian",
        "jensen",
        pytest.param("no_wake", marks=pytest.mark.slow),
    ],
)
def test_no_nan_where_it_could_be_expected(name, turbine):
    """Exactly upstream, in one line, side by side, within a rotor's width (saturated), at a knot of the curves."""
    knot = float(turbine.curve.ends[90])
    site = Site.from_table([0.0, 90.0, 180.0, 270.0], [knot], np.full((4, 1), 0.25), 0.1)
    x = np.array([0.0, 0.0, 0.0, 500.0, 500.0, 30.0])
    y = np.array([0.0, 1000.0, 1000.5, 0.0, 1000.0, 1.0])
    farm = WindFarm(site, turbine, name)
    aep, by_x, by_y = farm.aep_gradient(x, y)
    assert np.isfinite([aep, *by_x, *by_y]).all()
    assert np.isfinite(farm.simulate(x, y).wake_loss).all()


def test_a_saturated_deficit(turbine):
    """With a thrust near 1 the deficit just behind the rotor is the whole wind: constant, not infinitely steep."""
    blocked = Turbine(
        wind_speeds_m_s=[3, 25],
        power_mw=[1, 9],
        thrust_coefficient=[0.99, 0.99],
        rotor_diameter_m=180,
        hub_height_m=110,
    )
    site = Site.from_table([270.0], [10.0], [[1.0]], 0.05)
    for model in ("nygaard_2022", BastankhahGaussian(induction="momentum"), BastankhahGaussian(initial_width=0.1)):
        aep, by_x, by_y = WindFarm(site, blocked, model).aep_gradient([0.0, 1.0, 400.0], [0.0, 0.0, 3.0])
        assert np.isfinite([aep, *by_x, *by_y]).all()


def test_moving_the_whole_farm_changes_nothing(site, turbine):
    _, by_x, by_y = WindFarm(site, turbine).aep_gradient(*random_layout(30, seed=3))
    assert abs(by_x.sum()) < 1e-12 * np.abs(by_x).sum() * 30
    assert abs(by_y.sum()) < 1e-12 * np.abs(by_y).sum() * 30


def test_neighbours_are_not_moved_and_do_not_count(turbine):
    site = Site.from_weibull([0.5, 0.5], [9, 10], [2, 2], 0.08, directions=np.arange(0, 360, 10))
    near = Neighbours([-900.0, -1000.0], [100.0, 900.0], smooth_turbine())
    farm = WindFarm(site, smooth_turbine(), "bastankhah_gaussian", neighbours=near)
    x, y = np.array([0.0, 700.0, 300.0]), np.array([0.0, 200.0, 900.0])
    aep, by_x, by_y = farm.aep_gradient(x, y)
    assert aep == pytest.approx(farm.aep_gwh(x, y), rel=1e-13)
    assert len(by_x) == 3
    assert_close([by_x, by_y], differences(farm.aep_gwh, x, y, step=1.0), rel=1e-6)


@pytest.mark.tiny
@pytest.mark.parametrize("name", ["nygaard_2022", "bastankhah_gaussian", "iea37_gaussian", "jensen"])
def test_forward_and_gradient_agree(name, tiny_site, turbine):
    """The gradient's own forward pass is the same function; and its slope is right, loosely (the table has kinks)."""
    x, y = np.array([0.0, 400.0, 150.0]), np.array([0.0, 900.0, 1900.0])
    farm = WindFarm(tiny_site, turbine, name)
    aep, by_x, by_y = farm.aep_gradient(x, y)
    assert aep == pytest.approx(farm.aep_gwh(x, y), rel=1e-13)
    assert_close([by_x, by_y], differences(farm.aep_gwh, x, y, step=1e-3), rel=2e-2)
