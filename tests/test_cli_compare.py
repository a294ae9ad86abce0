"""`leeward compare`: from a study to the layouts that criteria select."""

import csv
import dataclasses
import io
import json

import numpy as np
import pytest

from leeward.store import EvaluationKey, RunPaths, merge_run, store_result
from run_cases import leeward_here
from watched_study import evaluated, small_study


def write_study(folder, name="study.h5", without=(), changed=lambda result: result):
    """Write a merged file of the small study, without some results."""
    paths = RunPaths(folder / name)
    for key in small_study().tasks():
        if key not in without:
            store_result(paths, changed(evaluated(key)))
    merge_run(paths, {"kind": "evaluations", "campaign": small_study().study_text(), "campaign_name": "small"})
    return paths.output


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a complete study and one that lacks a result, that nobody changes."""
    folder = tmp_path_factory.mktemp("study")
    write_study(folder)
    write_study(folder, "partial.h5", without=[EvaluationKey(1, 2)])
    return folder


def compared(folder, *words):
    done = leeward_here("compare", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def aeps(case="all"):
    study = small_study()
    return np.array(
        [[evaluated(EvaluationKey(t, s)).case_aep_gwh(case) for s in study.scenarios] for t in study.targets]
    )


def test_tables(made):
    done = compared(made, "study.h5", "--scenarios", "sample <1>", "5")
    lines = done.stdout.splitlines()
    assert lines[0] == "study.h5: 2 layouts, 6 scenarios, case all"
    assert "weighted mean GWh" in lines[1]
    assert "CVaR 10 % GWh" in lines[1]
    best = list(small_study().targets.values())[int(aeps().sum(axis=1).argmax())]
    assert lines[2].split()[0] == best
    assert [line.split()[-1] for line in lines if line.startswith("  highest weighted mean")] == [best]
    assert "Pareto front of 'sample <1>' and 'sample <5>': 1 layout" in lines
    assert done.stderr == ""


def test_json_has_all_numbers(made):
    found = json.loads(compared(made, "study.h5", "--json", "--case", "internal", "--alpha", "0.3").stdout)
    values = aeps("internal")
    assert (found["case"], found["alpha"], found["quantity"]) == ("internal", 0.3, "aep_gwh")
    assert np.array(found["values"]) == pytest.approx(values)
    assert np.array(found["regret"]) == pytest.approx(values.max(axis=0) - values)
    assert [each["weight"] for each in found["scenarios"]] == [1, 2, 3, 4, 5, 6]
    weights = np.arange(1.0, 7.0) / 21
    assert [each["weighted_mean"] for each in found["layouts"]] == pytest.approx((values @ weights).tolist())
    assert set(found["selected"]) == {"weighted_mean", "worst_case", "cvar", "maximum_regret"}
    assert found["pareto_front"] is None


def test_csv_has_the_regrets(made, tmp_path):
    printed = compared(made, "study.h5", "--csv", "-").stdout
    header, *rows = csv.reader(io.StringIO(printed))
    assert header == ["layout", *small_study().scenarios.values()]
    assert np.array([row[1:] for row in rows], dtype=float) == pytest.approx(aeps().max(axis=0) - aeps())
    done = compared(made, "study.h5", "--csv", tmp_path / "regret.csv")
    assert (tmp_path / "regret.csv").read_text() == printed
    assert f"written: {tmp_path / 'regret.csv'}" in done.stdout


@pytest.mark.parametrize("words", [[], ["--scenarios", "0", "5"]])
def test_picture(made, tmp_path, words):
    compared(made, "study.h5", *words, "-o", tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert "regret, % of the best layout" in text
    assert ("Pareto front of two scenarios" in text) is bool(words)


def test_a_run_directory(made):
    from_run, from_file = (compared(made, name, "--json").stdout for name in ("study.run", "study.h5"))
    assert from_run == from_file


def test_missing_results(made):
    done = leeward_here("compare", "partial.h5", cwd=made)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "partial.h5: 1 of 12 results are missing: target1_scenario2; " in done.stderr
    assert "--only-complete" in done.stderr
    done = compared(made, "partial.h5", "--only-complete")
    assert done.stdout.startswith("partial.h5: 2 layouts, 5 scenarios, case all\n")
    assert "5 of 6 scenarios are compared" in done.stderr


def test_capacity_factors_where_installed_power_differs(tmp_path):
    def larger(result):
        more = {"installed_mw": 100.0 + 50.0 * result.key.target_idx}
        return dataclasses.replace(result, details={**result.details, **more})

    write_study(tmp_path, changed=larger)
    done = compared(tmp_path, "study.h5")
    assert "weighted mean %" in done.stdout
    assert "compared by capacity factor, not by AEP" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["study.h5", "--case", "some"], 2, "has no case 'some'; it has all, external, internal, none"),
        (["study.h5", "--alpha", "0"], 2, "alpha is 0"),
        (["study.h5", "--scenarios", "0", "77"], 2, "no scenario is called '77'"),
        (["study.h5", "--scenarios", "0", "sample <0>"], 2, "twice"),
        (["study.h5", "-o", "a.gif"], 2, "expected one of .png, .svg, .pdf"),
        (["study.h5", "--csv", "-", "--json"], 2, "give one or the other"),
        (["nowhere.h5"], 2, "nowhere.h5"),
        (["study.h5", "--csv", "nowhere/a.csv"], 2, "cannot be written"),
    ],
)
def test_wrong_use(made, words, code, says):
    done = leeward_here("compare", *words, cwd=made)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
