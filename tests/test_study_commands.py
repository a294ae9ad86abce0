"""Commands that show or check, on a study: a run directory, or the merged file."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from leeward.cli import main
from leeward.store import EvaluationKey, store_result
from leeward.study import Study
from watched_study import ABSENT, evaluated, run_of_study, small_study


@pytest.fixture
def cli(monkeypatch, capsys):
    """Runs a command; returns its exit code and its output."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["leeward", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return end.value.code or 0, captured.out + captured.err

    return run


@pytest.fixture
def paths(tmp_path):
    return run_of_study(tmp_path, ABSENT, merged=True)


@pytest.fixture
def alone(paths, tmp_path):
    return Path(shutil.copy(paths.output, tmp_path / "alone.h5"))


def test_status(cli, paths, alone):
    code, text = cli("status", paths.root)
    assert code == 3
    assert "10 of 12 evaluations done, 2 missing" in text
    row = next(line for line in text.splitlines() if "alone:farm0_t0_s1" in line)
    assert row.split() == ["1", "alone:farm0_t0_s1", "4/6", "308.80", "12.00%", "10.00%", "13.00%"]
    assert f"To resume: leeward evaluate {paths.campaign} -o {paths.output}" in text
    assert "layout" not in text.replace(str(paths.root), "").replace("layouts.h5", "")
    code, text = cli("status", alone, "--json")
    data = json.loads(text)
    assert (data["kind"], data["done"], data["expected"], data["scenarios"]) == ("evaluations", 10, 12, 6)
    assert data["rows"][0]["mean_wake_loss"] == pytest.approx(
        sum(w * (0.1 + 0.01 * s) for s, w in small_study().weights.items()) / sum(small_study().weights.values())
    )
    assert cli("status", alone, "--seed", 1)[0] == 2


def test_missing(cli, paths, alone, tmp_path):
    code, text = cli("missing", paths.root, "--csv", tmp_path / "missing.csv")
    assert code == 3
    assert "leeward evaluate" in text
    lines = (tmp_path / "missing.csv").read_text().splitlines()
    assert lines == [
        "key,target_idx,scenario_idx,reason",
        "target1_scenario4,1,4,no result",
        "target1_scenario5,1,5,no result",
    ]
    assert "2 of 12 evaluations missing" in cli("missing", alone)[1]


def test_show(cli, paths, alone):
    code, text = cli("show", "target0_scenario3", paths.root)
    assert code == 0
    assert f"target0_scenario3  in {paths.shard(EvaluationKey(0, 3))}" in text
    assert "external  345.0907   5.00%" in text
    powers = [line.split() for line in text.splitlines() if line.split()[:1] == ["whole"]]
    assert powers[0][2] == "39.394"
    assert "alone:farm2_t1_s0         4         17  2030-01-18" in text
    assert small_study().fingerprint(EvaluationKey(0, 3)) in text
    code, text = cli("show", "0,3", alone, "--csv", "-")
    assert text.splitlines()[0] == "case,aep_gwh,wake_loss,first_power_mw,whole_power_mw"
    assert len(text.splitlines()) == 5
    assert cli("show", "target1_scenario5", alone)[0] == 1
    assert cli("show", "farm0_t0_s0", alone)[0] == 2


def test_check(cli, paths, alone):
    code, text = cli("check", paths.root)
    assert (code, "To also recompute AEP and power: --deep" in text) == (0, True)
    code, text = cli("check", paths.root, "--complete")
    assert code == 3
    assert "2 expected results missing: target1_scenario4, target1_scenario5" in text
    assert cli("check", alone)[0] == 0


def test_check_of_other_settings(cli, paths):
    store_result(paths, replace(evaluated(EvaluationKey(1, 4)), fingerprint="f" * 64))
    code, text = cli("check", paths.root)
    assert code == 3
    assert "made with other settings" in text
    assert "leeward evaluate" in text


def test_deep_check_computes_again(cli, paths, monkeypatch):
    asked = []

    def evaluate(study, key):
        asked.append(key)
        return evaluated(key, 1.0 if key.scenario_idx else 1.001)

    monkeypatch.setattr(Study, "evaluate", evaluate)
    code, text = cli("check", paths.root, "--deep")
    assert code == 3
    assert len(asked) == 10
    assert "10 results, 2 of them bad" in text
    assert "differs from what the wake engine computes" in text


@pytest.mark.slow
def test_merge_and_salvage(cli, paths, tmp_path):
    for word in ("merge", "salvage"):
        code, text = cli(word, paths.root, "-o", tmp_path / f"{word}.h5")
        assert code == 3
        assert "2 expected results missing" in text
        assert f"To compute what is missing: leeward evaluate STUDY -o {tmp_path / f'{word}.h5'}" in text
        assert "10 of 12 evaluations done" in cli("status", tmp_path / f"{word}.h5")[1]
    for key in ABSENT:
        store_result(paths, evaluated(key))
    assert cli("merge", paths.root, "-o", tmp_path / "all.h5")[0] == 0


def test_clean(cli, paths):
    bad = paths.shard(EvaluationKey(0, 0))
    bad.write_bytes(bad.read_bytes()[:1000])
    code, text = cli("clean", paths.root)
    assert (code, "leeward evaluate" in text) == (3, True)
    code, text = cli("clean", paths.root, "--merged")
    assert code == 0
    assert "9 shards removed" in text
    assert "`leeward evaluate` reads them there" in text
    assert "10 of 12 evaluations done" in cli("status", paths.root)[1]


def test_a_study_file_is_no_campaign(cli, paths, tmp_path):
    """--campaign takes a frozen study too; a command that needs layouts says so."""
    frozen = tmp_path / "frozen.yaml"
    frozen.write_text(small_study().frozen_text())
    assert "2 of 12 evaluations missing" in cli("missing", paths.root, "--campaign", frozen)[1]
