"""Run directories and files of older versions: read, checked, merged, resumed. tests/data/v0.1/make.py made them."""

import json
import platform
import shutil
from pathlib import Path

import llvmlite.binding
import numba
import numpy as np
import pytest

import leeward
from run_cases import leeward_here

SAMPLES = Path(__file__).parent / "data" / "v0.1"
NUMBERS = json.loads((SAMPLES / "numbers.json").read_text())
FOREIGN = ["farm0_t0_s0", "farm0_t0_s1"]
# the results that each sample holds, and where
STORED = {
    "finished": ("layouts.h5", list(NUMBERS["results"]["finished"])),
    "interrupted": ("layouts.run", ["farm0_t0_s0", "farm0_t1_s0", "farm1_t0_s0", "farm1_t1_s0"]),
    "custom": ("layouts.run", ["farm0_t1_s0"]),
    "packed": ("layouts.run", [key for key in NUMBERS["results"]["packed"] if key != "farm1_t1_s1"]),
    "adopted": ("layouts.h5", [*FOREIGN, "farm0_t0_s2"]),
}
EXPECTED = {"finished": 8, "interrupted": 8, "custom": 12, "packed": 8, "adopted": 12}
CUSTOM = ("--only", "farm=0 type=1")
every_sample = pytest.mark.parametrize("name", STORED)


@pytest.fixture
def sample(tmp_path):
    """Return a function that copies a sample and returns the folder of the copy."""
    return lambda name: shutil.copytree(SAMPLES / name, tmp_path / name)


def is_same_machine():
    """Return whether a result that is computed here has the same last bits as where the samples were made."""
    here = {"cpu": llvmlite.binding.get_host_cpu_name(), "machine": platform.machine()}
    return {**here, "numpy": np.__version__, "numba": numba.__version__} == NUMBERS["surroundings"]


def assert_results(path, name, keys=None, computed=()):
    """Compare all results of a file or a run directory with the numbers of a sample.

    keys: all that have to be there; by default those of the finished campaign. computed: those that were computed here.
    On another CPU these may differ in the last bits, and refined layouts by more.
    """
    numbers = NUMBERS["results"][name]
    with leeward.open_layouts(path) as layouts:
        assert [str(key) for key in layouts] == sorted(numbers if keys is None else keys)
        assert not layouts.bad
        for key, result in layouts.items():
            expected = numbers[str(key)]
            is_refined = name == "packed"  # refined by another version, if computed here
            if str(key) not in computed or (is_same_machine() and not is_refined):
                assert (result.x.tolist(), result.y.tolist()) == (expected["x_m"], expected["y_m"]), key
                assert (result.aep_gwh, result.digest) == (expected["aep_gwh"], expected["digest"]), key
            else:
                assert result.aep_gwh == pytest.approx(expected["aep_gwh"], rel=5e-3 if is_refined else 1e-9), key
                assert is_refined or result.x.tolist() == pytest.approx(expected["x_m"], rel=0, abs=1e-6), key


def run(folder, *options, campaign="campaign.yaml", code=0):
    """Run the campaign, and return the last event and the keys that were computed."""
    done = leeward_here("run", campaign, "--json", "--engine", "inline", *options, cwd=folder)
    assert done.returncode == code, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return events[-1], [event["key"] for event in events if event["event"] == "done"]


@pytest.fixture
def same_method(monkeypatch):
    """Let this leeward resume refined layouts of version 0.1, as if its refinement gave the same numbers."""
    monkeypatch.setattr("leeward.campaign.fingerprint.REFINED_VERSION", 1)


def shards(folder):
    return sorted(path.stem for path in folder.glob("layouts.run/results/*/*.h5"))


# --- reading ---------------------------------------------------------------------------------------------------------


@every_sample
def test_every_number_is_read(sample, name):
    place, keys = STORED[name]
    assert_results(sample(name) / place, name, keys)


