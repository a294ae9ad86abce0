"""Figures of studies: they hold the data, and can be read."""

import dataclasses

import numpy as np
import pytest

from leeward.errors import InputError
from leeward.plots import regret, study
from leeward.store import EvaluationKey
from leeward.study.comparison import compare, matrix_of
from plot_cases import unreadable
from run_cases import leeward_here
from test_cli_compare import write_study
from test_study_comparison import evaluation
from watched_study import STEPS, evaluated, small_study

RNG = np.random.default_rng(5)


def losses(label="one", n=50, **cases):
    found = cases or {
        "internal": np.full(n, 0.06),
        "external": RNG.gamma(4.0, 0.005, n),
        "all": RNG.uniform(0.05, 0.1, n),
    }
    return study.Losses(label, found, RNG.uniform(0.5, 1.5, n))


def farm(label, left, first=0, end=None):
    x, y = np.meshgrid(left + 1500.0 * np.arange(4), 1500.0 * np.arange(4))
    return study.BuiltFarm(label, x.ravel(), y.ravel(), 240.0, first, end)


def compared(values, names=None):
    values = np.asarray(values, dtype=float)
    results = [evaluation(t, s, aep) for (t, s), aep in np.ndenumerate(values)]
    matrix = matrix_of(results, "all")
    return compare(dataclasses.replace(matrix, layouts=tuple(names)) if names else matrix)


# --- losses ---


def test_losses_are_weighted():
    found = losses()
    figure = study.losses_figure([found], "a study")
    assert [ax.get_title(loc="left").partition(",")[0] for ax in figure.axes] == [
        "internal loss",
        "external loss",
        "total loss",
    ]
    for ax, case in zip(figure.axes, ("internal", "external", "all"), strict=True):
        bars = ax.patches[0].get_data()
        assert bars.values.sum() == pytest.approx(100.0)
        expected, _ = np.histogram(100 * found.by_case[case], bins=bars.edges, weights=found.weights)
        assert bars.values == pytest.approx(100 * expected / found.weights.sum())
        mean = 100 * np.average(found.by_case[case], weights=found.weights)
        assert ax.lines[0].get_xdata()[0] == pytest.approx(mean)
        assert f"mean {mean:.2f} %" in ax.get_title(loc="left")
    assert unreadable(figure) == []


def test_losses_of_several_layouts():
    several = [losses(f"layout {number}") for number in range(3)]
    figure = study.losses_figure(several)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["layout 0", "layout 1", "layout 2"]
    assert unreadable(figure) == []
    many = study.losses_figure([losses(f"layout {number}", n=4) for number in range(9)])
    assert not many.legends
    assert len(many.axes[0].lines[1].get_xdata()) == 36


def test_losses_of_the_cases_that_are_known():
    figure = study.losses_figure([losses(all=np.array([0.1, 0.2]), n=2)])
    assert [ax.get_title(loc="left").partition(",")[0] for ax in figure.axes] == ["total loss"]
    with pytest.raises(InputError, match="add them to `cases` in the study file"):
        study.losses_figure([losses(n=1, none=np.zeros(1))])


# --- build-out ---


def outline(figure, label):
    (found,) = [patch for patch in figure.axes[0].patches if patch.get_gid() == f"outline of {label}"]
    return found


def turbines(figure, label):
    (found,) = [drawn for drawn in figure.axes[0].collections if drawn.get_gid() == f"turbines of {label}"]
    return found


def test_build_out_colours_farms_by_step():
    farms = [farm("west", -12_000.0, first=10), farm("east", 12_000.0, first=90)]
    target = farm("target", 0.0)
    figure = study.build_out_figure(target, farms, n_steps=100, crs="EPSG:25832", title="scenario")
    colours = {each.label: tuple(turbines(figure, each.label).get_facecolor()[0]) for each in [target, *farms]}
    assert len(set(colours.values())) == 3
    for each in [target, *farms]:
        assert turbines(figure, each.label).get_offsets().tolist() == np.column_stack([each.x, each.y]).tolist()
        assert outline(figure, each.label).get_linestyle() == "-"
    assert {text.get_text() for text in figure.axes[0].texts} >= {"west: step 10", "east: step 90"}
    assert unreadable(figure) == []


