"""Flow maps: PyWake's numbers to 1e-8 m/s, a slow twin, and the mean that energy weights."""

import itertools

import numpy as np
import pytest

from conftest import default_first, random_layout
from leeward.errors import InputError
from leeward.wind import Neighbours, Site, Turbine, WindFarm
from leeward.wind.wake_models import BastankhahGaussian, Jensen, Nygaard2022, wake_model
from naive import effective_speeds
from references import model_name as names

MODELS = [
    wake_model("nygaard_2022"),
    Nygaard2022(expansion=0.06, ambient_turbulence=1.2, added_turbulence=0.6, initial_width=0.2, thrust_limit=0.9),
    wake_model("bastankhah_gaussian"),
    BastankhahGaussian(superposition="linear", induction="momentum", reference_speed="effective"),
    wake_model("iea37_gaussian"),
    Jensen(expansion=0.05),
    wake_model("no_wake"),
]
SMALL = Turbine.generic(8, 170, 110)


def points_about(x, y, count, seed):
    """At random, where turbines stand, and some rotor diameters straight behind them in a wind from the west."""
    rng = np.random.default_rng(seed)
    at_x = rng.uniform(x.min() - 2000, x.max() + 2000, count)
    at_y = rng.uniform(y.min() - 2000, y.max() + 2000, count)
    return np.r_[at_x, x, x + 700.0], np.r_[at_y, y, y]


@pytest.mark.parametrize("height", [None, 60.0, 260.0], ids=["hub", "low", "high"])
@pytest.mark.parametrize("model", default_first(MODELS), ids=names)
def test_against_pywake(model, height, site_file, turbine, pywake):
    x, y = random_layout(15, seed=6)
    at_x, at_y = points_about(x, y, 120, seed=7)
    directions, speeds = [0.0, 37.5, 270.0], [6.0, 11.0]
    conditions = list(itertools.product(directions, speeds))

    def compute():
        from py_wake.flow_map import Points

        import pywake_peer as peer

        points = Points(at_x, at_y, np.full(len(at_x), height or turbine.hub_height_m))
        result = peer.peer_farm(model, peer.peer_site(site_file), [turbine])(x, y, wd=directions, ws=speeds)
        return {f"{wd} {ws}": result.flow_map(points, wd=wd, ws=ws).WS_eff.values for wd, ws in conditions}

    theirs = pywake.numbers(compute)
    flow = WindFarm(Site.from_netcdf(site_file), turbine, model).flow(x, y)
    free = 0
    for direction, speed in conditions:
        ours = flow.speed(at_x, at_y, direction_deg=direction, speed_m_s=speed, height_m=height)
        theirs.assert_close(f"{direction} {speed}", ours, atol=1e-8)
        free += int((ours == speed).sum())
        # both within wakes and outside
        assert (ours < 0.98 * speed).any() or model.name == "no_wake"
    assert free > 0


@pytest.mark.parametrize("model", default_first(MODELS), ids=names)
def test_several_types_and_neighbours_against_pywake(model, site_file, turbine, pywake):
    """The neighbours are turbines like the others, for all that the wind knows."""
    x, y = random_layout(12, seed=9)
    kinds = np.arange(12) % 2
    turbines = [turbine, SMALL]
    around = Neighbours(x[8:], y[8:], [turbines[k] for k in kinds[8:]])
    farm = WindFarm(Site.from_netcdf(site_file), [turbines[k] for k in kinds[:8]], model, neighbours=around)
    at_x, at_y = points_about(x, y, 60, seed=10)

    def compute():
        from py_wake.flow_map import Points

        import pywake_peer as peer

        mean_height = np.full(len(at_x), 0.5 * (turbine.hub_height_m + SMALL.hub_height_m))
        result = peer.peer_farm(model, peer.peer_site(site_file), turbines)(x, y, type=kinds, wd=[250.0], ws=[9.0])
        return {"speed": result.flow_map(Points(at_x, at_y, mean_height), wd=250.0, ws=9.0).WS_eff.values}

    ours = farm.flow(x[:8], y[:8]).speed(at_x, at_y, direction_deg=250.0, speed_m_s=9.0)
    pywake.numbers(compute).assert_close("speed", ours, atol=1e-8)