def test_shards_beside_a_merged_file_and_tables(sample):
    folder = sample("finished")
    assert_results(folder / "layouts.run", "finished")
    with leeward.open_layouts(folder / "layouts.h5") as layouts:
        table, grid = layouts.to_pandas().set_index("key"), layouts.to_xarray()
    for key, expected in NUMBERS["results"]["finished"].items():
        assert table.loc[key, "aep_gwh"] == expected["aep_gwh"]
        place = {name: table.loc[key, name] for name in ("farm_idx", "type_idx", "seed")}
        assert grid["aep_gwh"].sel(place).item() == expected["aep_gwh"]


@every_sample
def test_a_campaign_has_the_fingerprints_of_its_results(sample, name):
    folder = sample(name)
    with leeward.open_layouts(folder / STORED[name][0]) as layouts:
        prints = {(*key[:2], result.fingerprint) for key, result in layouts.items() if result.origin == "leeward"}
    assert prints
    for file in ("campaign.yaml", "layouts.run/campaign.yaml"):
        campaign = leeward.load(folder / file)
        assert campaign.n_tasks == EXPECTED[name]
        assert prints == {(farm, kind, campaign.fingerprint(farm, kind, 1)) for farm, kind, _ in prints}


def test_what_an_adopted_result_says_of_its_origin(sample):
    with leeward.open_layouts(sample("adopted") / "layouts.h5") as layouts:
        first, second, own = layouts.values()
    assert [result.origin for result in (first, second, own)] == ["foreign", "foreign", "leeward"]
    assert (first.details["aep_claimed"], first.details["source"]) == (250.0, "foreign.h5")
    assert second.details["aep_source"] == "recomputed"
    assert first.details["evidence"] == second.details["evidence"] == "plausible"


# --- the commands that only look -------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [pytest.param((), marks=pytest.mark.slow), ("--deep",)], ids=["check", "deep"])
@every_sample
def test_check(sample, name, options):
    done = leeward_here("check", "--json", *options, cwd=sample(name))
    assert done.returncode == 0, done.stdout
    report = json.loads(done.stdout)
    assert report["is_well"]
    found = [result["name"] for file in report["files"] for result in file["results"]]
    assert sorted(set(found)) == sorted(STORED[name][1])
    verdicts = [result["evidence"] for file in report["files"] for result in file["results"]]
    assert verdicts.count("plausible") == (4 if name == "adopted" else 0)  # each in a shard and in the merged file


def test_check_complete(sample):
    assert leeward_here("check", "--complete", cwd=sample("finished")).returncode == 0
    done = leeward_here("check", "--complete", "--json", cwd=sample("interrupted"))
    assert done.returncode == 3
    assert len(json.loads(done.stdout)["missing"]) == 4


@pytest.mark.parametrize("place", ["layouts.h5", "layouts.run/results/49/farm0_t0_s0.h5"])
def test_check_still_finds_a_flipped_bit(sample, place):
    folder = sample("finished")
    content = bytearray((folder / place).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / place).write_bytes(content)
    assert leeward_here("check", place, cwd=folder).returncode == 3


@every_sample
def test_status_and_missing(sample, name):
    folder = sample(name)
    n_stored = len(STORED[name][1])
    done = leeward_here("status", "--json", cwd=folder)
    status = json.loads(done.stdout)
    assert done.returncode == (0 if n_stored == EXPECTED[name] else 3)
    assert (status["expected"], status["done"]) == (EXPECTED[name], n_stored)
    assert (status["workers"], status["owner"], status["unreadable_lines"]) == ([], None, 0)
    for path in ("layouts.run", STORED[name][0]):
        missing = json.loads(leeward_here("missing", path, "--json", cwd=folder).stdout)["missing"]
        assert len(missing) == EXPECTED[name] - n_stored
        assert not {task["key"] for task in missing} & set(STORED[name][1])


