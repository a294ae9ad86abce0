"""Every verdict, on real files, by real child processes: killed, stopped and driven mad."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from foreign_files import own_result, write_foreign_file, write_own_file
from leeward.errors import LeewardError
from leeward.store.directory.shards import shard_bytes, store_result
from leeward.store.format.found import FoundFile
from leeward.store.format.groups import LIBVER, write_group, write_root
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated import hdf5_files
from leeward.store.isolated.reader import Limits, Reader, read_files
from leeward.store.paths import RunPaths
from reader_cases import be_patient, use_faulty_children
from run_cases import until

HERE = Path(__file__).parent


def read(*paths, **options):
    """What was found, as (results, file) for each path."""
    answers, results = [], []
    for found in read_files(paths, **options):
        if isinstance(found, FoundFile):
            answers.append((results, found))
            results = []
        else:
            results.append(found)
    assert not results
    assert [file.path for _, file in answers] == list(paths)
    return answers


def read_one(path, **options):
    return read(path, **options)[0]


def verdicts(results):
    return {found.name: found.verdict.value for found in results}


@pytest.fixture
def faulty(monkeypatch, tmp_path):
    """Children that go wrong at a group."""
    return lambda name, fault: use_faulty_children(monkeypatch, tmp_path, f"{name} {fault}")


@pytest.fixture
def own_file(tmp_path):
    return write_own_file(tmp_path / "layouts.h5", [own_result(seed=seed) for seed in range(3)], campaign="text: 1")


def test_valid_results_with_and_without_contents(own_file):
    results, file = read_one(own_file)
    assert file.is_valid
    assert (file.valid, file.bad, file.sealed, file.reason) == (3, 0, True, "")
    assert file.size == own_file.stat().st_size
    assert file.attributes == {"format_version": 1, "campaign": "text: 1"}
    assert [found.key for found in results] == [Key(0, 0, seed) for seed in range(3)]
    assert all(found.is_valid and found.sealed and found.result is None for found in results)
    original = own_result(seed=1)
    assert results[1].digest == original.digest
    assert results[1].aep_gwh == original.aep_gwh
    assert (results[1].attributes["n_turbines"], results[1].attributes["diameter"]) == (5, 240.0)
    assert results[1].details["host"] == "node"
    results, file = read_one(own_file, contents=True, sha256=True)
    again = results[1].result
    assert again.seal == original.seal
    np.testing.assert_array_equal(again.history, original.history)
    np.testing.assert_array_equal(again.x, original.layout[0])
    assert len(file.sha256) == 64


def test_many_files_in_order_by_several_children(tmp_path):
    paths = RunPaths(tmp_path / "layouts.h5")
    shards = [store_result(paths, own_result(seed=seed)) for seed in range(60)]
    shards[7].write_bytes(b"")
    one = read(*shards, processes=1)
    two = read(*shards, processes=3)
    assert [verdicts(results) for results, _ in one] == [verdicts(results) for results, _ in two]
    assert [file.verdict == "valid" for _, file in two] == [seed != 7 for seed in range(60)]
    assert list(read_files([])) == []


def test_paths_are_taken_lazily(own_file):
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield own_file

    found = read_files(endless())
    for _ in range(20):
        next(found)
    assert len(taken) < 50
    found.close()


def test_only_some_groups(own_file, tmp_path):
    other = write_foreign_file(tmp_path / "worker.h5", [(1, 1, 1), (1, 1, 2)], folder="optimized_layouts")
    names = {own_file: ["farm0_t0_s2", "farm9_t9_s9"], other: ["optimized_layouts/farm1_t1_s2"]}
    (first, file), (second, _) = read(own_file, other, keys=names, contents=True)
    assert verdicts(first) == {"farm0_t0_s2": "valid", "farm9_t9_s9": "wrong-structure"}
    assert "nothing of this name" in first[1].reason
    assert file.verdict is Verdict.VALID
    assert second[0].result.key == Key(1, 1, 2)
    many = [f"farm0_t0_s{seed}" for seed in range(20_000)]  # more than a pipe holds
    results, _ = read_one(own_file, keys={own_file: many})
    assert sum(found.is_valid for found in results) == 3


# --- files -----------------------------------------------------------------------------------------------------------


def test_what_is_no_plain_file(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.h5")
    (tmp_path / "folder.h5").mkdir()
    (tmp_path / "link.h5").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop.h5").symlink_to(tmp_path / "loop.h5")
    listener = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(tmp_path)
    listener.bind("socket.h5")  # a whole path may be too long for it
    expected = {
        "pipe.h5": "it is a pipe",
        "folder.h5": "it is a folder",
        "link.h5": "it is a broken link",
        "loop.h5": "it is a link",
        "socket.h5": "it is a socket",
        "none.h5": "no such file",
        "none/none.h5": "no such file",
    }
    answers = read(*(tmp_path / name for name in expected), Path("/dev/zero"))
    for (_, file), reason in zip(answers, [*expected.values(), "it is a device"], strict=True):
        assert (file.verdict, file.size) == (Verdict.UNREADABLE, -1)
        assert reason in file.reason
    listener.close()


def test_no_permission(own_file):
    own_file.chmod(0)
    mine = os.geteuid()
    try:
        os.seteuid(65534 if mine == 0 else mine)
        with pytest.raises(hdf5_files.BadFileError, match="Permission denied"), hdf5_files.open_plain(str(own_file)):
            pass
    finally:
        os.seteuid(mine)


def test_empty_and_other_files(tmp_path, own_file):
    contents = {
        "empty.h5": (b"", "empty"),
        "text.h5": (b"no HDF5 at all\n" * 100, "not-hdf5"),
        "zeros.h5": (bytes(5000), "not-hdf5"),
        "start.h5": (own_file.read_bytes()[:8], "truncated"),
        "short.h5": (own_file.read_bytes()[:40], "truncated"),
        "damaged.h5": (own_file.read_bytes()[:48] + bytes(200) + own_file.read_bytes()[248:], "unreadable"),
        "future.h5": (b"\x89HDF\r\n\x1a\n\x09" + bytes(100), "unreadable"),
    }
    for name, (content, _) in contents.items():
        (tmp_path / name).write_bytes(content)
    answers = read(*(tmp_path / name for name in contents))
    assert {file.path.name: str(file.verdict) for _, file in answers} == {
        name: verdict for name, (_, verdict) in contents.items()
    }
    assert all(file.reason for _, file in answers)
    strange = tmp_path / os.fsdecode(b"na\xffme \n\xc3\xa6.h5")
    own_file.rename(strange)
    assert read_one(strange)[1].is_valid


@pytest.mark.parametrize("libver", ["earliest", "v110", "latest"])
def test_truncated_at_any_length(tmp_path, libver):
    whole = tmp_path / "whole.h5"
    with h5py.File(whole, "w", libver=libver, userblock_size=512 if libver == "earliest" else 0) as file:
        file.create_group("farm0_t0_s0")["layout"] = np.arange(20.0).reshape(2, 10)
    content = whole.read_bytes()
    assert read_one(whole)[1].is_valid
    paths = []
    for length in np.linspace(600 if libver == "earliest" else 100, len(content) - 1, 15).astype(int):
        paths.append(tmp_path / f"{length}.h5")
        paths[-1].write_bytes(content[:length])
    answers = read(*paths)
    assert {file.verdict for _, file in answers} == {Verdict.TRUNCATED}
    assert f"{len(content) - 1} of {len(content)} bytes" in answers[-1][1].reason
    assert not any(results for results, _ in answers)


def test_open_for_writing(tmp_path):
    path = tmp_path / "worker.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["init"] = 1
    from_library = h5py.File(path, "r+", libver="latest")
    from_library.flush()
    content = path.read_bytes()
    from_library.close()
    path.write_bytes(content)
    _, file = read_one(path)
    assert (file.verdict, file.reason) == (
        Verdict.UNREADABLE,
        "it is marked as open for writing; its writer was probably killed",
    )


def test_newer_format(tmp_path, own_file):
    with h5py.File(own_file, "r+", libver=LIBVER) as file:
        file.attrs.modify("format_version", 2)
    results, file = read_one(own_file)
    assert (results, file.verdict) == ([], Verdict.WRONG_STRUCTURE)
    assert file.reason == "format_version is 2, but this leeward reads up to 1; update leeward"


def test_the_first_format_is_read_for_ever():
    results, file = read_one(HERE / "data" / "format-1.h5", contents=True)
    assert file.is_valid
    assert file.attributes["campaign_name"] == "sample"
    assert [str(found.key) for found in results] == ["farm0_t5_s3", "farm1_t0_s0", "farm2_t1_s7"]
    assert [found.origin for found in results] == ["leeward", "leeward", "foreign"]
    assert [found.status for found in results] == ["success", "success", "no-aep"]
    first = results[0].result
    assert first.layout.tolist() == [[1000.5, 2000.25, 3000.125], [10.0, 20.0, 30.0]]
    assert first.aep_gwh == 5246.57
    assert first.details["aep_by_phase"].tolist() == [5000.0, 5246.57]
    assert first.details["reproducible"] is True
    assert first.history.tolist() == [[0.0, 100.0], [5000.0, 5246.57]]
    assert first.digest == "3cac4a14fd06dc0bb5a6828e29a3bb43c944e630bc88132599d32362933da8a2"


# --- groups ----------------------------------------------------------------------------------------------------------


def test_one_bad_group_does_not_sink_the_others(tmp_path):
    path = tmp_path / "layouts.h5"
    good = [own_result(seed=seed) for seed in (0, 9)]
    with h5py.File(path, "w", libver=LIBVER) as file:
        write_root(file, {})
        for result in (*good, own_result(seed=1), own_result(seed=2), own_result(seed=3, aep=-1.0)):
            write_group(file, result)
        file["farm0_t0_s1/layout"][0, 0] += 1
        file["farm0_t0_s2"].attrs["host"] = "elsewhere, and by far too long"
        file["farm0_t0_s4"] = 5
        file["farm0_t0_s5"] = h5py.SoftLink("/farm0_t0_s0")
        file["farm0_t0_s6"] = h5py.ExternalLink("/etc/passwd", "/")
        file["farm00_t0_s7"] = file["farm0_t0_s0"]
        file["farm0_t0_s8"] = file["farm0_t0_s0"]
        file.create_group("other")
    results, file = read_one(path, contents=True)
    assert verdicts(results) == {
        "farm0_t0_s0": "valid",
        "farm0_t0_s9": "valid",
        "farm0_t0_s1": "bad-seal",
        "farm0_t0_s2": "wrong-structure",  # h5py writes texts of any length
        "farm0_t0_s3": "implausible",
        "farm0_t0_s4": "wrong-structure",
        "farm0_t0_s5": "wrong-structure",
        "farm0_t0_s6": "wrong-structure",
        "farm00_t0_s7": "wrong-structure",
        "farm0_t0_s8": "wrong-structure",
        "other": "wrong-structure",
    }
    assert file.verdict is Verdict.VALID
    assert not file.is_valid
    assert (file.valid, file.bad) == (2, 9)
    assert all(found.result is None and found.reason for found in results if not found.is_valid)
    assert {found.name: found.key for found in results}["other"] is None


def test_arrays_that_are_elsewhere_or_too_much(tmp_path):
    path = tmp_path / "worker.h5"
    huge = (2, 2**40)
    source = h5py.VirtualSource("other.h5", "layout", shape=(2, 3))
    virtual = h5py.VirtualLayout(shape=(2, 3), dtype="f8")
    virtual[:] = source
    with h5py.File(path, "w") as file:
        groups = [file.create_group(f"farm0_t0_s{i}") for i in range(8)]
        groups[0].create_dataset("layout", (2, 3), "f8", external=[("/etc/passwd", 0, 48)])
        groups[1].create_virtual_dataset("layout", virtual)
        groups[2].create_dataset("layout", huge, "f8", chunks=(2, 1000))
        groups[3].create_dataset("layout", (2, 3), "f8", chunks=(2, 2**27), maxshape=(2, None))
        groups[4]["layout"] = h5py.ExternalLink("other.h5", "/layout")
        groups[5]["layout"] = h5py.SoftLink("/farm0_t0_s7/layout")
        groups[6].create_dataset("layout", (2, 3), "f8", chunks=(2, 3), scaleoffset=3)
        groups[7]["layout"] = np.arange(6.0).reshape(2, 3)
    results, _ = read_one(path)
    reasons = {found.name: found.reason for found in results if found.verdict is Verdict.WRONG_STRUCTURE}
    words = ("another file", "another file", "at most", "chunks", "link", "link", "filter")
    assert list(reasons) == [f"farm0_t0_s{i}" for i in range(7)]
    assert all(word in reason for word, reason in zip(words, reasons.values(), strict=True))
    assert results[7].is_valid


@pytest.mark.parametrize("way", ["direct", pytest.param("indirect", marks=pytest.mark.slow)])
def test_flipped_bits_never_pass(tmp_path, faulty, way):
    if way == "indirect":
        faulty("none", way)
    original = own_result()
    content = shard_bytes(original)
    rng = np.random.default_rng(1)
    paths = []
    for place in rng.choice(8 * len(content), 300, replace=False):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        paths.append(tmp_path / f"{place}.h5")
        paths[-1].write_bytes(damaged)
    answers = read(*paths, contents=True)
    passed = [found for results, _ in answers for found in results if found.is_valid]
    assert all(found.result.seal == original.seal for found in passed)
    whole = sum(file.is_valid and file.valid == 1 for _, file in answers)
    assert whole == len(passed)
    assert whole < 60  # bits that mean nothing: padding


# --- children that end -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        ("abort", "crashed-reader"),
        pytest.param("bug", "crashed-reader", marks=pytest.mark.slow),
        pytest.param("garbage", "crashed-reader", marks=pytest.mark.slow),
        ("memory", "unreadable"),
        pytest.param("hang", "timed-out-reader", marks=pytest.mark.slow),
        ("sleep", "timed-out-reader"),
    ],
)
def test_the_group_that_ends_the_reader_gets_the_blame(faulty, own_file, fault, verdict):
    faulty("farm0_t0_s1", fault)
    answers = read(own_file, own_file, contents=True, limits=Limits(seconds=2.0))
    for results, file in answers:
        assert verdicts(results) == {"farm0_t0_s0": "valid", "farm0_t0_s1": verdict, "farm0_t0_s2": "valid"}
        assert (file.verdict, file.valid, file.bad) == (Verdict.VALID, 2, 1)
        assert results[1].reason


def test_a_file_that_ends_many_readers(monkeypatch, faulty, own_file):
    faulty("farm0_t0_s1", "abort")
    monkeypatch.setattr("leeward.store.isolated.reader._MOST_RESTARTS", 1)
    results, file = read_one(own_file)
    assert verdicts(results) == {"farm0_t0_s0": "valid"}
    assert (file.verdict, file.valid, file.size) == (Verdict.CRASHED_READER, 1, own_file.stat().st_size)


def test_a_file_in_which_every_group_hangs(faulty, own_file):
    """As damage near the root makes it: it is not waited for as often as there are groups."""
    faulty("farm", "hang_all")
    results, file = read_one(own_file, limits=Limits(seconds=1.0))
    assert verdicts(results) == {"farm0_t0_s0": "timed-out-reader", "farm0_t0_s1": "timed-out-reader"}
    assert (file.verdict, file.bad) == (Verdict.TIMED_OUT_READER, 2)


def test_a_reader_that_does_not_start(faulty, own_file):
    faulty("none", "unborn")
    with pytest.raises(LeewardError, match="does not start"):
        read(own_file)


@pytest.fixture
def large_file(tmp_path):
    """More than pipes and queues hold: the child is in the middle of it when the first result is here."""
    results = [own_result(seed=seed, turbines=5, history_text="x" * 30_000) for seed in range(60)]
    return write_own_file(tmp_path / "large.h5", results)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
def test_killed_and_stopped_children(large_file, how, monkeypatch):
    ended = []
    be_patient(monkeypatch, lambda: ended)
    with contextlib.closing(Reader(limits=Limits(seconds=2.0))) as reader:
        answers = reader.read(large_file)
        found = [next(answers)]
        first = reader._child.pid
        os.kill(first, how)
        ended.append(first)
        found += answers
        assert reader._child.pid != first
    assert len(found) == 61
    assert [result.key.seed for result in found[:-1]] == sorted(range(60), key=str)
    bad = [result.verdict.value for result in found[:-1] if not result.is_valid]
    assert bad in ([], ["timed-out-reader"])
    assert how == signal.SIGSTOP or not bad  # a killed one may have been innocent: it is tried again


def children():
    """Of this process, zombies included."""
    me = os.getpid()
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == me:
            found.append(int(path.parent.name))
    return found


def test_closing_early_ends_the_children(large_file):
    before = set(children())
    found = read_files([large_file] * 10, processes=3)
    next(found)
    assert len(set(children()) - before) == 3
    found.close()
    until(lambda: not set(children()) - before, "they have ended")
    found = read_files([large_file])
    next(found)
    del found
    until(lambda: not set(children()) - before, "it has ended")


def test_children_end_with_their_parent(faulty, own_file):
    faulty("farm0_t0_s1", "sleep")  # so that it is not the closed pipe that ends the child
    script = (
        "import os, pathlib, sys\n"
        "from leeward.store.isolated import reader, reader_process as reader_child\n"
        "reader_child.Child.MODULE = 'faulty_child'\n"
        "reading = reader.Reader()\n"
        "next(reading.read(pathlib.Path(sys.argv[1])))\n"
        "print(reading._child.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(own_file)], stdout=subprocess.PIPE, check=False)
    child = Path(f"/proc/{int(done.stdout)}")
    until(lambda: not is_running(child), "it has ended with its parent")


def is_running(process):
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_worn_child_is_replaced(tmp_path, own_file):
    bad = tmp_path / "bad.h5"
    bad.write_bytes(b"")
    answers = read(*[bad] * 520, own_file, *[bad] * 10)
    assert answers[520][1].is_valid
    assert len(answers) == 531


def test_damage_to_the_text_of_the_campaign_shows(tmp_path):
    """It is long, and libhdf5 keeps no checksum of it; the results are not touched by it."""
    usual = {"campaign": "wind " * 5000, **{f"attribute{i}": i for i in range(9)}}
    path = write_own_file(tmp_path / "layouts.h5", [own_result(seed=seed) for seed in range(12)], **usual)
    content = bytearray(path.read_bytes())
    place = content.find(b"wind wind wind") + 2000
    content[place] ^= 1
    path.write_bytes(content)
    results, file = read_one(path)
    assert file.verdict is Verdict.BAD_SEAL
    assert len(results) == 12
    assert all(found.is_valid for found in results)
