"""Regret and robust choice, against slow and obvious twins."""

import itertools
import math

import numpy as np
import pytest

from leeward.errors import InputError
from leeward.store import Evaluation, EvaluationKey
from leeward.study import comparison
from leeward.study.comparison import MissingResultsError, compare, matrix_of

RNG = np.random.default_rng(7)


def evaluation(target, scenario, aep, *, installed=100.0, weight=1.0, cases=("all", "none")):
    details = {"target": f"layout {target}", "scenario": f"scenario {scenario}", "weight": weight}
    aeps = np.array([aep, *[aep + 10.0] * (len(cases) - 1)])
    return Evaluation(
        key=EvaluationKey(target, scenario),
        cases=cases,
        aep_gwh=aeps,
        gross_aep_gwh=aep + 10.0,
        fingerprint="f",
        details=details | {"installed_mw": installed},
    )


def table(values, weights=None, **options):
    weights = np.ones(np.shape(values)[1]) if weights is None else weights
    return matrix_of(
        [evaluation(t, s, aep, weight=float(weights[s])) for t, row in enumerate(values) for s, aep in enumerate(row)],
        "all",
        **options,
    )


def slow_cvar(row, weights, alpha, parts=840):
    """Cut every scenario into equal crumbs, and average the worst ones."""
    crumbs = sorted(value for value, weight in zip(row, weights, strict=True) for _ in range(round(weight * parts)))
    worst = crumbs[: round(alpha * len(crumbs))]
    return sum(worst) / len(worst)


