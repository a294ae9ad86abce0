"""The merged file: real child processes, killed, starved of disk and of attention; outputs that must not be lost."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5g

from foreign_files import left_behind, own_result, write_foreign_file, write_own_file
from leeward.errors import InputError, StorageError
from leeward.store.directory.index import output_index, whole_lines
from leeward.store.directory.owner import Owner, process_start
from leeward.store.directory.temporary import Temporary, remove_left_overs, start_of
from leeward.store.format.found import FoundResult
from leeward.store.format.groups import read_group
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import FOREIGN, NO_AEP, Result
from leeward.store.isolated import writer_process
from leeward.store.isolated.reader import read_files
from leeward.store.isolated.writer_process import WriterProcess
from leeward.store.merging import contents, writer
from leeward.store.merging.writer import OutputHoldsMoreError, write_merged
from run_cases import until

FACTS = {"campaign": "seeds: 3\n", "campaign_name": "test", "crs": "EPSG:25831", "grid_size": 18, "random_pct": 30.0}


def results(count, **options):
    return [own_result(farm=number % 7, seed=number // 7, **options) for number in range(count)]


def held(path):
    """Key and digest of all results; each has to be valid."""
    with h5py.File(path) as file:
        return {(name, read_group(h5g.open(file.id, name.encode()), name, Result).digest) for name in file}


def digests(some):
    return {(str(one.key), one.digest) for one in some}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def output(tmp_path):
    return tmp_path / "layouts.h5"


# --- what is written -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_many_results_come_back_as_they_were(output, count):
    some = results(count)
    written = write_merged(output, iter(some), {**FACTS, "total_configs": 2100})
    facts = (written.count, written.successful, written.no_aep, written.moved, written.index)
    assert facts == (count, count, 0, None, "")
    assert written.size == output.stat().st_size
    assert held(output) == digests(some)
    assert names(output.parent) == ["layouts.h5", "layouts.h5.index"]
    with h5py.File(output) as file:
        assert file.attrs["campaign"].decode() == FACTS["campaign"]
        assert (file.attrs["total_configs"], file.attrs["successful_configs"]) == (2100, count)
        assert file.attrs["created"].decode().endswith("Z")
        group = file["farm0_t0_s0"]
        assert np.array_equal(group["layout"][()], some[0].layout)
        assert group["aep"][()] == some[0].aep_gwh
        assert np.array_equal(group["history"][()], some[0].history)
        assert group["layout"].fletcher32


def test_every_bit_of_every_value_survives(output):
    odd = np.frombuffer(bytes.fromhex("010000000000f8ff"), dtype="<f8")  # not a number, and not the usual one
    details = {
        "text": "Æble €",
        "truth": True,
        "whole": -(2**60),
        "real": 1e-320,
        "row": np.array([1e-320, -0.0]),
    }
    strange = own_result(**details)
    absent = dataclasses.replace(
        own_result(seed=1),
        aep_gwh=float(odd[0]),
        status=NO_AEP,
        origin=FOREIGN,
        fingerprint="",
        rotor_diameter_m=float("nan"),
        history=None,
    )
    written = write_merged(output, [strange, absent], {})
    assert (written.successful, written.no_aep) == (1, 1)
    back = [one.result for one in read_files([output], contents=True) if isinstance(one, FoundResult)]
    assert [one.seal for one in back] == [strange.seal, absent.seal]
    assert back[0].details["text"] == "Æble €"
    assert back[0].details["truth"] is True


def test_a_campaign_of_a_megabyte_fits(output):
    write_merged(output, results(2), {**FACTS, "campaign": "æ" * 600_000})
    with h5py.File(output) as file:
        assert file.attrs["campaign"].decode() == "æ" * 600_000


def test_the_index_is_of_this_very_file(output):
    some = results(5)
    write_merged(output, some, FACTS)
    lines = list(whole_lines(output_index(output)))
    assert [line["key"] for line in lines] == [str(one.key) for one in some]
    assert lines[0]["aep"] == some[0].aep_gwh
    assert lines[0]["wake_loss"] == 0.1
    os.utime(output, ns=(0, 0))
    assert output_index(output) is None
    (output.parent / "layouts.h5.index").unlink()
    assert output_index(output) is None


def test_a_torn_index_is_none(output):
    write_merged(output, results(5), FACTS)
    index = output.parent / "layouts.h5.index"
    index.write_bytes(index.read_bytes()[:-10])
    assert output_index(output) is None


def test_an_index_that_cannot_be_written_is_no_failure(output):
    (output.parent / "layouts.h5.index").mkdir()
    (output.parent / "layouts.h5.index" / "x").touch()
    written = write_merged(output, results(2), FACTS)
    assert written.index
    assert len(held(output)) == 2


def test_a_key_twice_is_refused(output):
    with pytest.raises(StorageError):
        write_merged(output, [own_result(), own_result()], FACTS)
    assert names(output.parent) == []


def test_an_output_behind_a_link_stays_behind_it(output, tmp_path):
    (tmp_path / "far").mkdir()
    output.symlink_to(tmp_path / "far" / "real.h5")
    write_merged(output, results(2), FACTS)
    assert output.is_symlink()
    assert len(held(tmp_path / "far" / "real.h5")) == 2
    assert names(tmp_path / "far") == ["real.h5", "real.h5.index"]
    assert output_index(output) == output_index(tmp_path / "far" / "real.h5")
    assert output_index(output).count(b"\n") == 2


def test_a_folder_in_the_place_of_the_output(output):
    output.mkdir()
    with pytest.raises(InputError, match="folder"):
        write_merged(output, results(1), FACTS)


# --- what goes wrong -------------------------------------------------------------------------------------------------


def small_disk(path):
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk needs the right to mount one")


def test_a_full_disk_leaves_the_output_as_it_was(tmp_path):
    disk = tmp_path / "disk"
    small_disk(disk)
    try:
        output = disk / "layouts.h5"
        some = results(10)
        write_merged(output, some, FACTS)
        before = names(disk)
        with pytest.raises(StorageError, match=r"layouts\.h5"):
            write_merged(output, results(300), FACTS)
        assert names(disk) == before
        assert held(output) == digests(some)
        write_merged(output, results(12), FACTS)
        assert len(held(output)) == 12
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_limit_on_the_size_of_files_is_a_storage_error(tmp_path):
    """In a process of its own, whose children inherit the limit."""
    code = """
        import resource, sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[2])
        from foreign_files import own_result
        from leeward.errors import StorageError
        from leeward.store.merging.writer import write_merged

        output = Path(sys.argv[1])
        write_merged(output, [own_result()], {})
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            write_merged(output, [own_result(seed=seed) for seed in range(200)], {})
        except StorageError as error:
            print("refused:", error)
    """
    output = tmp_path / "layouts.h5"
    command = [sys.executable, "-c", textwrap.dedent(code), str(output), str(Path(__file__).parent)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "refused:" in said
    assert "cannot be written" in said  # libhdf5 may crash here, and the message is all that comes of it
    assert held(output) == digests([own_result()])
    assert names(tmp_path) == ["layouts.h5", "layouts.h5.index"]


def children(pid=None):
    """Return the ids of the processes that write for this one.

    The kernel may leave out a child while another one ends.
    """
    pid = pid or os.getpid()
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # another one, which ends just now
                if b"leeward.store.writer_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(int(child))
    return found


def writing(pid=None):
    """Wait for the process that writes for this one, and return its id."""
    (child,) = until(lambda: children(pid), "a writer has started")
    return child


@pytest.mark.parametrize("when", [0, 150])
def test_a_killed_writer_is_an_error_message(output, when):
    write_merged(output, results(3), FACTS)
    before = output.read_bytes()

    def deadly():
        for number, result in enumerate(results(2000)):
            if number == when:
                os.kill(writing(), signal.SIGKILL)
            yield result

    with pytest.raises(StorageError, match="SIGKILL"):
        write_merged(output, deadly(), FACTS)
    assert output.read_bytes() == before
    assert names(output.parent) == ["layouts.h5", "layouts.h5.index"]


def test_a_crash_at_the_very_end_is_an_error_message(output):
    with Temporary(output) as temporary, WriterProcess(temporary.path) as process:
        os.kill(writing(), signal.SIGSEGV)
        with pytest.raises(StorageError, match="SIGSEGV"):
            process.finish()


def test_a_writer_that_hangs_is_ended(output, monkeypatch):
    def paralysing():
        for number, result in enumerate(results(2000)):
            if number == 5:
                os.kill(writing(), signal.SIGSTOP)
            yield result

    monkeypatch.setattr(writer, "STALL_SECONDS", 1.0)
    with pytest.raises(StorageError, match="nothing was written for 1 s"):
        write_merged(output, paralysing(), FACTS)
    assert children() == []
    assert names(output.parent) == []


def test_slow_results_are_no_stall(output, monkeypatch):
    """The clock goes on by hours while the writer waits for the next result, and the watching thread looks at it."""
    passed, looks = [0.0], []
    clock = types.SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0])
    monkeypatch.setattr(writer_process, "time", clock)

    class Counted(threading.Event):
        """The watching thread waits for this event before each of its looks."""

        def wait(self, timeout):
            looks.append(timeout)
            return super().wait(min(timeout, 0.01))

    monkeypatch.setattr(writer_process, "threading", types.SimpleNamespace(Event=Counted, Thread=threading.Thread))

    def slow():
        for seed in range(2):
            yield own_result(seed=seed, one="x" * 50_000, two="y" * 50_000)  # large enough to be sent at once
            passed[0] += 10_000.0
            before = len(looks)
            until(lambda before=before: len(looks) > before + 2, "the watching thread looks")

    assert write_merged(output, slow(), FACTS).count == 2


def test_an_error_on_the_way_leaves_nothing_behind(output):
    def broken():
        yield own_result()
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        write_merged(output, broken(), FACTS)
    assert children() == []
    assert names(output.parent) == []


def test_the_writer_dies_with_its_parent_and_its_file_is_swept_up_next_time(tmp_path):
    code = """
        import sys, time
        from pathlib import Path
        sys.path.insert(0, sys.argv[2])
        from foreign_files import own_result
        from leeward.store.merging.writer import write_merged

        def endless():
            for seed in range(500):
                yield own_result(seed=seed)
            print("sent", flush=True)
            time.sleep(600)

        write_merged(Path(sys.argv[1]), endless(), {})
    """
    output = tmp_path / "layouts.h5"
    command = [sys.executable, "-c", textwrap.dedent(code), str(output), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b"sent\n"
        child = writing(parent.pid)
        born = process_start(child)
        parent.kill()
        parent.wait()
    until(lambda: process_start(child) != born, "the writer has ended")
    assert len(names(tmp_path)) <= 1
    write_merged(output, results(2), FACTS)
    assert names(tmp_path) == ["layouts.h5", "layouts.h5.index"]


def test_a_file_that_somebody_is_writing_is_not_swept_up(output):
    with Temporary(output) as other:
        write_merged(output, results(2), FACTS)
        assert other.path.exists()


def test_left_overs_of_another_machine_stay_for_a_day(output):
    """Whether their process has ended cannot be known from here; names without a process are treated the same."""
    elsewhere = dataclasses.replace(Owner.myself(), host="elsewhere", process_start="0")
    names = [f".layouts.h5.{elsewhere.tag}.0123abcd.tmp", ".layouts.h5.0123abcd.tmp"]
    for name in names:
        (output.parent / name).write_bytes(b"half")
    (output.parent / left_behind("layouts.h5")).write_bytes(b"half")
    (output.parent / left_behind("layouts.h5").replace("0123", "4567")).symlink_to(output)
    assert [path.name for path in remove_left_overs(output.parent, start_of(output))] == [left_behind("layouts.h5")]
    old = time.time() - 90_000
    for name in names:
        os.utime(output.parent / name, (old, old))
    assert {path.name for path in remove_left_overs(output.parent, start_of(output))} == set(names)


def test_what_reads_back_differently_is_not_put_in_place(output, monkeypatch):
    write_merged(output, results(2), FACTS)
    before = output.read_bytes()

    def spoil(path):
        content = bytearray(path.read_bytes())
        content[content.index(results(1)[0].layout.tobytes()[:32]) + 3] ^= 1
        path.write_bytes(content)
        return read_back(path)

    read_back = writer.contents_of
    monkeypatch.setattr(writer, "contents_of", spoil)
    with pytest.raises(StorageError, match="read back"):
        write_merged(output, results(3), FACTS)
    assert output.read_bytes() == before


@pytest.mark.parametrize("call", ["replace", "fsync", "open"])
def test_a_failing_system_call_is_a_storage_error(output, monkeypatch, call):
    write_merged(output, results(2), FACTS)
    before = output.read_bytes()
    true_call = getattr(os, call)

    def fail(path, *rest, **options):
        if call == "fsync" or ".tmp" in str(path):
            raise OSError(28, "No space left on device")
        return true_call(path, *rest, **options)

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(StorageError, match="No space left"):
        write_merged(output, results(3), FACTS)
    monkeypatch.undo()
    assert len(held(output)) in ((2,) if call != "fsync" else (2, 3))  # the folder is synced after the rename
    assert call == "fsync" or output.read_bytes() == before
    assert [name for name in names(output.parent) if name.endswith(".tmp")] == []


# --- an output that holds more ---------------------------------------------------------------------------------------


def test_an_output_is_replaced_by_one_that_has_all_of_it(output):
    write_merged(output, results(3), FACTS)
    assert write_merged(output, results(5), FACTS).moved is None
    assert held(output) == digests(results(5))


def test_an_output_that_holds_more_stays(output):
    write_merged(output, results(5), FACTS)
    before = output.read_bytes()
    with pytest.raises(OutputHoldsMoreError, match="--adopt") as caught:
        write_merged(output, results(4), FACTS)
    assert caught.value.keys == ["farm4_t0_s0"]
    assert " -o" in str(caught.value)
    with pytest.raises(OutputHoldsMoreError):  # the same keys, other results
        write_merged(output, results(5, aep=1.0), FACTS)
    assert output.read_bytes() == before
    assert names(output.parent) == ["layouts.h5", "layouts.h5.index"]


def test_what_somebody_decided_against_may_go(output):
    old = own_result(aep=1.0)
    write_merged(output, [old], FACTS)
    write_merged(output, [own_result()], FACTS, expendable={contents.make_pair(old.key, old.digest)})
    assert held(output) == digests([own_result()])


def foreign(**changes):
    return dataclasses.replace(
        own_result(), **{"origin": FOREIGN, "fingerprint": "", "stop_reason": "", "steps": 0, **changes}
    )


@pytest.mark.slow
def test_a_foreign_result_is_its_layout_and_its_aep(output):
    unknown = foreign(aep_gwh=float("nan"), status=NO_AEP)
    write_merged(output, [unknown], FACTS)
    write_merged(output, [foreign(aep_gwh=77.0)], FACTS)  # the same layout, now with an aep
    with pytest.raises(OutputHoldsMoreError):
        write_merged(output, [unknown], FACTS)
    with pytest.raises(OutputHoldsMoreError):
        write_merged(output, [foreign(aep_gwh=78.0)], FACTS)
    write_merged(output, [foreign(aep_gwh=77.0, rotor_diameter_m=1.0)], FACTS)
    write_merged(output, [dataclasses.replace(own_result(), aep_gwh=77.0)], FACTS)
    with pytest.raises(OutputHoldsMoreError):  # which knew what made it
        write_merged(output, [foreign(aep_gwh=77.0)], FACTS)


def test_a_damaged_output_is_kept_under_another_name(output):
    write_merged(output, results(3), FACTS)
    damaged = output.read_bytes()[:-100]
    output.write_bytes(damaged)
    moved = write_merged(output, results(2), FACTS).moved
    assert moved.name.startswith("layouts.h5.damaged-")
    assert moved.read_bytes() == damaged
    assert len(held(output)) == 2
    output.write_bytes(b"")
    assert write_merged(output, results(2), FACTS).moved.read_bytes() == b""


def test_a_damaged_output_whose_good_results_would_be_lost_stays(output):
    write_merged(output, results(3), FACTS)
    content = bytearray(output.read_bytes())
    content[content.index(results(1)[0].layout.tobytes()[:32]) + 3] ^= 1
    output.write_bytes(content)
    with pytest.raises(OutputHoldsMoreError) as caught:
        write_merged(output, results(2), FACTS)
    assert caught.value.keys == ["farm2_t0_s0"]
    moved = write_merged(output, results(3), FACTS).moved
    assert moved.read_bytes() == content


def test_the_file_of_another_script_is_kept_under_another_name(output):
    write_foreign_file(output)
    content = output.read_bytes()
    moved = write_merged(output, results(2), FACTS).moved
    assert moved.name.startswith("layouts.h5.foreign-")
    assert moved.read_bytes() == content


def test_what_is_known_of_the_output_is_not_believed_if_it_changed(output):
    write_merged(output, results(2), FACTS)
    known = contents.contents_of(output)
    write_own_file(output, results(5))
    with pytest.raises(OutputHoldsMoreError):
        write_merged(output, results(3), FACTS, known=known)


def test_hundreds_of_turbines(output):
    big = Result(Key(0, 0, 0), np.arange(4000.0).reshape(2, 2000), 1.0, 100.0, "", "", 0)
    write_merged(output, [big], {})
    assert held(output) == digests([big])
