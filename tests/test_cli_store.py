"""The commands about stored results: what they print, and how they end."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from foreign_files import layout_of, own_result, write_crashed_folder, write_foreign_file, write_own_file
from leeward import cli
from leeward.campaign import load
from leeward.campaign.selection import read_keys
from leeward.store.directory.index import encode_line
from leeward.store.directory.lock import Lock
from leeward.store.directory.records import begin_attempt, record_failure
from leeward.store.directory.shards import store_result
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import Result
from leeward.store.paths import RunPaths
from leeward.watch import campaign_of
from run_cases import LEEWARD, PATIENCE_S, make_campaign, without_compiling

DOCUMENT = Path(__file__).parent.parent / "docs" / "commands.md"


def command(*arguments, cwd):
    return subprocess.run([*LEEWARD, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S, cwd=cwd)


@pytest.fixture
def inside(monkeypatch, capsys, tmp_path):
    """The command line within this process, in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["leeward", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capsys.readouterr()
        return end.value.code or 0, out, without_compiling(err)

    return run


@pytest.fixture
def campaign(tmp_path):
    """Two farms, one type, three seeds; no layouts."""
    return load(make_campaign(tmp_path, seeds=3, farms=2))


@pytest.fixture
def paths(campaign, tmp_path):
    """Its run directory, empty."""
    paths = RunPaths(tmp_path / "layouts.h5")
    for folder in paths.folders():
        folder.mkdir(parents=True)
    paths.campaign.write_text(campaign.frozen_text())
    return paths


def real_result(campaign, key):
    """One that a deep check finds nothing wrong with."""
    corner = 9000.0 * key.farm_idx
    layout = [[corner + 500.0, corner + 2500.0, corner + 4500.0], [500.0 + key.seed, 2500.0, 4500.0]]
    aep, wake_loss, spacing = campaign.recompute(key, *layout)
    details = {"wake_loss": wake_loss, "min_spacing_m": spacing, "seconds": 1.5, "work": 1200}
    fingerprint = campaign.fingerprint(key.farm_idx, key.type_idx)
    return Result(
        key, layout, aep, campaign.physics.rotor_diameter_m(key.type_idx), fingerprint, "completed", 0, details=details
    )


def store(paths, campaign, *keys):
    for key in keys:
        result = real_result(campaign, Key(*key))
        store_result(paths, result)
        with paths.index.open("ab") as file:
            file.write(encode_line(result.index_line()))


def fail(paths, key):
    begin_attempt(paths, key, "f" * 64, "w9", "node")
    facts = {"kind": "exception", "message": "ValueError: no wind", "traceback": "Traceback", "worker": "w9"}
    record_failure(paths, key, final=True, died=False, host="node", seconds=3.0, **facts)


# --- status ----------------------------------------------------------------------------------------------------------


def test_status_of_an_unfinished_run(paths, campaign, inside):
    store(paths, campaign, (0, 0, 0), (0, 0, 1), (1, 0, 0))
    fail(paths, Key(1, 0, 2))
    code, out, err = inside("status")
    assert code == 3
    assert not err
    assert "3 of 6 layouts done, 3 missing (1 failed)" in out
    assert re.search(r"^  0 square 0 +2/3 +\d+\.\d\d  30 +\d+\.\d\d%  farm0_t0_s\d$", out, re.M)
    assert "  recipe own_recipe_of_tests:place, a custom function" in out
    assert re.search(r"^  1 square 1 +1/3 \(1!\)", out, re.M)
    assert re.search(r"farm1_t0_s2 +exception, attempt 1 +ValueError: no wind", out)
    assert "leeward run layouts.run/campaign.yaml --retry-failed" in out
    assert "not verified" in out


def test_status_of_a_complete_run(paths, campaign, inside):
    store(paths, campaign, *campaign.tasks())
    code, out, _ = inside("status", "layouts.run")
    assert code == 0
    assert "6 of 6 layouts done" in out
    assert "To resume" not in out
    assert "To merge them into layouts.h5: leeward run layouts.run/campaign.yaml" in out
    write_own_file(paths.output, [real_result(campaign, key) for key in campaign.tasks()])
    assert "Not merged" not in inside("status", "layouts.run")[1]


def test_status_while_it_runs(paths, campaign, inside):
    store(paths, campaign, (0, 0, 0))
    beat = {"worker": "w1", "host": "h", "pid": 1, "task": "farm0_t0_s1", "since": "2026-01-01T00:00:00Z"}
    beat |= {"state": "computing", "step": 7, "phase": "refine", "best_aep_gwh": 101.5, "every_s": 2.0}
    (paths.workers / "w1.json").write_text(json.dumps({**beat, "time": time.time() + 3600}))
    lock = Lock.take(paths.lock)
    try:
        code, out, _ = inside("status")
    finally:
        lock.release()
    assert code == 0
    assert f"running: process {os.getpid()}" in out
    assert re.search(
        r"w1  farm0_t0_s1  refine, step 7, 101.50 GWh so far \(30 MW installed, .*%\)  for \d+ h.*last heartbeat",
        out,
    )
    assert "To resume" not in out


def test_status_of_some_seeds_and_as_json(paths, campaign, inside):
    store(paths, campaign, (0, 0, 1), (1, 0, 1))
    assert inside("status", "--seed", 1)[0] == 0
    assert inside("status", "--seed", 0, "--seed", 1)[0] == 3
    code, out, err = inside("status", "--seed", 7)
    assert (code, out) == (2, "")
    assert "seeds are 0 to 2" in err
    data = json.loads(inside("status", "--json")[1])
    assert (data["done"], data["expected"], data["missing"]) == (2, 6, 4)


def test_status_needs_something_to_look_at(inside):
    code, out, err = inside("status")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "layouts.run" in err


def test_status_watches_until_the_run_ends(paths, campaign, tmp_path):
    store(paths, campaign, (0, 0, 0))
    lock = Lock.take(paths.lock)
    process = subprocess.Popen([*LEEWARD, "status", "--watch"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("--- ")
        assert "layouts.run" in process.stdout.readline()
        lock.release()
        rest, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 3
    assert "not running" in rest


def test_status_watch_ends_with_an_interrupt(paths, tmp_path):
    lock = Lock.take(paths.lock)
    process = subprocess.Popen(
        [*LEEWARD, "status", "--watch", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # the tests may have been started without it
    )
    try:
        assert json.loads(process.stdout.readline())["is_running"]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        lock.release()
    assert process.returncode == 0


# --- missing ---------------------------------------------------------------------------------------------------------


def test_missing_of_a_run(paths, campaign, inside, tmp_path):
    store(paths, campaign, (0, 0, 0), (0, 0, 1), (0, 0, 2), (1, 0, 0))
    fail(paths, Key(1, 0, 2))
    code, out, _ = inside("missing", "layouts.run")
    assert code == 3
    assert "2 of 6 layouts missing" in out
    assert re.search(r"farm1_t0_s1 +1 +0 +1  no result", out)
    assert "--only-from missing.csv --retry-failed" in out
    code, out, _ = inside("missing", "layouts.run", "--csv", "-")
    rows = list(csv.DictReader(out.splitlines()))
    assert [row["key"] for row in rows] == ["farm1_t0_s1", "farm1_t0_s2"]
    assert rows[1]["reason"] == "failed: ValueError: no wind"
    assert inside("missing", "layouts.run", "--failed", "--csv", "missing.csv")[0] == 3
    assert read_keys(tmp_path / "missing.csv", Key.parse) == [Key(1, 0, 2)]
    (tmp_path / "missing.json").write_text(inside("missing", "layouts.run", "--json")[1])
    assert read_keys(tmp_path / "missing.json", Key.parse) == [Key(1, 0, 1), Key(1, 0, 2)]


def test_nothing_missing(paths, campaign, inside):
    store(paths, campaign, *campaign.tasks())
    code, out, _ = inside("missing", "layouts.run")
    assert code == 0
    assert "nothing is missing" in out


def test_missing_of_a_campaign_whose_turbines_cannot_be_counted(paths, campaign, inside):
    store(paths, campaign, (0, 0, 0))
    text = campaign.frozen_text()
    assert text.count("turbines_per_farm: 3") == 1
    paths.campaign.write_text(text.replace("turbines_per_farm: 3", "capacity_mw: 1"))
    code, out, err = inside("missing", "layouts.run")
    assert (code, err) == (3, "")
    assert "5 of 6 layouts missing" in out


def test_missing_needs_to_know_what_was_expected(inside, campaign, tmp_path):
    write_foreign_file(tmp_path / "worker_1.h5", [(0, 0, 0)])
    code, out, err = inside("missing", "worker_1.h5")
    assert (code, out) == (2, "")
    assert "--campaign" in err
    code, out, _ = inside("missing", "worker_1.h5", "--campaign", "campaign.yaml")
    assert code == 3
    assert "5 of 6" in out
    assert "--adopt worker_1.h5" in out


# --- check -----------------------------------------------------------------------------------------------------------


def test_check_of_a_run(paths, campaign, inside):
    store(paths, campaign, *campaign.tasks())
    code, out, err = inside("check", "layouts.run", "--deep", "--complete")
    assert (code, err) == (0, "")
    assert re.search(r"layouts.run: 6 shards +6 +[\d.]+ kB  valid$", out, re.M)
    assert "No errors" in out


def test_check_names_every_bad_shard(paths, campaign, inside):
    store(paths, campaign, *campaign.tasks())
    bad = paths.shard(Key(1, 0, 1))
    bad.write_bytes(bad.read_bytes()[:100])
    before = bad.stat().st_mtime_ns
    code, out, _ = inside("check", "layouts.run", "--complete")
    assert code == 3
    assert re.search(rf"{bad.name} .*(truncated|unreadable)", out)
    assert "1 expected result missing: farm1_t0_s1" in out
    assert "Then, to compute it: leeward run layouts.run/campaign.yaml --only-from missing.csv" in out
    assert "`leeward run layouts.run/campaign.yaml` moves bad files to quarantine" in out
    assert bad.stat().st_mtime_ns == before
    data = json.loads(inside("check", "layouts.run", "--json")[1])
    assert len(data["files"]) == 6
    assert data["is_well"] is False


def test_deep_check_recomputes(paths, campaign, inside):
    right = real_result(campaign, Key(0, 0, 0))
    store_result(paths, replace(right, aep_gwh=1.001 * right.aep_gwh))
    assert inside("check", "layouts.run")[0] == 0
    code, out, _ = inside("check", "layouts.run", "--deep")
    assert code == 3
    assert "the wake engine computes" in out
    assert "Move their files out of the run directory" in out  # a run would leave them there


def test_results_that_are_not_in_the_campaign_are_no_fault(paths, campaign, inside):
    """Of a campaign that has been made smaller since."""
    store(paths, campaign, *campaign.tasks())
    paths.campaign.write_text(campaign.with_overrides(seeds=2).frozen_text())
    for options in (["--complete"], ["--deep"], ["--deep", "--complete"]):
        code, out, _ = inside("check", "layouts.run", *options)
        assert code == 0, options
        assert "2 results not in the campaign: farm0_t0_s2, farm1_t0_s2" in out
        assert "No errors" in out


def test_check_of_nothing(inside, tmp_path):
    (tmp_path / "empty").mkdir()
    RunPaths(tmp_path / "layouts.h5").results.mkdir(parents=True)
    for place in ("empty", "layouts.run"):
        code, out, _ = inside("check", place)
        assert code == 3
        assert "Nothing found" in out
        assert "No errors" not in out
        assert json.loads(inside("check", place, "--json")[1])["is_well"] is False


def test_check_of_what_is_missing_names_the_campaign(campaign, inside, tmp_path):
    write_foreign_file(tmp_path / "a.h5", [(0, 0, 0)], turbines=3)
    out = inside("check", "a.h5", "--complete", "--campaign", "campaign.yaml")[1]
    assert "leeward run campaign.yaml -o a.h5 --adopt a.h5 --only-from missing.csv" in out
    write_own_file(tmp_path / "b.h5", [real_result(campaign, Key(0, 0, 0))], campaign=campaign.frozen_text())
    assert (
        "leeward run CAMPAIGN -o b.h5 --adopt b.h5 --only-from missing.csv" in inside("check", "b.h5", "--complete")[1]
    )


@pytest.mark.slow
def test_files_of_one_campaign_run_in_different_ways(campaign, inside, tmp_path):
    for number, workers in enumerate((1, 4)):
        text = campaign.with_overrides(workers=workers).frozen_text()
        write_own_file(tmp_path / f"{number}.h5", [real_result(campaign, Key(number, 0, 0))], campaign=text)
    code, out, _ = inside("check", "0.h5", "1.h5", "--deep")
    assert (code, "No errors" in out) == (0, True)
    assert "note:" not in inside("merge", "0.h5", "1.h5", "-o", "m.h5")[1]


def test_check_says_nothing_of_no_duplicates(inside, tmp_path):
    write_foreign_file(tmp_path / "a.h5", [(0, 0, 0)])
    write_foreign_file(tmp_path / "b.h5", [(0, 0, 0)], aep=200.0)
    out = inside("check", "a.h5", "b.h5")[1]
    assert "conflict: farm0_t0_s0" in out
    assert "more than one place" not in out


def test_check_of_a_crashed_folder(inside, tmp_path):
    write_crashed_folder(tmp_path / "layouts.h5_temp")
    code, out, _ = inside("check", "layouts.h5_temp")
    assert code == 3
    assert re.search(r"worker_101.h5 +0 +0 B  empty", out)
    assert re.search(r"worker_100.h5 +2 .* valid", out)
    assert "leeward merge layouts.h5_temp -o merged.h5 --on-bad skip" in out
    assert "leeward run CAMPAIGN --adopt layouts.h5_temp" in out
    code, _, err = inside("check", "layouts.h5_temp", "--deep")
    assert code == 2
    assert "--campaign" in err


def test_check_of_a_cleaned_run_looks_into_its_output(paths, campaign, inside):
    write_own_file(paths.output, [real_result(campaign, key) for key in campaign.tasks()])
    assert inside("check", "layouts.run", "--complete")[0] == 0


# --- merge -----------------------------------------------------------------------------------------------------------


def test_merge_aborts_by_default(inside, tmp_path):
    write_crashed_folder(tmp_path / "layouts.h5_temp")
    code, out, err = inside("merge", "layouts.h5_temp", "-o", "layouts.h5")
    assert (code, out) == (3, "")
    assert not (tmp_path / "layouts.h5").exists()
    assert "worker_101.h5: empty" in err
    assert "leeward merge layouts.h5_temp -o layouts.h5 --on-bad skip" in err
    assert "leeward run CAMPAIGN --adopt layouts.h5_temp" in err
    assert list(tmp_path.glob("merge_log_*.txt"))


def test_merge_skips_and_says_what_is_missing(inside, tmp_path, campaign):
    layouts = {key: real_result(campaign, key).layout for key in (Key(0, 0, 0), Key(0, 0, 1))}
    for number, (key, layout) in enumerate(layouts.items()):
        write_foreign_file(tmp_path / f"worker_{number}.h5", [key], layout=layout, aep=0.0, turbines=3, diameter=195.0)
    (tmp_path / "worker_9.h5").touch()
    sources = ["worker_0.h5", "worker_1.h5", "worker_9.h5"]
    options = ["-o", "m.h5", "--on-bad", "skip", "--campaign", "campaign.yaml"]
    code, out, _ = inside("merge", *sources, *options, "--dry-run")
    assert code == 3
    assert "would get 2 results from 3 files" in out
    assert not (tmp_path / "m.h5").exists()
    code, out, _ = inside("merge", *sources, *options)
    assert code == 3
    assert "m.h5: 2 results from 3 files" in out
    assert "left out of worker_9.h5: empty" in out
    assert "2 results with a recomputed AEP" in out
    assert "4 expected results missing: farm0_t0_s2" in out
    assert "leeward run campaign.yaml -o m.h5 --adopt m.h5" in out


@pytest.mark.slow
def test_merge_of_a_run_knows_its_campaign(paths, campaign, inside, tmp_path):
    store(paths, campaign, *campaign.tasks())
    code, out, _ = inside("merge", "layouts.run", "-o", "m.h5", "--remove-sources", "--quiet")
    assert code == 0
    assert "No expected result is missing." in out
    assert "6 sources removed, 0 kept" in out
    assert not list(paths.shards())
    assert inside("check", "m.h5", "--complete", "--deep")[0] == 0
    assert inside("status", "m.h5")[0] == 0


@pytest.mark.slow
def test_merge_conflict(inside, tmp_path):
    write_foreign_file(tmp_path / "a.h5", [(0, 0, 0)])
    write_foreign_file(tmp_path / "b.h5", [(0, 0, 0)], layout=layout_of(Key(0, 0, 1)), aep=200.0)
    code, _, err = inside("merge", "a.h5", "b.h5", "-o", "m.h5")
    assert code == 3
    assert "leeward merge a.h5 b.h5 -o m.h5 --prefer newest\n" in err
    assert "leeward merge a.h5 b.h5 -o m.h5 --prefer best\n" in err
    assert "--on-bad" not in err
    (tmp_path / "c.h5").touch()
    err = inside("merge", "a.h5", "b.h5", "c.h5", "-o", "m.h5")[2]
    assert "leeward merge a.h5 b.h5 c.h5 -o m.h5 --on-bad skip --prefer best\n" in err
    code, out, _ = inside("merge", "a.h5", "b.h5", "-o", "m.h5", "--prefer", "best")
    assert code == 0
    assert "farm0_t0_s0: different layouts; taken from b.h5" in out


@pytest.mark.slow
def test_files_of_one_campaign_with_different_seeds_are_united(campaign, inside, tmp_path):
    for number, seeds in enumerate(([0], [2], [1])):
        part = campaign.with_overrides(seeds=seeds, workers=number + 1)
        results = [real_result(campaign, key) for key in part.tasks()]
        write_own_file(tmp_path / f"{number}.h5", results, campaign=part.frozen_text())
    code, out, _ = inside("merge", "0.h5", "1.h5", "2.h5", "-o", "m.h5")
    assert (code, "No expected result is missing." in out) == (0, True)
    assert "note:" not in out
    assert campaign_of(tmp_path / "m.h5").seeds == range(3)
    assert inside("check", "m.h5", "--complete", "--deep")[0] == 0
    other = campaign.with_overrides(recipe="random")
    write_own_file(tmp_path / "3.h5", [own_result(5, 5, 5)], campaign=other.frozen_text())
    assert "2 different campaigns" in inside("merge", "0.h5", "3.h5", "-o", "n.h5")[1]


@pytest.mark.slow
def test_merge_says_what_would_be_removed(paths, campaign, inside, tmp_path):
    store(paths, campaign, (0, 0, 0), (0, 0, 1))
    (tmp_path / "c.h5").touch()
    sources = ["layouts.run", "c.h5", "-o", "m.h5", "--on-bad", "skip", "--remove-sources"]
    out = inside("merge", *sources, "--dry-run")[1]
    assert "2 sources would be removed, 1 would be kept" in out
    assert "would be kept: c.h5: empty" in out
    assert len(list(paths.shards())) == 2
    lock = Lock.take(paths.lock)
    try:
        code, _, err = inside("merge", *sources)
    finally:
        lock.release()
    assert (code, "held by process" in err) == (1, True)
    assert not (tmp_path / "m.h5").exists()
    assert "2 sources removed, 1 kept" in inside("merge", *sources)[1]
    assert '"event": "removed"' in paths.audit.read_text()


def test_merge_wrong_use(tmp_path, inside):
    assert inside("merge", "nothing.h5", "-o", "m.h5")[0] == 2
    assert inside("merge", "nothing.h5")[0] == 2
    assert inside("merge", "nothing.h5", "-o", "m.h5", "--on-bad", "pray")[0] == 2


# --- clean -----------------------------------------------------------------------------------------------------------


def test_clean_moves_bad_files(paths, campaign, inside):
    store(paths, campaign, (0, 0, 0), (0, 0, 1))
    bad = paths.shard(Key(0, 0, 1))
    bad.write_bytes(b"")
    code, out, _ = inside("clean", "layouts.run", "--dry-run")
    assert code == 3
    assert "1 bad file would be moved" in out
    assert bad.exists()
    code, out, _ = inside("clean", "layouts.run")
    assert code == 3
    assert f"{bad.name}: empty" in out
    assert "leeward run layouts.run/campaign.yaml" in out
    assert not bad.exists()
    assert not paths.lock.exists()
    assert inside("clean", "layouts.run")[0] == 0


def test_clean_merged(paths, campaign, inside):
    store(paths, campaign, (0, 0, 0), (0, 0, 1))
    write_own_file(paths.output, [real_result(campaign, Key(0, 0, 0))], campaign=campaign.frozen_text())
    code, out, _ = inside("clean", "layouts.run", "--merged")
    assert code == 3
    assert "1 shard removed, 1 kept" in out
    assert "farm0_t0_s1" in out
    assert [path.stem for path in paths.shards()] == ["farm0_t0_s1"]
    assert '"event": "removed"' in paths.audit.read_text()
    assert "2 of 6 layouts done" in inside("status")[1]


def test_clean_needs_the_lock(paths, inside):
    lock = Lock.take(paths.lock)
    try:
        code, _, err = inside("clean", "layouts.run")
    finally:
        lock.release()
    assert code == 1
    assert "held by" in err
    assert inside("clean", "elsewhere.run")[0] == 2


def test_clean_says_what_a_run_directory_is(inside, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, err = inside("clean", "empty")
    assert code == 2
    assert "is not a run directory" in err
    assert "layouts.run beside layouts.h5" in err


# --- show and new ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["farm1_t0_s2", "1 0 2", "1,0,2"])
def test_show(paths, campaign, inside, key):
    store(paths, campaign, (1, 0, 2))
    code, out, _ = inside("show", key)
    assert code == 0
    assert re.search(r"^ +1 +11500.00 +2500.00$", out, re.M)
    assert re.search(r"AEP +\d+\.\d{4} GWh", out)
    assert re.search(r"wake loss +\d+\.\d\d%", out)
    assert re.search(r"work +1200 pair evaluations", out)
    assert campaign.fingerprint(1, 0) in out


def test_show_csv(paths, campaign, inside, tmp_path):
    store(paths, campaign, (0, 0, 0))
    code, out, _ = inside("show", "0,0,0", "layouts.run", "--csv", "-")
    assert code == 0
    assert out.splitlines() == ["turbine,x_m,y_m", "0,500.0,500.0", "1,2500.0,2500.0", "2,4500.0,4500.0"]
    code, out, _ = inside("show", "0,0,0", "--csv", "a.csv")
    assert code == 0
    assert "written: a.csv" in out
    assert (tmp_path / "a.csv").read_text().splitlines()[1] == "0,500.0,500.0"


def test_show_what_is_not_there(paths, inside):
    code, out, err = inside("show", "farm0_t0_s9")
    assert (code, out) == (1, "")
    assert "farm0_t0_s9 is missing" in err
    assert inside("show", "farm0")[0] == 2


def test_new(inside, tmp_path):
    code, out, _ = inside("new")
    assert code == 0
    assert "leeward run campaign.yaml" in out
    assert load(tmp_path / "campaign.yaml").n_tasks > 0
    code, _, err = inside("new")
    assert code == 2
    assert "never overwritten" in err
    assert inside("new", "own.yaml", "--builtin")[0] == 0
    assert load(tmp_path / "own.yaml").n_tasks == 60


# --- as processes of their own, and as documented --------------------------------------------------------------------


def test_exit_codes_of_processes(paths, campaign, tmp_path):
    store(paths, campaign, (0, 0, 0))
    for arguments, code in (
        (["status"], 3),
        (["check", "layouts.run"], 0),
        (["missing", "nowhere"], 2),
    ):
        ended = command(*arguments, cwd=tmp_path)
        assert ended.returncode == code, ended
        assert (code in (1, 2)) == bool(ended.stderr)
        assert "Traceback" not in ended.stderr


def test_every_command_is_documented():
    text = DOCUMENT.read_text()
    sections = dict(re.findall(r"^## leeward (\S+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    commands = typer.main.get_command(cli.app).commands
    assert set(sections) == set(commands)
    for name, each in commands.items():
        assert "Exit codes" in sections[name], name
        for parameter in each.params:
            for option in parameter.opts:
                if option.startswith("--") and option != "--help":
                    assert f"`{option}" in sections[name], (name, option)