def test_farms_that_do_not_stand_are_dashed():
    farms = [farm("a", -12_000.0, first=10, end=50), farm("b", 12_000.0, first=40), farm("c", 24_000.0, first=70)]
    times = [f"2030-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(100)]
    figure = study.build_out_figure(farm("target", 0.0), farms, n_steps=100, step=50, times=times)
    lines = {each.label: outline(figure, each.label).get_linestyle() for each in farms}
    assert lines == {"a": "--", "b": "-", "c": "--"}
    assert len(turbines(figure, "c").get_facecolor()) == 0
    assert "do not stand in step 50 (2030-02-23)" in figure.axes[0].get_xlabel().replace("\n", " ")
    with pytest.raises(InputError, match="expected a step from 0 to 99"):
        study.build_out_figure(farm("target", 0.0), farms, n_steps=100, step=100)


def test_a_scenario_without_neighbours():
    figure = study.build_out_figure(farm("target", 0.0), [], n_steps=0)
    assert len(figure.axes) == 1
    assert unreadable(figure) == []


# --- series ---


def test_a_short_series_is_drawn_as_it_is():
    power = {"all": RNG.uniform(0, 50, 30), "none": RNG.uniform(50, 60, 30)}
    figure = study.series_figure(power, installed_mw=60.0, title="target0_scenario0")
    ax = figure.axes[0]
    for line, values in zip(ax.lines, power.values(), strict=False):
        assert line.get_ydata().tolist() == values.tolist()
        assert line.get_xdata().tolist() == list(range(30))
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("farm power, MW", "step")
    assert unreadable(figure) == []


def test_a_long_series_has_a_rolling_mean():
    values = RNG.uniform(0, 50, 1000)
    times = np.datetime_as_string(np.datetime64("2030-01-01") + np.arange(1000)).tolist()
    figure = study.series_figure({"all": values}, times=times)
    raw, smooth = figure.axes[0].lines
    assert raw.get_ydata().tolist() == values.tolist()
    assert smooth.get_ydata() == pytest.approx([values[i : i + 25].mean() for i in range(976)])
    assert smooth.get_xdata()[0] == np.datetime64("2030-01-13")  # the middle of the first 25 days
    assert "rolling mean over 25 steps" in figure.axes[0].get_xlabel()
    assert unreadable(figure) == []


def test_no_series():
    with pytest.raises(InputError, match="add farm_power to `keep`"):
        study.series_figure({})


# --- regret and Pareto front ---

NAMES = ["alone:s0", "alone:s1", "with:s0", "with:s1"]
VALUES = [[100.0, 90.0], [99.0, 91.0], [96.0, 95.0], [95.0, 94.0]]


def test_regret_is_drawn_in_per_cent():
    figure = regret.regret_figure(compared(VALUES, NAMES), "a study")
    ax = figure.axes[0]
    assert np.asarray(ax.images[0].get_array()) == pytest.approx(
        100 * (np.max(VALUES, axis=0) - np.array(VALUES)) / np.max(VALUES, axis=0)
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == NAMES
    assert [label.get_text() for label in ax.get_xticklabels()] == ["scenario 0", "scenario 1"]
    assert sorted(text.get_text() for text in ax.texts) == [
        "0.00",
        "0.00",
        "1.00",
        "1.05",
        "4.00",
        "4.21",
        "5.00",
        "5.26",
    ]
    assert unreadable(figure) == []


def test_regret_of_many_has_no_numbers_in_cells():
    figure = regret.regret_figure(compared(RNG.uniform(90, 100, (60, 50))))
    assert not figure.axes[0].texts
    assert figure.axes[0].get_xlabel() == "scenario, in the order of the study"
    assert unreadable(figure) == []


def test_the_pareto_figure():
    found = compared(VALUES, NAMES)
    figure = regret.pareto_figure(found, 0, 1)
    ax = figure.axes[0]
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["alone"].get_xdata().tolist() == [100.0, 99.0]
    assert lines["with"].get_ydata().tolist() == [95.0, 94.0]
    assert lines["Pareto front"].get_xdata().tolist() == [100.0, 99.0, 96.0]
    marks = {line.get_gid(): line.get_xdata().tolist() for line in ax.lines if line.get_gid()}
    assert marks == {name: [VALUES[row][0] for row in rows] for name, rows in found.selected.items()}
    assert ax.get_xlabel() == "AEP in “scenario 0”, GWh"
    assert unreadable(figure) == []


def test_both_in_one_figure():
    figure = regret.comparison_figure(compared(VALUES, NAMES), (0, 1), "a study")
    assert [ax.get_title() for ax in figure.axes][:2] == ["regret", "Pareto front of two scenarios"]
    assert unreadable(figure) == []


# --- leeward plot study ---


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a study, and one without series, that nobody changes."""
    folder = tmp_path_factory.mktemp("study")
    write_study(folder)
    write_study(folder, "short.h5", changed=lambda result: dataclasses.replace(result, farm_power_mw=None))
    return folder


@pytest.mark.parametrize(
    ("words", "shows"),
    [
        ([], "wake loss, % of the gross yield"),
        (["--figure", "losses", "--key", "target1_scenario0"], "wake loss, % of the gross yield"),
        (["--figure", "build-out", "--key", "target0_scenario5", "--step", "20"], "do not stand in step 20"),
        (["--figure", "series", "--key", "target0_scenario3"], "farm power, MW"),
        (["--figure", "regret", "--case", "external"], "regret, % of the best layout"),
        (["--figure", "pareto", "--scenarios", "0", "sample <5>"], "AEP in “sample &lt;5&gt;”, GWh"),
    ],
)
def test_every_figure(made, tmp_path, words, shows):
    done = leeward_here("plot", "study", "study.h5", *words, "-o", tmp_path / "a.svg", cwd=made)
    assert done.returncode == 0, done.stderr
    assert shows in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_the_series_of_a_task(made, tmp_path, drawn):
    words = ["--figure", "series", "--key", "target1_scenario4"]
    assert leeward_here("plot", "study", "study.run", *words, "-o", tmp_path / "a.png", cwd=made).returncode == 0
    expected = evaluated(EvaluationKey(1, 4)).farm_power_mw
    shown = [line.get_ydata() for line in drawn[0].axes[0].lines][: len(expected)]
    assert np.array(shown).shape == (len(small_study().cases), STEPS)
    assert np.array(shown) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["short.h5", "--figure", "series"], 2, "add farm_power to `keep` in the study file"),
        (["study.h5", "--figure", "cake"], 2, "expected one of losses, build-out, series, regret, pareto"),
        (["study.h5", "--figure", "pareto"], 2, "give --scenarios with two names or numbers"),
        (["study.h5", "--figure", "series", "--key", "farm0_t0_s0"], 2, "expected one like target0_scenario3"),
        (["study.h5", "--figure", "series", "--key", "target9_scenario0"], 1, "no result target9_scenario0"),
        (["study.h5", "--figure", "build-out", "--key", "target9_scenario0"], 2, "is not a task of the study small"),
        (["study.h5", "--figure", "regret", "--step", "3"], 2, "--step has no effect on --figure regret"),
        (["study.h5", "--farm", "3"], 2, "--farm has no effect on study"),
        (["study.h5", "--speed", "3"], 2, "--speed has no effect on study; it belongs to flow"),
    ],
)
def test_wrong_use(made, words, code, says):
    done = leeward_here("plot", "study", *words, "-o", "a.png", cwd=made)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert not (made / "a.png").exists()
