"""The formulas and loops, also as plain Python (compilation off), against slow twins."""

import math

import numpy as np
import pytest

from conftest import default_first
from leeward.wind import Site, Turbine, WindFarm, known_wake_models
from leeward.wind.kernels.numerics import exp_below_zero, log_of_ratio
from leeward.wind.overlap import overlap_factors
from leeward.wind.wake_models import BastankhahGaussian, Jensen, wake_model
from naive import effective_speeds, gaussian_overlap

pytestmark = pytest.mark.tiny

TYPES = [
    Turbine.generic(15, 240, 150),
    Turbine.generic(8, 170, 110),
]


def test_default_model_against_its_twin():
    x, y = [0.0, 300.0, 900.0, -200.0], [0.0, 1400.0, 2600.0, 4000.0]
    turbines = [TYPES[0], TYPES[1], TYPES[0], TYPES[1]]
    directions, speeds = [185.0, 200.0, 350.0], [8.0, 12.0]
    site = Site.from_table(directions, speeds, np.full((3, 2), 1 / 6), 0.09, kind="exact")
    ours = WindFarm(site, turbines).simulate(x, y, per_condition=True).condition_speed_m_s
    for d, direction in enumerate(directions):
        for s, speed in enumerate(speeds):
            # the table that PyWake and we interpolate in is good to about 1e-5
            expected = effective_speeds(x, y, turbines, direction, speed, 0.09)
            np.testing.assert_allclose(ours[:, d, s], expected, rtol=0, atol=1e-3)


def test_overlap_factors():
    factors = overlap_factors()
    for radius, distance in [(0.0, 0.0), (0.0, 1.5), (0.4, 0.0), (1.3, 2.2), (2.0, 4.0), (6.0, 1.0)]:
        exact = gaussian_overlap(radius, distance, cells=400)
        assert factors[round(radius * 100), round(distance * 100)] == pytest.approx(exact, abs=2e-5)


def test_logarithm():
    ratios = np.r_[1.0, 1.0 + 1e-12, np.geomspace(1.0001, 65000, 500)]
    ours = [log_of_ratio(3.7 * r, 3.7) for r in ratios]
    np.testing.assert_allclose(ours, np.log(ratios), rtol=2e-15, atol=1e-15)


def test_exponential():
    powers = np.r_[0.0, -1e-12, -np.geomspace(1e-6, 127.9, 500)]
    np.testing.assert_allclose([exp_below_zero(p) for p in powers], np.exp(powers), rtol=3e-13)
    assert exp_below_zero(-1e6) < 1e-55


MODELS = [
    wake_model("nygaard_2022"),
    wake_model("bastankhah_gaussian"),
    BastankhahGaussian(induction="momentum", reference_speed="effective", superposition="linear"),
    wake_model("iea37_gaussian"),
    Jensen(expansion=0.07),
]


def contribution(model, downwind, distance, mirror_distance, speed, turbine, partials=False):
    """The wake's contribution as a function of geometry and of the wind speed at its source (free wind: 12 m/s)."""
    f, p, table = model.formulas, model.parameters(), model.table()
    thrust = float(turbine.thrust_coefficient(speed))
    slope = float(turbine.thrust_coefficient(speed + 1e-3) - turbine.thrust_coefficient(speed - 1e-3)) / 2e-3
    radius = 90.0
    s = f.source(thrust, speed / 12, turbine.rotor_diameter_m, 0.08, p)
    if not partials:
        return f.look(f.view(downwind, distance, mirror_distance, radius, s, p), p, table)
    by = f.source_slopes(thrust, speed / 12, turbine.rotor_diameter_m, 0.08, p)
    along = tuple(by[m] * slope + by[4 + m] / 12 for m in range(4))
    views = f.view_partials(downwind, distance, mirror_distance, radius, s, along, p)
    return f.look_partials(views, distance, mirror_distance, radius, p, table)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_partials_of_every_formula(model):
    """A random direction in (downwind, distance, mirror distance, speed): its slope is that of a difference."""
    turbine = Turbine(
        wind_speeds_m_s=[0, 30], power_mw=[0, 9], thrust_coefficient=[0.85, 0.3], rotor_diameter_m=180, hub_height_m=110
    )
    rng = np.random.default_rng(4)
    for _ in range(30):
        point = np.array([rng.uniform(300, 6000), rng.uniform(5, 350), rng.uniform(200, 500), rng.uniform(5, 11)])
        tangent = rng.normal(size=4) * [1.0, 1.0, 1.0, 0.01]
        value, *partials = contribution(model, *point, turbine, partials=True)
        assert value == pytest.approx(contribution(model, *point, turbine), rel=1e-12)
        # within one cell of the overlap table, and within one piece of a top hat
        step = 1e-4
        ahead, behind = (contribution(model, *(point + sign * step * tangent), turbine) for sign in (1, -1))
        slope = float(np.dot(partials, tangent))
        # the overlap table of the default model has a kink now and then
        tolerance = 2e-3 if model.name == "nygaard_2022" else 1e-6
        assert (ahead - behind) / (2 * step) == pytest.approx(slope, rel=tolerance, abs=1e-9)


@pytest.mark.parametrize("name", known_wake_models())
def test_nothing_beyond_its_reach(name):
    model = wake_model(name)
    f, p, table = model.formulas, model.parameters(), model.table()
    for downwind in (0.0, 500.0, 4000.0, 30000.0):
        for thrust in (0.05, 0.5, 0.85):
            away = f.reach(downwind, 0.05, 0.85, 200.0, 0.08, 100.0, p)
            if math.isinf(away):
                continue
            s = f.source(thrust, 1.0, 200.0, 0.08, p)
            views = f.view(downwind, away * 1.000001, math.hypot(away, 250.0), 100.0, s, p)
            left_out = f.look(views, p, table)
            assert (math.sqrt(left_out) if model.squared else left_out) <= 2e-11


@pytest.mark.parametrize("name", default_first(known_wake_models()))
def test_every_question_runs_uncompiled_too(name, tiny_site):
    x, y = [0.0, 500.0, 900.0], [0.0, 1200.0, 300.0]
    farm = WindFarm(tiny_site, TYPES[0], name)
    simulation = farm.simulate(x, y)
    assert 0 < simulation.total_aep_gwh <= simulation.free_aep_gwh.sum() * (1 + 1e-13)
    aep, by_x, by_y = farm.aep_gradient(x, y)
    assert aep == pytest.approx(simulation.total_aep_gwh, rel=1e-13)
    estimate, by_x, by_y = farm.sampled_aep_gradient(x, y, 5, np.random.default_rng(0))
    assert estimate > 0
    assert len(by_x) == len(by_y) == 3
    free = farm.next_turbine_aep([], [], [0.0], [0.0])[0]
    assert free == pytest.approx(simulation.free_aep_gwh[0], rel=1e-13)
    assert farm.next_turbine_aep(x, y, [700.0], [700.0])[0] <= free * (1 + 1e-13)
