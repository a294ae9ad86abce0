"""Reduced wind roses and samples: small, and they tell layouts apart as the full rose does."""

import numpy as np
import pytest

from layout_cases import square
from leeward.campaign import builtin
from leeward.layout import LayoutProblem, optimise
from leeward.layout.objective import Objective
from leeward.layout.roses import DEFICIT, Stakes
from leeward.layout.starts import fill_at_random
from leeward.wind import Site, Turbine, WindFarm

NOWHERE = np.empty(0)


def table(directions=72, speeds=20, seed=0):
    """A table of exact conditions; every direction has a distribution of its own."""
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.full(directions * speeds, 1.0)).reshape(directions, speeds)
    return Site.from_table(
        np.arange(directions) * 360 / directions, np.linspace(1, 25, speeds), probability, 0.07, kind="exact"
    )


SITES = {
    "weibull": builtin.site,
    "table": lambda: table(360),
    "series": lambda: Site.from_time_series(*series(), 0.07),
}


def series():
    rng = np.random.default_rng(3)
    return rng.uniform(0, 360, 3000), 10 * rng.weibull(2.0, 3000)


def at_stake(turbine, conditions):
    """Return the energy that a strong wake would cost in each condition, by the definition."""
    loss = turbine.power_mw(conditions.speed) - turbine.power_mw((1 - DEFICIT) * conditions.speed)
    return conditions.weight * np.maximum(loss, 0)


def stake(site, turbine):
    return float(at_stake(turbine, site.conditions).sum())


@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize("speeds", [1, 8])
def test_a_reduced_rose_keeps_the_energy_at_stake(name, speeds, turbine):
    site = SITES[name]()
    small = Stakes(site, turbine.power_mw).reduced(360, speeds)
    assert small.conditions.speed.shape[0] <= 360
    assert small.conditions.speed.shape[1] == speeds
    assert stake(small, turbine) == pytest.approx(stake(site, turbine), rel=1e-9)
    lowest = site.conditions.speed[turbine.power_mw(site.conditions.speed) > 0].min()
    assert small.conditions.speed.min() >= lowest - 1e-9  # nothing below cut-in


def test_merged_directions_stay_where_the_energy_is(turbine):
    """Three directions around north, of which one matters."""
    site = Site.from_table([359.0, 0.0, 1.0], [9.0], [[0.0], [0.0], [0.5]], 0.07, kind="exact")
    small = Stakes(site, turbine.power_mw).reduced(1, 1)
    assert small.conditions.direction == pytest.approx([1.0])
    both = Site.from_table([359.0, 1.0], [9.0], [[0.5], [0.5]], 0.07, kind="exact")
    assert Stakes(both, turbine.power_mw).reduced(1, 1).conditions.direction == pytest.approx([0.0])


@pytest.mark.parametrize("name", SITES)
def test_a_reduced_rose_ranks_layouts_as_the_full_one(name, turbine):
    """A rose of 720 conditions drawn at random, which the optimiser once used, fails this for the table."""
    farm = WindFarm(SITES[name](), turbine)
    problem = LayoutProblem(farm, square(6000), 12, spacing_m=720)
    objective = Objective(problem)
    rng = np.random.default_rng(0)
    layouts = [problem.repaired(*fill_at_random(problem, NOWHERE, NOWHERE, rng)) for _ in range(12)]
    full = np.array([farm.aep_gwh(*layout) for layout in layouts])
    judged = np.array([objective.judge(*layout)[1] for layout in layouts])
    assert np.std(judged - full) < 0.05 * np.std(full)
    assert judged == pytest.approx(full, rel=0.005)  # the gross yield is that of the full rose


@pytest.mark.parametrize("name", SITES)
def test_samples_are_unbiased(name, turbine):
    site = SITES[name]()
    stakes = Stakes(site, turbine.power_mw)
    rng = np.random.default_rng(0)
    for _ in range(5):
        drawn = stakes.draw(100, rng)
        assert drawn.weight.shape == (100, 1)
        assert (np.diff(drawn.direction) >= 0).all()
        assert (at_stake(turbine, drawn) > 0).all()  # no condition in which a wake costs nothing
        assert at_stake(turbine, drawn).sum() == pytest.approx(stake(site, turbine), rel=1e-9)
    # the energy at stake in eastern wind, weighted by speed
    conditions = site.conditions
    expected = at_stake(turbine, conditions) * conditions.speed * (conditions.direction < 180)[:, None]
    drawn = [stakes.draw(100, rng) for _ in range(400)]
    found = [(at_stake(turbine, d) * d.speed * (d.direction < 180)[:, None]).sum() for d in drawn]
    assert np.mean(found) == pytest.approx(expected.sum(), rel=0.01)


def test_wind_in_which_wakes_cost_nothing():
    """All conditions are far above rated wind speed; the full rose is used instead."""
    turbine = Turbine.iea37_10mw()
    site = Site.from_table([0.0, 120.0, 240.0], [22.0, 24.0], [[0.1, 0.2]] * 3, 0.07, kind="exact")
    assert not Stakes(site, turbine.power_mw)
    problem = LayoutProblem(WindFarm(site, turbine), square(4000), 4, spacing_m=720)
    assert optimise(problem, 0, effort="fast").wake_loss == pytest.approx(0.0, abs=1e-12)
