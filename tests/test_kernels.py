"""The formulas and loops, also as plain Python (compilation off), against slow twins."""

import dataclasses
import math

import numba
import numpy as np
import pytest

from conftest import default_first
from leeward.errors import InputError
from leeward.wind import Site, Turbine, WakeModel, WindFarm, known_wake_models
from leeward.wind.kernels.data import curves_of
from leeward.wind.kernels.numerics import exp_below_zero, find_piece, log_of_ratio
from leeward.wind.overlap import overlap_factors
from leeward.wind.wake_models import BastankhahGaussian, Formulas, Jensen, custom_model, wake_model
from leeward.wind.wake_models.base import Range, Rotor
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
    for logarithm in (log_of_ratio, numba.njit(lambda n, d: log_of_ratio(n, d))):
        ours = [logarithm(3.7 * r, 3.7) for r in ratios]
        np.testing.assert_allclose(ours, np.log(ratios), rtol=2e-15, atol=1e-15)


def test_a_speed_that_is_no_number_is_no_index():
    """The formulas of a custom model may give NaN, which would read anywhere in memory."""
    curves = curves_of([turbine.curve for turbine in TYPES])
    for piece in (find_piece, numba.njit(lambda speed, kind, curves: find_piece(speed, kind, curves))):
        assert [piece(math.nan, kind, curves) for kind in range(2)] == curves.first_piece[:, 0].tolist()


def test_exponential():
    powers = np.r_[0.0, -1e-12, -np.geomspace(1e-6, 127.9, 500)]
    for exponential in (exp_below_zero, numba.njit(lambda p: exp_below_zero(p))):
        np.testing.assert_allclose([exponential(p) for p in powers], np.exp(powers), rtol=3e-13)
        assert exponential(-1e6) < 1e-55


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
    rotor = Rotor(downwind, distance, mirror_distance, radius)
    source = f.source(thrust, speed / 12, turbine.rotor_diameter_m, 0.08, p)
    if not partials:
        return f.contribution(f.wake_at(rotor, source, p), p, table)
    by_thrust, by_ratio = f.source_slopes(thrust, speed / 12, turbine.rotor_diameter_m, 0.08, p)
    by_speed = type(source)(*(a * slope + b / 12 for a, b in zip(by_thrust, by_ratio, strict=True)))
    return f.contribution_slopes(f.wake_slopes(rotor, source, by_speed, p), rotor, p, table)


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


def without_derivatives(model):
    """The same model, of a class that has no derivatives of its own."""
    f = model.formulas

    class Plain(type(model)):
        name = f"plain_{model.name}"
        formulas = Formulas(f.source, f.wake_at, f.contribution, f.reach)

    return Plain(**vars(model))


@pytest.mark.slow  # each compiles a model of its own; test_custom.py has a quick one
@pytest.mark.parametrize("model", [MODELS[2], MODELS[4]], ids=lambda m: m.name)
def test_a_model_without_derivatives_takes_differences(model, tiny_site):
    turbine = Turbine(
        wind_speeds_m_s=[0, 30], power_mw=[0, 9], thrust_coefficient=[0.85, 0.3], rotor_diameter_m=180, hub_height_m=110
    )
    x, y = np.array([0.0, 510.0, 930.0]), np.array([0.0, 1210.0, 310.0])
    farm, plain = (WindFarm(tiny_site, turbine, m) for m in (model, without_derivatives(model)))
    aep, by_x, by_y = plain.aep_gradient(x, y)
    _, *expected = farm.aep_gradient(x, y)
    assert aep == pytest.approx(farm.aep_gwh(x, y), rel=1e-13)
    np.testing.assert_allclose([by_x, by_y], expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    step = np.array([0.0, 1e-2, 0.0])
    difference = (plain.aep_gwh(x + step, y) - plain.aep_gwh(x - step, y)) / 2e-2
    assert by_x[1] == pytest.approx(difference, rel=1e-5)
    assert model.remarks == ()
    assert "differences" in plain.wake_model.remarks[0]


def test_what_is_no_custom_model():
    known = Jensen.formulas

    class Bare(WakeModel):
        pass

    class Half(Jensen):
        formulas = dataclasses.replace(known, wake_slopes=None)

    class Unnamed(Jensen):
        formulas = Formulas(lambda *_: (0.0,), known.wake_at, known.contribution, known.reach)

    for wrong, words in (
        (Jensen(), "expected a class derived from"),
        (dict, "expected a class derived from"),
        (Bare, "no `formulas`"),
        (Half, "both wake_slopes and contribution_slopes"),
        (Unnamed, "NamedTuple"),
    ):
        with pytest.raises(InputError, match=words):
            custom_model(wrong)
    with pytest.raises(InputError, match="width"):
        custom_model(Jensen, {"width": 1.0})
    assert custom_model(Jensen, {"expansion": 0.05}) == Jensen(expansion=0.05)
    assert wake_model("leeward.wind.wake_models.jensen:Jensen") == Jensen()
    for name, words in (("nowhere_at_all:Wake", "nowhere_at_all"), ("leeward.wind:Wake", "no function or class .Wake")):
        with pytest.raises(InputError, match=words):
            wake_model(name)


@pytest.mark.parametrize("name", known_wake_models())
def test_nothing_beyond_its_reach(name):
    model = wake_model(name)
    f, p, table = model.formulas, model.parameters(), model.table()
    for downwind in (0.0, 500.0, 4000.0, 30000.0):
        for thrust in (0.05, 0.5, 0.85):
            away = f.reach(Range(downwind, 0.05, 0.85, 200.0, 0.08, 100.0), p)
            if math.isinf(away):
                continue
            source = f.source(thrust, 1.0, 200.0, 0.08, p)
            rotor = Rotor(downwind, away * 1.000001, math.hypot(away, 250.0), 100.0)
            left_out = f.contribution(f.wake_at(rotor, source, p), p, table)
            assert (math.sqrt(left_out) if model.squared else left_out) <= 2e-11


@pytest.mark.parametrize("name", default_first(known_wake_models()))
def test_every_question_runs_uncompiled_too(name, tiny_site):
    x, y = [0.0, 500.0, 900.0], [0.0, 1200.0, 300.0]
    farm = WindFarm(tiny_site, TYPES[0], name)
    simulation = farm.simulate(x, y)
    assert 0 < simulation.total_aep_gwh <= simulation.gross_aep_gwh.sum() * (1 + 1e-13)
    aep, by_x, by_y = farm.aep_gradient(x, y)
    assert aep == pytest.approx(simulation.total_aep_gwh, rel=1e-13)
    estimate, by_x, by_y = farm.sampled_aep_gradient(x, y, 5, np.random.default_rng(0))
    assert estimate > 0
    assert len(by_x) == len(by_y) == 3
    free = farm.next_turbine_aep_gwh([], [], [0.0], [0.0])[0]
    assert free == pytest.approx(simulation.gross_aep_gwh[0], rel=1e-13)
    assert farm.next_turbine_aep_gwh(x, y, [700.0], [700.0])[0] <= free * (1 + 1e-13)