def test_status_of_failed_tasks_and_of_the_quarantine(sample):
    status = json.loads(leeward_here("status", "--json", cwd=sample("interrupted")).stdout)
    assert status["quarantined"] == 1
    (failure,) = status["failures"]
    assert (failure["key"], failure["kind"], failure["final"]) == ("farm1_t1_s1", "timed-out", True)
    (failure,) = json.loads(leeward_here("status", "--json", cwd=sample("custom")).stdout)["failures"]
    assert (failure["key"], failure["kind"]) == ("farm0_t1_s1", "exception")
    assert failure["traceback"].endswith("ValueError: no layout for seed 1\n")


@every_sample
def test_show(sample, name):
    key = STORED[name][1][0]
    done = leeward_here("show", key, cwd=sample(name))
    assert done.returncode == 0, done.stderr
    assert NUMBERS["results"][name][key]["digest"] in done.stdout
    assert f"{NUMBERS['results'][name][key]['aep_gwh']:.4f} GWh" in done.stdout


# --- merging ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["finished", "interrupted", "packed", "adopted"])
def test_merge(sample, name):
    folder = sample(name)
    code = 0 if len(STORED[name][1]) == EXPECTED[name] else 3  # something is missing
    done = leeward_here("merge", "layouts.run", "-o", "merged.h5", cwd=folder)
    assert done.returncode == code, done.stderr
    assert_results(folder / "merged.h5", name, STORED[name][1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["finished", "adopted"])
def test_merge_again_over_the_old_file(sample, name):
    folder = sample(name)
    done = leeward_here("merge", "layouts.h5", "layouts.run", "-o", "layouts.h5", cwd=folder)
    assert done.returncode == (0 if name == "finished" else 3), done.stderr
    assert_results(folder / "layouts.h5", name, STORED[name][1])


@pytest.mark.slow
def test_salvage_of_another_script_s_file(sample):
    folder = sample("adopted")
    done = leeward_here("salvage", "foreign.h5", "-o", "salvaged.h5", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    with leeward.open_layouts(folder / "salvaged.h5") as layouts:
        assert [str(key) for key in layouts] == FOREIGN
        for key, result in layouts.items():
            expected = NUMBERS["results"]["adopted"][str(key)]
            assert (result.x.tolist(), result.y.tolist()) == (expected["x_m"], expected["y_m"])
        assert layouts[0, 0, 0].aep_gwh == 250.0
        assert layouts[0, 0, 1].status == "no-aep"


# --- resuming --------------------------------------------------------------------------------------------------------


def test_a_finished_run_computes_nothing(sample):
    folder = sample("finished")
    last, computed = run(folder)
    assert (last["done"], last["computed"], computed) == (8, 0, [])
    assert_results(folder / "layouts.h5", "finished")


def test_a_run_in_python_computes_nothing(sample, monkeypatch):
    monkeypatch.chdir(sample("finished"))
    report = leeward.run("campaign.yaml")
    assert (report.done, report.computed, report.exit_code) == (8, 0, 0)
    assert_results("layouts.h5", "finished")


@pytest.mark.slow
@pytest.mark.parametrize(
    "campaign", ["campaign.yaml", pytest.param("layouts.run/campaign.yaml", marks=pytest.mark.slow)]
)
def test_an_interrupted_run_computes_what_is_missing(sample, campaign):
    """The one that failed stays failed until a retry is asked for. In the end all is as in the finished sample."""
    folder = sample("interrupted")
    rest = ["farm0_t0_s1", "farm0_t1_s1", "farm1_t0_s1"]
    last, computed = run(folder, campaign=campaign, code=3)
    assert (last["failed"], computed) == (["farm1_t1_s1"], rest)
    assert_results(folder / "layouts.h5", "interrupted", {*STORED["interrupted"][1], *rest}, computed=rest)
    assert run(folder, "--retry-failed", campaign=campaign)[1] == ["farm1_t1_s1"]
    for place in ("layouts.h5", "layouts.run"):
        assert_results(folder / place, "finished", computed=[*rest, "farm1_t1_s1"])
    assert not list(folder.glob("layouts.run/workers/*"))  # the heartbeat of the dead worker
    assert len(list(folder.glob("layouts.run/quarantine/*.reason.json"))) == 1
    events = [json.loads(line)["event"] for line in (folder / "layouts.run/audit.jsonl").read_text().splitlines()]
    assert (events.count("run-began"), events.count("run-ended"), events.count("quarantine")) == (5, 3, 1)


@pytest.mark.slow
def test_a_custom_recipe_goes_on(sample):
    """One task has failed, another one was in the hand of a worker when its run was killed."""
    folder = sample("custom")
    last, computed = run(folder, *CUSTOM, code=3)
    assert (last["failed"], computed) == (["farm0_t1_s1"], ["farm0_t1_s2"])
    last, computed = run(folder, *CUSTOM, "--retry-failed")
    assert (last["failed"], computed) == ([], ["farm0_t1_s1"])
    assert_results(folder / "layouts.h5", "custom", computed=["farm0_t1_s1", "farm0_t1_s2"])


def test_refined_layouts_are_not_mixed_with_those_of_this_version(sample):
    folder = sample("packed")
    before = {path: path.read_bytes() for path in folder.rglob("*.h5")}
    done = leeward_here("run", "campaign.yaml", "--engine", "inline", cwd=folder)
    assert done.returncode == 2
    assert "farm0_t0_s0 was made by leeward 0.1.0, method version 1" in done.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*.h5")} == before


@pytest.mark.slow
@pytest.mark.usefixtures("same_method")
def test_a_run_with_packs_goes_on(sample):
    folder = sample("packed")
    packs = {path: path.read_bytes() for path in folder.glob("layouts.run/packs/*.h5")}
    assert len(packs) == 2
    last, computed = run(folder)
    assert (last["done"], computed) == (8, ["farm1_t1_s1"])
    assert_results(folder / "layouts.h5", "packed", computed=computed)
    assert_results(folder / "layouts.run", "packed", computed=computed)
    assert all(path.read_bytes() == content for path, content in packs.items())


@pytest.mark.slow
@pytest.mark.usefixtures("same_method")
def test_a_damaged_pack_is_replaced(sample):
    folder = sample("packed")
    pack = sorted(folder.glob("layouts.run/packs/*.h5"))[0]
    pack.write_bytes(pack.read_bytes()[:-2000])
    last, computed = run(folder)
    assert last["quarantined"] == 1
    assert set(computed) >= {"farm1_t1_s1"}
    assert_results(folder / "layouts.h5", "packed", computed=computed)


@pytest.mark.parametrize("name", ["finished", pytest.param("adopted", marks=pytest.mark.slow)])
def test_clean_and_run_again(sample, name):
    folder = sample(name)
    only = () if name == "finished" else ("--only", "farm=0 type=0")
    keys = STORED[name][1]
    assert shards(folder) == keys
    done = leeward_here("clean", "layouts.run", "--merged", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert shards(folder) == []
    assert_results(folder / "layouts.h5", name, keys)
    assert run(folder, *only)[1] == []
    assert shards(folder) == keys
    assert_results(folder / "layouts.run", name, keys)


@pytest.mark.slow
@pytest.mark.usefixtures("same_method")
def test_clean_after_packs(sample):
    folder = sample("packed")
    assert leeward_here("clean", "layouts.run", cwd=folder).returncode == 0
    computed = run(folder)[1]
    assert leeward_here("clean", "layouts.run", "--merged", cwd=folder).returncode == 0
    assert not list(folder.glob("layouts.run/packs/*.h5"))
    assert run(folder)[1] == []
    assert_results(folder / "layouts.run", "packed", computed=computed)


@pytest.mark.slow
def test_adopt_again(sample):
    """From the other script's file, and from a merged file of leeward's."""
    folder = sample("adopted")
    only = ("--only", "farm=0 type=0")
    assert run(folder, *only, "-o", "new.h5", "--adopt", "foreign.h5")[1] == ["farm0_t0_s2"]
    assert_results(folder / "new.h5", "adopted", computed=NUMBERS["results"]["adopted"])
    finished = sample("finished")
    assert run(finished, "-o", "new.h5", "--adopt", "layouts.h5")[1] == []
    assert_results(finished / "new.h5", "finished")