@pytest.mark.parametrize("seed", range(20))
def test_measures_agree_with_slow_twins(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 9, (4, 5)).astype(float)  # small numbers, so that some tie
    weights = rng.integers(0, 4, 5).astype(float)
    weights[rng.integers(5)] += 1.0
    shares = [weight / sum(weights) for weight in weights]
    counting = [s for s in range(5) if weights[s] > 0]
    best = [max(values[t][s] for t in range(4)) for s in range(5)]
    for t in range(4):
        lost = [best[s] - values[t][s] for s in range(5)]
        assert comparison.regret(values)[t].tolist() == lost
        assert comparison.relative_regret(values)[t] == pytest.approx([lost[s] / best[s] for s in range(5)])
        mean = sum(shares[s] * values[t][s] for s in range(5))
        assert comparison.weighted_mean(values, weights)[t] == pytest.approx(mean)
        assert comparison.worst_case(values, weights)[t] == min(values[t][s] for s in counting)
        assert comparison.maximum_regret(values, weights)[t] == max(lost[s] for s in counting)
        mean = sum(shares[s] * lost[s] for s in range(5))
        assert comparison.mean_regret(values, weights)[t] == pytest.approx(mean)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.25, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_cvar_by_brute_force(alpha, seed):
    """The scenario at the boundary counts in part."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(100, 200, (3, 6))
    weights = rng.integers(0, 5, 6).astype(float)
    weights[0] += 1.0
    found = comparison.cvar(values, weights, alpha)
    assert found == pytest.approx([slow_cvar(row, weights, alpha) for row in values], rel=1e-12)


def test_cvar_between_worst_case_and_mean():
    values = RNG.uniform(100, 200, (5, 30))
    weights = RNG.uniform(0.1, 1.0, 30)
    assert comparison.cvar(values, weights, 1.0) == pytest.approx(comparison.weighted_mean(values, weights))
    assert comparison.cvar(values, weights, 1e-6) == pytest.approx(comparison.worst_case(values, weights))
    assert comparison.cvar(values, 1000.0 * weights, 0.3) == pytest.approx(comparison.cvar(values, weights, 0.3))
    rising = [comparison.cvar(values, weights, alpha) for alpha in np.linspace(0.01, 1.0, 40)]
    assert all((after >= before - 1e-9).all() for before, after in itertools.pairwise(rising))


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.01, math.nan])
def test_alpha_is_a_share(alpha):
    with pytest.raises(InputError, match="alpha is"):
        comparison.cvar(np.ones((1, 1)), np.ones(1), alpha)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -1.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_weights_that_cannot_be_used(weights):
    with pytest.raises(InputError, match="weights of the scenarios"):
        comparison.shares(np.array(weights))


@pytest.mark.parametrize("seed", range(30))
def test_the_pareto_front_has_all_that_nothing_dominates(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 6, (2, 12)).astype(float)  # many ties
    expected = [
        i
        for i in range(12)
        if not any(
            first[j] >= first[i] and second[j] >= second[i] and (first[j] > first[i] or second[j] > second[i])
            for j in range(12)
        )
    ]
    front = comparison.pareto_front(first, second)
    assert sorted(front) == expected
    assert (np.diff(first[front]) <= 0).all()
    assert (np.diff(second[front]) >= 0).all()


def test_what_each_criterion_selects():
    values = np.array(  # in a frequent and in a rare scenario
        [
            [100.0, 60.0],  # the best on average
            [90.0, 86.0],  # the best worst case
            [97.0, 72.0],
            [93.0, 82.0],  # the smallest maximum regret
        ]
    )
    found = compare(table(values, [9.0, 1.0]), alpha=0.2)
    assert found.selected == {"weighted_mean": (0,), "worst_case": (1,), "cvar": (1,), "maximum_regret": (3,)}
    assert found.criteria["weighted_mean"] == pytest.approx([96.0, 89.6, 94.5, 91.9])
    assert found.criteria["cvar"] == pytest.approx([80.0, 88.0, 84.5, 87.5])
    assert found.criteria["maximum_regret"].tolist() == [26.0, 10.0, 14.0, 7.0]
    assert found.front(0, 1) == [0, 2, 3, 1]
    assert (found.is_by_factor, found.notes) == (False, ())


def test_equal_layouts_are_all_selected():
    found = compare(table([[1.0, 2.0], [1.0, 2.0], [0.5, 2.0]]))
    assert set(found.selected.values()) == {(0, 1), (0, 1)}
    assert found.front(0, 1) == [0, 1]


def test_a_scenario_of_weight_0_counts_in_no_criterion():
    values = np.array([[100.0, 1.0], [90.0, 80.0]])
    found = compare(table(values, [1.0, 0.0]))
    assert set(found.selected.values()) == {(0,)}
    assert found.regret[0, 1] == 79.0  # it is still shown


def test_other_installed_power_is_compared_by_capacity_factor():
    results = [evaluation(0, 0, 400.0, installed=100.0), evaluation(1, 0, 440.0, installed=120.0)]
    found = compare(matrix_of(results, "all"))
    assert found.is_by_factor
    assert found.selected["weighted_mean"] == (0,)
    assert found.values[:, 0] == pytest.approx([400 / 876, 440 / 1051.2])
    assert "compared by capacity factor" in found.notes[0]
    results.append(evaluation(2, 0, 440.0, installed=math.nan))
    with pytest.raises(InputError, match="that of layout 2 is not known"):
        compare(matrix_of(results, "all"))


def test_similar_installed_power_is_compared_by_aep():
    results = [evaluation(0, 0, 400.0, installed=100.0), evaluation(1, 0, 401.0, installed=100.4)]
    assert compare(matrix_of(results, "all")).selected["worst_case"] == (1,)


def test_the_matrix_of_a_case():
    results = [evaluation(t, s, 100.0 + 10 * t + s, weight=s + 1.0) for s in (5, 2) for t in (1, 0)]
    found = matrix_of(results, "none")
    assert (found.layouts, found.layout_numbers) == (("layout 0", "layout 1"), (0, 1))
    assert (found.scenarios, found.scenario_numbers) == (("scenario 2", "scenario 5"), (2, 5))
    assert found.weights.tolist() == [3.0, 6.0]
    assert found.aep_gwh.tolist() == [[112.0, 115.0], [122.0, 125.0]]
    assert matrix_of(results, "none", weights={2: 0.5, 5: 0.25}).weights.tolist() == [0.5, 0.25]
    with pytest.raises(InputError, match="has no case 'external'; it has all, none"):
        matrix_of(results, "external")


def test_missing_results_are_named():
    results = [evaluation(t, s, 100.0) for t in (0, 1) for s in (0, 1, 2) if (t, s) != (1, 1)]
    with pytest.raises(
        MissingResultsError, match=r"1 of 6 results are missing: target1_scenario1; .*--only-complete"
    ) as e:
        matrix_of(results, "all")
    assert e.value.missing == [EvaluationKey(1, 1)]
    found = matrix_of(results, "all", only_complete=True)
    assert found.scenario_numbers == (0, 2)
    assert "2 of 3 scenarios are compared" in found.notes[0]


def test_tasks_of_the_study_without_results():
    expected = [EvaluationKey(t, s) for t in (0, 1, 2) for s in (0, 1)]
    results = [evaluation(t, 0, 100.0 + t) for t in (0, 1)]
    with pytest.raises(MissingResultsError, match="4 of 6 results are missing"):
        matrix_of(results, "all", expected=expected)
    found = matrix_of(results, "all", expected=expected, only_complete=True)
    assert (found.layout_numbers, found.scenario_numbers) == ((0, 1), (0,))
    assert found.notes[0] == "1 of 3 layouts have no results."
    with pytest.raises(InputError, match="no scenario has results of all layouts"):
        matrix_of([evaluation(0, 0, 1.0), evaluation(1, 1, 1.0)], "all", only_complete=True)


def test_nothing_to_compare():
    with pytest.raises(InputError, match="no results to compare"):
        matrix_of([], "all")


def test_results_with_different_weights():
    results = [evaluation(0, 0, 1.0, weight=1.0), evaluation(1, 0, 1.0, weight=2.0)]
    with pytest.raises(InputError, match=r"scenario 0 has the weights 1.0, 2.0"):
        matrix_of(results, "all")


def test_scenarios_by_name_and_number():
    found = table([[1.0, 2.0, 3.0]])
    assert (found.scenario("scenario 1"), found.scenario("2")) == (1, 2)
    with pytest.raises(InputError, match=r"no scenario is called 'x'; give a name or number of 0 'scenario 0', "):
        found.scenario("x")
