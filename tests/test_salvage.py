"""Salvage: what damaged files still hold comes into a new file, labelled, and the files themselves stay as they are."""

import json
import os
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest

from foreign_files import (
    layout_of,
    left_behind,
    own_result,
    write_foreign_file,
    write_foreign_group,
    write_own_file,
)
from leeward.campaign import load
from leeward.carving import SIGNATURE, lookup3
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import Limits, read_files
from leeward.store.merging.merge import merge
from leeward.store.rescue import recovery
from leeward.store.rescue.recovery import Recoverer, doubtful
from reader_cases import use_faulty_children
from run_cases import PATIENCE_S, leeward_here, make_campaign, results
from test_rescue import layout, write_worker_file

KEYS = [(0, 0, seed) for seed in range(12)]


def truncate(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


def names(found):
    return [one.name for one in found]


def recover(path, workspace, limits=Limits()):  # noqa: B008 (it is frozen)
    with Recoverer(workspace, limits) as recoverer:
        return recoverer.recover(path)


# --- one file --------------------------------------------------------------------------------------------------------


def test_a_whole_file_of_our_own(tmp_path):
    path = write_own_file(tmp_path / "layouts.h5", [own_result(seed=seed) for seed in range(3)])
    found = recover(path, tmp_path)
    assert (found.verified, found.plausible, found.lost) == (3, 0, [])
    assert found.tried == {recovery.AS_IT_IS: 3}


@pytest.mark.parametrize("damage", ["truncated", "a group"])
def test_our_own_results_are_verified(tmp_path, damage):
    originals = {str(one.key): one for one in (own_result(seed=seed) for seed in range(12))}
    path = write_own_file(tmp_path / "layouts.h5", originals.values(), campaign="text")
    if damage == "truncated":
        truncate(path, 0.7)
    else:
        content = bytearray(path.read_bytes())
        content[content.index(b"farm0_t0_s3\0" if b"farm0_t0_s3\0" in content else b"farm0_t0_s3") + 3] ^= 4
        path.write_bytes(content)
    before = path.read_bytes()
    found = recover(path, tmp_path)
    assert found.file.verdict is Verdict.TRUNCATED or damage != "truncated"
    assert (6 if damage == "truncated" else 11) <= found.verified < 13
    assert found.plausible == 0
    for one in found.results:
        assert one.result.seal == originals[one.name].seal
        assert "recovered_by" not in one.result.details  # the seal covers all it says
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["layouts.h5"]


def test_a_truncated_file_is_extended(tmp_path):
    """Its end is lost, and not what leads to its results."""
    path = write_foreign_file(tmp_path / "worker_1.h5", KEYS)
    truncate(path, 0.97)
    found = recover(path, tmp_path)
    assert recovery.EXTENDED in found.tried
    assert found.plausible == found.tried[recovery.EXTENDED] >= 11
    for one in found.results:
        assert np.array_equal(one.result.layout, layout_of(one.key))
        assert one.result.details["source"] == "worker_1.h5"
        assert one.result.details["evidence"] == "plausible"
        assert one.result.details["recovered_by"] == "extended"


def test_what_lies_beyond_the_cut_is_never_made_up(tmp_path):
    """Cut at every byte of the last layout: whatever fills the gap, no result has a part of it in its layout."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        write_foreign_group(file, Key(0, 0, 0))
        place = file["farm0_t0_s0/layout"].id.get_offset()
        aep = file["farm0_t0_s0/aep"].id.get_offset()
    content = (tmp_path / "a.h5").read_bytes()
    end = max(place + 80, aep + 8)
    path = tmp_path / "cut.h5"
    with Recoverer(tmp_path) as recoverer:
        for length in range(min(place, aep), end + 1):
            path.write_bytes(content[:length])
            for one in recoverer.recover(path).results:
                assert np.array_equal(one.result.layout, layout_of((0, 0, 0)))
                assert one.result.aep_gwh == 100.0 or one.status == "no-aep"
    assert length == end
    assert recover(tmp_path / "a.h5", tmp_path).plausible == 1


WRITER = """
import h5py, os, sys
sys.path.insert(0, sys.argv[2])
from foreign_files import write_foreign_group
from leeward.store.format.keys import Key
file = h5py.File(sys.argv[1], "w", libver=sys.argv[3] or None)
for seed in range(20):
    write_foreign_group(file, Key(0, 0, seed))
    file.flush()
print("ready", flush=True)
input()
"""


@pytest.mark.parametrize("libver", ["", "latest"])
def test_the_file_of_a_killed_writer(tmp_path, libver):
    """It is open for writing for ever, as its flag says in the newer format."""
    path = tmp_path / "worker_1.h5"
    here = os.path.dirname(os.path.abspath(__file__))
    command = [sys.executable, "-c", WRITER, str(path), here, libver]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"ready\n"
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    before = path.read_bytes()
    if libver:
        with pytest.raises(OSError, match="already open for write"):
            h5py.File(path)
    found = recover(path, tmp_path)
    assert found.plausible == 20
    if libver:
        assert recovery.UNMARKED in " ".join(found.tried)
    for one in found.results:
        assert np.array_equal(one.result.layout, layout_of(one.key))
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"junk" * 1000, SIGNATURE, SIGNATURE + b"\x03" + b"\xff" * 60])
def test_files_that_hold_nothing(tmp_path, content):
    path = tmp_path / "a.h5"
    path.write_bytes(content)
    found = recover(path, tmp_path)
    assert (found.results, found.lost) == ([], [])
    assert found.file.verdict is not Verdict.VALID


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.h5")
    (tmp_path / "link.h5").symlink_to("nowhere")
    (tmp_path / "folder.h5").mkdir()
    for name in ("pipe", "link", "folder"):
        found = recover(tmp_path / f"{name}.h5", tmp_path)
        assert (found.results, found.file.verdict) == ([], Verdict.UNREADABLE)


def test_a_full_disk(tmp_path, monkeypatch):
    """What needs no copy is still found, and it is said that something was not tried."""
    path = write_foreign_file(tmp_path / "worker_1.h5", KEYS)
    truncate(path, 0.97)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recovery, "_copy_data", full)
    found = recover(path, tmp_path)
    assert len(found.results) >= 11
    assert found.notes == [f"extended: no copy could be written to {tmp_path.parent} (No space left on device)"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["worker_1.h5"]


def test_a_file_that_says_it_is_huge(tmp_path):
    """It is not written out to the length that a damaged superblock states."""
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        write_foreign_group(file, Key(0, 0, 0))
    content = bytearray((tmp_path / "a.h5").read_bytes())
    content[11] = 1
    content[28:36] = (1 << 50).to_bytes(8, "little")
    content[44:48] = lookup3(bytes(content[:44])).to_bytes(4, "little")
    (tmp_path / "a.h5").write_bytes(content)
    assert recovery._start_of(tmp_path / "a.h5").missing == 0
    assert names(recover(tmp_path / "a.h5", tmp_path).results) == ["farm0_t0_s0"]


@pytest.mark.parametrize("libver", [None, "latest"])
def test_what_a_script_has_deleted_stays_deleted(tmp_path, libver):
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        for key in KEYS[:4]:
            write_foreign_group(file, Key(*key))
        del file["farm0_t0_s2"]
    found = recover(tmp_path / "a.h5", tmp_path)
    assert names(found.results) == ["farm0_t0_s0", "farm0_t0_s1", "farm0_t0_s3"]


@pytest.mark.parametrize(("share", "fewest"), [(1.0, 7), (0.9, 5), (0.8, 4), (0.7, 0)])
def test_layouts_that_are_no_results(tmp_path, share, fewest):
    """Those of a group beside the results keep out of them, whether the file is whole or not."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        initial, final = file.create_group("initial_layouts"), file.create_group("optimized_layouts")
        for key in KEYS[:7]:
            write_foreign_group(initial, Key(*key), aep=50.0)
            write_foreign_group(final, Key(*key), aep=100.0)
    truncate(path, share)
    found = recover(path, tmp_path)
    assert len(found.results) >= fewest
    assert {one.result.aep_gwh for one in found.results} <= {100.0}


def test_a_carver_that_comes_to_no_end_is_told(tmp_path, monkeypatch):
    path = write_foreign_file(tmp_path / "worker_1.h5", KEYS[:3])
    truncate(path, 0.9)
    use_faulty_children(monkeypatch, tmp_path, "farm0_t0_s1 sleep")
    monkeypatch.setattr("leeward.store.isolated.reader._MOST_TIMEOUTS", 1)
    found = recover(path, tmp_path, Limits(seconds=0.3))  # `use_faulty_children` waits for slow ones
    assert any("carved: ended early, timed-out-reader" in note for note in found.notes), found


def test_a_file_that_hangs_every_reader(tmp_path, monkeypatch):
    """Nobody waits for more than three silent children, on any way there is."""
    use_faulty_children(monkeypatch, tmp_path, "any hang_all")
    path = write_foreign_file(tmp_path / "worker_1.h5", KEYS[:2])
    found = recover(path, tmp_path, Limits(seconds=0.3))  # `use_faulty_children` waits for slow ones
    assert found.results == []
    assert len((tmp_path / "silent.txt").read_text().split()) <= 6


# --- doubts ----------------------------------------------------------------------------------------------------------


def found_in(path):
    return [one for one in read_files([path], contents=True) if one.path == path and hasattr(one, "digest")]


def test_a_turbine_in_another_country(tmp_path):
    path = write_foreign_file(tmp_path / "a.h5", KEYS)
    assert doubtful(found_in(path)) == {}
    with h5py.File(path, "a") as file:
        moved = file["farm0_t0_s4/layout"][:]
        moved[1, 3] = 3e8
        file["farm0_t0_s4/layout"][:] = moved
    assert "turbine 3 is at" in doubtful(found_in(path))[Key(0, 0, 4)]
    found = recover(path, tmp_path)
    assert "farm0_t0_s4" not in names(found.results)
    assert [(one.name, one.verdict) for one in found.lost] == [("farm0_t0_s4", Verdict.IMPLAUSIBLE)]


def test_a_rotor_unlike_the_others(tmp_path):
    path = write_foreign_file(tmp_path / "a.h5", KEYS)
    with h5py.File(path, "a") as file:
        file["farm0_t0_s4"].attrs["diameter"] = 241.0
    assert list(doubtful(found_in(path))) == [Key(0, 0, 4)]


def test_rotors_that_all_differ_are_no_doubt(tmp_path):
    path = write_foreign_file(tmp_path / "a.h5", KEYS)
    with h5py.File(path, "a") as file:
        for seed in range(4):
            file[f"farm0_t0_s{seed}"].attrs["diameter"] = 200.0 + seed
    assert doubtful(found_in(path)) == {}


def test_an_energy_unlike_the_others(tmp_path):
    path = write_foreign_file(tmp_path / "a.h5", KEYS)
    with h5py.File(path, "a") as file:
        file["farm0_t0_s4/aep"][()] = 1.4e-307
        file["farm0_t0_s5/aep"][()] = 6.2e6
        file["farm0_t0_s6/aep"][()] = 0.0  # which a script may have stored: it is known to be none
    assert list(doubtful(found_in(path))) == [Key(0, 0, 4), Key(0, 0, 5)]


def test_one_row_and_a_lone_turbine_are_no_doubt(tmp_path):
    row = np.array([[*range(0, 30_000, 1000), 38_000], np.zeros(31)])
    grid = np.array([[0.0, 0.0, 0.0, 900.0], [0.0, 900.0, 1800.0, 0.0]])
    for number, one in enumerate((row, grid)):
        path = tmp_path / f"{number}.h5"
        write_foreign_file(path, KEYS[:1], layout=one, n_turbines=one.shape[1])
        assert names(recover(path, tmp_path).results) == ["farm0_t0_s0"]


def test_zeros_where_a_page_was(tmp_path):
    """libhdf5 reads them without a word; that they end where pages of a disk do tells."""
    path = write_foreign_file(tmp_path / "a.h5", KEYS, turbines=45)
    with h5py.File(path) as file:
        place = file["farm0_t0_s5/layout"].id.get_offset()
    content = bytearray(path.read_bytes())
    first = place + -place % 512
    assert place < first < place + 720 - 64
    content[first : first + 512] = bytes(512)
    path.write_bytes(content)
    assert "farm0_t0_s5" in [one.name for one in found_in(path) if one.is_valid]
    found = recover(path, tmp_path)
    assert "farm0_t0_s5" not in names(found.results)
    assert "lost page" in {one.name: one.reason for one in found.lost}["farm0_t0_s5"]


# --- merging and the command -----------------------------------------------------------------------------------------


@pytest.fixture
def crashed(tmp_path):
    """A campaign of 30 seeds; worker files with 20 of them: one whole, one cut, one beheaded, one empty."""
    campaign = load(make_campaign(tmp_path, seeds=30))
    true = {seed: campaign.recompute(Key(0, 0, seed), *layout(seed))[0] for seed in range(20)}
    folder = tmp_path / "layouts.h5_temp"
    folder.mkdir()
    write_worker_file(folder / "worker_100.h5", {seed: true[seed] for seed in range(5)})
    write_worker_file(folder / "worker_101.h5", {seed: true[seed] for seed in range(5, 10)})
    truncate(folder / "worker_101.h5", 0.8)
    write_worker_file(folder / "worker_102.h5", {seed: true[seed] for seed in range(10, 20)})
    content = bytearray((folder / "worker_102.h5").read_bytes())
    content[:200] = b"\xaa" * 200
    (folder / "worker_102.h5").write_bytes(content)
    (folder / "worker_103.h5").touch()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    yield tmp_path, true
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert not list(tmp_path.rglob(".*"))


def test_the_command(crashed):
    folder, true = crashed
    done = leeward_here("salvage", "layouts.h5_temp", "-o", "salvaged.h5", "--campaign", "campaign.yaml", cwd=folder)
    assert done.returncode == 3, done.stderr
    found = results(folder / "salvaged.h5")
    assert set(range(5)) | set(range(10, 20)) <= {one.key.seed for one in found.values()} <= set(range(20))
    assert len(found) >= 18
    for one in found.values():
        assert np.array_equal(one.layout, layout(one.key.seed))
        assert one.aep_gwh == true[one.key.seed]
        assert one.details["evidence"] == "plausible"
    rows = {line.split()[0]: line.split()[-5:] for line in done.stdout.splitlines() if "worker_10" in line}
    assert rows["layouts.h5_temp/worker_102.h5"] == ["not-hdf5", "10", "0", "10", "0+"]
    assert rows["layouts.h5_temp/worker_103.h5"] == ["empty", "0", "0", "0", "0+"]
    assert "leeward run campaign.yaml --adopt salvaged.h5" in done.stdout
    again = leeward_here("run", "campaign.yaml", "--engine", "inline", "--adopt", "salvaged.h5", cwd=folder)
    assert again.returncode == 0, again.stderr
    assert len(results(folder / "layouts.h5")) == 30
    checked = leeward_here("check", "layouts.h5", "--complete", "--deep", cwd=folder)
    assert checked.returncode == 0, checked.stdout
    # and salvage says so when nothing is missing any more
    whole = leeward_here("salvage", "layouts.h5", "layouts.h5_temp/worker_103.h5", "-o", "again.h5", cwd=folder)
    assert whole.returncode == 0, whole.stdout
    assert "No expected result is missing." in whole.stdout


def test_as_json_and_without_writing(crashed):
    folder, _ = crashed
    done = leeward_here("salvage", "layouts.h5_temp", "-o", "salvaged.h5", "--dry-run", "--json", cwd=folder)
    assert done.returncode == 3
    said = json.loads(done.stdout)
    assert said["results"] >= 18
    assert said["missing"] is None
    assert said["files"][2]["ways"] == {"read as it is": 0, "carved": 10}
    assert {path.name for path in folder.iterdir() if path.is_file()} == {"campaign.yaml", "own_recipe_of_tests.py"}


@pytest.mark.slow
def test_with_a_campaign_an_aep_has_to_be_that_of_its_layout(crashed):
    folder, true = crashed
    path = folder / "moved.h5"
    write_worker_file(path, {0: true[0], 1: true[1], 2: 0.0})
    with h5py.File(path, "a") as file:
        file["farm0_t0_s1/layout"][1, 2] -= 1000.0  # as a flipped bit may
    for command in (["merge", "--on-bad", "skip"], ["merge", "--on-bad", "salvage"], ["salvage"]):
        output = f"{len(command)}{command[-1]}.h5"
        done = leeward_here(
            command[0], "moved.h5", "-o", output, *command[1:], "--campaign", "campaign.yaml", cwd=folder
        )
        assert done.returncode == 3, done.stderr
        assert sorted(results(folder / output)) == ["farm0_t0_s0", "farm0_t0_s2"]
        assert "the wake engine computes" in done.stdout
    without = leeward_here("merge", "moved.h5", "-o", "all.h5", cwd=folder)
    assert without.returncode == 3, without.stderr  # one has no AEP
    assert len(results(folder / "all.h5")) == 3
    refused = leeward_here("merge", "moved.h5", "-o", "none.h5", "--campaign", "campaign.yaml", cwd=folder)
    assert refused.returncode == 3
    assert not (folder / "none.h5").exists()


def test_coordinates_beyond_the_earth(crashed):
    """Finite, and far beyond what the tables of a wake model hold: a fault of the layouts, not the end of the merge."""
    folder, true = crashed
    write_worker_file(folder / "far.h5", {0: true[0], 1: true[1], 2: 0.0})
    with h5py.File(folder / "far.h5", "a") as file:
        for seed in (1, 2):
            file[f"farm0_t0_s{seed}/layout"][0] = [1e170, 1e180, 0.0]
    done = leeward_here("merge", "far.h5", "-o", "m.h5", "--on-bad", "skip", "--campaign", "campaign.yaml", cwd=folder)
    assert done.returncode == 3, done.stderr
    assert done.stdout.count("m outside the area of farm 0") == 2
    assert sorted(results(folder / "m.h5")) == ["farm0_t0_s0"]


@pytest.mark.slow
def test_salvaged_layouts_are_inside_and_spaced(crashed):
    folder, _ = crashed
    campaign = load(folder / "campaign.yaml")
    path = folder / "odd.h5"
    write_worker_file(path, {0: None, 1: None})
    with h5py.File(path, "a") as file:
        file["farm0_t0_s1/layout"][:] = [[600.0, 700.0, 4400.0], [1000.0, 1000.0, 3000.0]]
    done = leeward_here("salvage", "odd.h5", "-o", "s.h5", "--campaign", "campaign.yaml", cwd=folder)
    assert "1 result rejected by the campaign" in done.stdout
    assert "To keep them without checking against the campaign: leeward salvage odd.h5 -o s.h5" in done.stdout
    assert sorted(results(folder / "s.h5")) == ["farm0_t0_s0"]
    assert "breaks a constraint" in done.stdout
    assert results(folder / "s.h5")["farm0_t0_s0"].aep_gwh == campaign.recompute(Key(0, 0, 0), *layout(0))[0]


@pytest.mark.slow
def test_a_quarantine_that_is_named(tmp_path):
    """Files in it have names of their own."""
    make_campaign(tmp_path, seeds=2, execution={"engine": "inline"})
    assert leeward_here("run", "campaign.yaml", cwd=tmp_path).returncode == 0
    run = tmp_path / "layouts.run"
    (shard,) = run.glob("results/*/farm0_t0_s1.h5")
    shard.rename(run / "quarantine" / "farm0_t0_s1.h5.0123abcd")
    done = leeward_here("salvage", "layouts.run", "-o", "s.h5", cwd=tmp_path)
    assert "layouts.run/quarantine has files that failed verification" in done.stdout
    done = leeward_here("salvage", "layouts.run", "layouts.run/quarantine", "-o", "s.h5", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(results(tmp_path / "s.h5")) == 2


@pytest.mark.slow
def test_many_files(tmp_path):
    """More than a process may have open."""
    for seed in range(80):
        write_foreign_file(tmp_path / f"worker_{seed}.h5", [(0, 0, seed)])
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48)); from leeward.cli import main; main()"
    command = [sys.executable, "-P", "-c", few, "salvage", ".", "-o", "s.h5"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert len(results(tmp_path / "s.h5")) == 80
    again = leeward_here("salvage", "s.h5", "-o", "t.h5", cwd=tmp_path)
    assert "(0 verified and 80 plausible were found)" in again.stdout  # they do not become more than they are
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_left_overs_of_a_killed_salvage(tmp_path):
    write_foreign_file(tmp_path / "a.h5", KEYS[:2])
    left = tmp_path / left_behind("s.h5", ".salvage")
    left.mkdir()
    (left / "0.h5").write_bytes(b"half")
    assert leeward_here("salvage", "a.h5", "-o", "s.h5", cwd=tmp_path).returncode == 0
    assert not left.exists()


def test_nothing_to_be_had(tmp_path):
    (tmp_path / "a.h5").write_bytes(b"nothing" * 100)
    done = leeward_here("salvage", "a.h5", "-o", "s.h5", cwd=tmp_path)
    assert done.returncode == 3
    assert "no valid result was found" in done.stderr
    assert "not-hdf5" in done.stdout
    assert not (tmp_path / "s.h5").exists()


@pytest.mark.slow
def test_two_files_with_different_results_of_a_key(tmp_path):
    write_foreign_file(tmp_path / "a.h5", KEYS[:3], aep=100.0)
    write_foreign_file(tmp_path / "b.h5", KEYS[2:5], aep=90.0)
    done = leeward_here("salvage", "a.h5", "b.h5", "-o", "s.h5", cwd=tmp_path)
    assert done.returncode == 3
    assert "farm0_t0_s2: the same layout with different AEP" in done.stderr
    assert "a.h5" in done.stderr
    assert ".salvage" not in done.stderr  # the files are named, not the copies
    assert "leeward salvage a.h5 b.h5 -o s.h5 --prefer best" in done.stdout
    done = leeward_here("salvage", "a.h5", "b.h5", "-o", "s.h5", "--prefer", "best", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "s.h5")["farm0_t0_s2"].aep_gwh == 100.0


def test_salvaged_sources_are_never_removed(crashed):
    folder, _ = crashed
    done = leeward_here(
        "merge", "layouts.h5_temp", "-o", "m.h5", "--on-bad", "salvage", "--remove-sources", "--dry-run", cwd=folder
    )
    assert "1 source would be removed, 3 would be kept" in done.stdout, done.stdout
    assert "recovered from layouts.h5_temp/worker_102.h5 (not-hdf5): 10 results" in done.stdout


@pytest.mark.slow
def test_the_campaign_of_a_damaged_file_is_kept(tmp_path):
    make_campaign(tmp_path, seeds=4, execution={"engine": "inline"})
    assert leeward_here("run", "campaign.yaml", cwd=tmp_path).returncode == 0
    content = bytearray((tmp_path / "layouts.h5").read_bytes())
    content[content.rindex(b"fingerprint") + 30] ^= 1
    (tmp_path / "broken.h5").write_bytes(content)
    report = merge([tmp_path / "broken.h5"], tmp_path / "s.h5", on_bad="salvage")
    assert report.results == 3
    (about,) = report.salvaged
    assert (about.verified, about.plausible, len(about.lost)) == (3, 0, 1)
    done = leeward_here("missing", "s.h5", cwd=tmp_path)
    assert done.returncode == 3
    assert "1" in done.stdout


def test_sparse_files_of_a_terabyte(tmp_path):
    """Holes are neither hashed nor scanned nor copied; that there is no SHA-256 is told."""
    worker = write_foreign_file(tmp_path / "worker.h5", [(0, 0, 0), (0, 0, 1)])
    killed = write_own_file(tmp_path / "killed.h5", [own_result(seed=5)])
    content = bytearray(killed.read_bytes())
    content[11] |= 1  # the mark of a writer
    content[44:48] = lookup3(bytes(content[:44])).to_bytes(4, "little")
    killed.write_bytes(content)
    for path in (worker, killed):
        os.truncate(path, 10**12)
    done = leeward_here("merge", "worker.h5", "-o", "merged.h5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no SHA-256" in next(tmp_path.glob("merge_log_*.txt")).read_text()
    done = leeward_here("salvage", "worker.h5", "killed.h5", "-o", "salvaged.h5", cwd=tmp_path)
    assert "3 results" in done.stdout, done
    assert (tmp_path / "salvaged.h5").stat().st_size < 10**7


def test_a_copy_keeps_the_holes_of_a_file(tmp_path):
    path, copy = tmp_path / "a", tmp_path / "b"
    with path.open("wb") as file:
        file.write(b"x" * 5000)
        file.seek(10_000_000)
        file.write(b"y" * 5000)
        file.truncate(20_000_000)
    with path.open("rb") as source, copy.open("wb") as target:
        recovery._copy_data(source.fileno(), target)
        assert target.tell() == 20_000_000
    assert copy.read_bytes() == path.read_bytes()
    assert copy.stat().st_blocks <= path.stat().st_blocks