@pytest.mark.tiny
@pytest.mark.parametrize("model", default_first(MODELS), ids=lambda m: m.name)
def test_a_tiny_rotor_feels_the_wind_at_the_point(model):
    """What the rest of the engine says of a turbine that slows nothing down is the wind where it stands.

    To what a rotor of 1 m averages; a top hat's edge and the cells of an overlap table are not near these points.
    """
    big = Turbine.generic(15, 240, 150)
    feather = Turbine(
        wind_speeds_m_s=[3, 25],
        power_mw=[1e-5, 1e-4],
        thrust_coefficient=[1e-9, 1e-9],
        rotor_diameter_m=1.0,
        hub_height_m=95.0,
    )
    x, y = np.array([0.0, 1200.0]), np.array([0.0, 60.0])
    at_x, at_y = np.array([900.0, 2500.0, -400.0]), np.array([20.0, 50.0, 0.0])
    site = Site.from_table([265.0], [9.0], [[1.0]], 0.08)
    flow = WindFarm(site, big, model).flow(x, y).speed(at_x, at_y, direction_deg=265.0, speed_m_s=9.0, height_m=95.0)
    for i in range(3):
        farm = WindFarm(site, [big, big, feather], model)
        felt = farm.simulate(np.r_[x, at_x[i]], np.r_[y, at_y[i]]).effective_speed_m_s[2]
        assert flow[i] == pytest.approx(felt, abs=2e-3)
    assert flow[2] == 9.0


@pytest.mark.tiny
def test_the_default_model_against_its_twin():
    big = Turbine.generic(15, 240, 150)
    x, y = [0.0, 1300.0], [0.0, 100.0]
    site = Site.from_table([260.0], [9.0], [[1.0]], 0.08)
    ours = WindFarm(site, big).flow(x, y).speed([900.0, 2800.0], [120.0, 400.0], direction_deg=260.0, speed_m_s=9.0)
    point = Turbine(
        wind_speeds_m_s=[3, 25],
        power_mw=[0, 4e-4],
        thrust_coefficient=[1e-9, 1e-9],
        rotor_diameter_m=1,
        hub_height_m=150,
    )
    for i, (at_x, at_y) in enumerate([(900.0, 120.0), (2800.0, 400.0)]):
        theirs = effective_speeds([*x, at_x], [*y, at_y], [big, big, point], 260.0, 9.0, 0.08)[2]
        assert ours[i] == pytest.approx(theirs, abs=1e-3)
        assert ours[i] < 8.5


@pytest.mark.tiny
def test_the_mean_is_that_of_all_conditions_weighted_by_energy():
    types = [Turbine.generic(15, 240, 150), SMALL]
    directions, speeds = [10.0, 200.0, 290.0], [0.5, 8.0, 12.0]
    probability = np.array([[0.1, 0.2, 0.05], [0.1, 0.1, 0.05], [0.15, 0.2, 0.05]])
    site = Site.from_table(directions, speeds, probability, np.linspace(0.05, 0.1, 9).reshape(3, 3), kind="exact")
    x, y = [0.0, 900.0, 300.0], [0.0, 100.0, 1500.0]
    flow = WindFarm(site, [types[0], types[1], types[1]]).flow(x, y)
    at_x, at_y = np.meshgrid([-500.0, 400.0, 1500.0], [-800.0, 700.0])
    total, energy, free = np.zeros((2, 3)), 0.0, 0.0
    for d, direction in enumerate(directions):
        for s, speed in enumerate(speeds):
            power = float(types[0].power_mw(speed) + 2 * types[1].power_mw(speed))
            total += probability[d, s] * power * flow.speed(at_x, at_y, direction_deg=direction, speed_m_s=speed)
            energy += probability[d, s] * power
            free += probability[d, s] * power * speed
    mean = flow.mean_speed(at_x, at_y)
    assert mean.shape == (2, 3)
    np.testing.assert_allclose(mean, total / energy, rtol=1e-12)
    assert flow.free_mean_speed() == pytest.approx(free / energy, rel=1e-12)
    assert (mean <= flow.free_mean_speed() * (1 + 1e-12)).all()
    assert mean.min() < 0.99 * flow.free_mean_speed()
    assert flow.energy_weights().sum() == pytest.approx(1.0)
    assert (flow.energy_weights()[:, 0] < 1e-12).all()  # far below cut-in


def test_threads_change_nothing(site, turbine):
    x, y = random_layout(20, seed=3)
    at_x, at_y = points_about(x, y, 10, seed=3)
    one, three = (WindFarm(site, turbine, threads=n).flow(x, y).mean_speed(at_x, at_y) for n in (1, 3))
    assert np.array_equal(one, three)


@pytest.mark.tiny
def test_turbulence_is_the_nearest_condition_s():
    """Of a table whose turbulence differs; a wake in it is wider, so that it is weaker on its axis."""
    site = Site.from_table([260.0, 280.0], [6.0, 12.0], np.full((2, 2), 0.25), [[0.02, 0.05], [0.1, 0.2]], kind="exact")
    flow = WindFarm(site, Turbine.generic(15, 240, 150)).flow([0.0], [0.0])

    def behind(direction, speed, **options):
        angle = np.deg2rad(90.0 - direction)
        at = -2000 * np.cos(angle), -2000 * np.sin(angle)
        return float(flow.speed(*at, direction_deg=direction, speed_m_s=speed, **options))

    for direction, speed, nearest in [(261.0, 7.0, 0.02), (268.0, 10.0, 0.05), (275.0, 8.0, 0.1), (350.0, 11.0, 0.2)]:
        assert behind(direction, speed) == behind(direction, speed, turbulence_intensity=nearest)
    assert behind(260.0, 8.0, turbulence_intensity=0.03) < behind(260.0, 8.0, turbulence_intensity=0.3)


@pytest.mark.slow  # another model than the default: its kernel is compiled for this alone
@pytest.mark.tiny
def test_directions_go_round():
    flow = WindFarm(Site.from_table([0.0], [9.0], [[1.0]]), SMALL, "iea37_gaussian").flow([0.0], [0.0])
    south = flow.speed([0.0, 0.0], [-900.0, 900.0], direction_deg=360.0, speed_m_s=9.0)
    assert south[0] < 8.0
    assert south[1] == 9.0
    assert np.array_equal(south, flow.speed([0.0, 0.0], [-900.0, 900.0], direction_deg=-360.0, speed_m_s=9.0))


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"at_y": [0.0, 1.0]}, r"at_x has the shape \(1,\) and at_y has \(2,\)"),
        ({"at_x": [np.nan]}, r"at_x\[0\] is nan"),
        ({"direction_deg": np.inf}, "direction_deg is inf"),
        ({"direction_deg": "north"}, "direction_deg: expected a number"),
        ({"speed_m_s": 0.0}, "speed_m_s is 0; expected a finite number above 0"),
        ({"height_m": -1.0}, "height_m is -1"),
        ({"turbulence_intensity": 8.0}, "per cent"),
    ],
)
def test_wrong_input(wrong, says, tiny_site):
    flow = WindFarm(tiny_site, SMALL).flow([0.0], [0.0])
    right = {"at_x": [500.0], "at_y": [0.0], "direction_deg": 270.0, "speed_m_s": 9.0}
    with pytest.raises(InputError, match=says):
        flow.speed(**{**right, **wrong})


@pytest.mark.tiny
def test_a_mean_needs_energy():
    flow = WindFarm(Site.from_table([0.0], [0.0], [[1.0]]), SMALL).flow([0.0], [0.0])
    with pytest.raises(InputError, match="yields no energy"):
        flow.mean_speed([0.0], [0.0])
