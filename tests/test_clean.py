"""Quarantine and cleaning of a run directory."""

import json
import os

import pytest

from foreign_files import left_behind, own_result
from leeward.errors import StorageError
from leeward.store.directory.audit import Audit, read_lines
from leeward.store.directory.quarantine import quarantine
from leeward.store.directory.shards import store_result
from leeward.store.directory.temporary import Temporary
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.merging.clean import clean
from leeward.store.merging.merge import merge_run
from leeward.store.paths import RunPaths


@pytest.fixture
def run(tmp_path):
    """A run directory with six shards."""
    paths = RunPaths(tmp_path / "layouts.h5")
    for seed in range(6):
        store_result(paths, own_result(seed=seed))
    return paths


@pytest.fixture
def audit(run):
    return Audit(run.audit)


def events(audit):
    return [line["event"] for line in read_lines(audit.path)]


def shard(run, seed):
    return run.shard(Key(0, 0, seed))


# --- quarantine ------------------------------------------------------------------------------------------------------


def test_a_bad_file_is_moved_with_its_reason(run, audit):
    bad = shard(run, 0)
    content = bad.read_bytes()
    place = quarantine(run, bad, Verdict.BAD_SEAL, "a flipped bit", audit.record)
    assert not bad.exists()
    assert place.parent == run.quarantine
    assert place.name.startswith("farm0_t0_s0.h5.")
    assert place.read_bytes() == content
    about = json.loads(place.with_name(place.name + ".reason.json").read_text())
    assert (about["verdict"], about["reason"], about["from"], about["size"]) == (
        "bad-seal",
        "a flipped bit",
        str(bad),
        len(content),
    )
    assert read_lines(audit.path)[0]["to"] == str(place)


def test_the_same_name_twice(run):
    first = quarantine(run, shard(run, 0), Verdict.EMPTY, "empty")
    store_result(run, own_result(seed=0))
    second = quarantine(run, shard(run, 0), Verdict.EMPTY, "empty")
    assert first != second
    assert first.exists()


def test_a_folder_or_a_link_in_the_place_of_a_file(run):
    shard(run, 0).unlink()
    shard(run, 0).mkdir()
    shard(run, 1).unlink()
    shard(run, 1).symlink_to("nowhere")
    assert quarantine(run, shard(run, 0), Verdict.UNREADABLE, "a folder").is_dir()
    assert quarantine(run, shard(run, 1), Verdict.UNREADABLE, "a link").is_symlink()


def test_cut_off_before_the_move_it_is_done_again(run, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *places: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        with pytest.raises(StorageError, match="Input/output"):
            quarantine(run, shard(run, 0), Verdict.EMPTY, "empty")
    assert shard(run, 0).exists()
    assert quarantine(run, shard(run, 0), Verdict.EMPTY, "empty").exists()


# --- clean -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def untidy(run):
    shard(run, 0).write_bytes(b"")
    shard(run, 1).write_bytes(b"not HDF5 at all")
    (shard(run, 2).parent / ".farm0_t0_s2.h5.0123abcd.tmp").write_bytes(b"half")
    (run.output.parent / left_behind("layouts.h5")).write_bytes(b"half")
    (run.output.parent / left_behind("other.h5")).write_bytes(b"half")
    return run


def test_invalid_files_are_listed_and_moved(untidy, audit):
    report = clean(untidy, emit=audit.record)
    assert [(bad.path.name, bad.verdict) for bad in report.bad] == [
        ("farm0_t0_s0.h5", Verdict.EMPTY),
        ("farm0_t0_s1.h5", Verdict.NOT_HDF5),
    ]
    assert len(report.quarantined) == 2
    assert all(path.exists() for path in report.quarantined)
    assert len(list(untidy.shards())) == 4
    assert [path.name for path in report.temporary] == [".farm0_t0_s2.h5.0123abcd.tmp", left_behind("layouts.h5")]
    assert not any(path.exists() for path in report.temporary)
    assert (untidy.output.parent / left_behind("other.h5")).exists()
    assert events(audit) == ["quarantine", "quarantine", "remove-temporary"]
    again = clean(untidy, emit=audit.record)
    assert (again.bad, again.temporary) == ([], [])


def test_what_somebody_is_writing_stays(run):
    with Temporary(run.output) as mine:
        assert clean(run).temporary == []
        assert mine.path.exists()


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("merged", [False, True])
def test_a_dry_run_changes_nothing(untidy, audit, merged):
    merge_run(untidy, {})
    (untidy.output.parent / left_behind("layouts.h5")).write_bytes(b"half")
    before = tree(untidy.output.parent)
    report = clean(untidy, merged=merged, dry_run=True, emit=audit.record)
    assert tree(untidy.output.parent) == before
    if merged:
        assert (len(report.removed), len(report.kept)) == (4, 2)
    else:
        assert (len(report.bad), len(report.quarantined), len(report.temporary)) == (2, 0, 2)


def test_merged_shards_go_and_unproved_ones_stay(run, audit):
    merge_run(run, {})
    store_result(run, own_result(seed=6))
    shard(run, 1).unlink()
    store_result(run, own_result(seed=1, aep=7.0))
    told = []
    report = clean(run, merged=True, emit=audit.record, on_progress=lambda *news: told.append(news))
    assert sorted(path.name for path in report.removed) == [f"farm0_t0_s{seed}.h5" for seed in (0, 2, 3, 4, 5)]
    assert {one.path.name: one.reason for one in report.kept} == {
        "farm0_t0_s1.h5": "not in the output: farm0_t0_s1",
        "farm0_t0_s6.h5": "not in the output: farm0_t0_s6",
    }
    assert sorted(path.name for path in run.shards()) == ["farm0_t0_s1.h5", "farm0_t0_s6.h5"]
    assert all(any(folder.iterdir()) for folder in run.results.iterdir())
    assert events(audit) == ["removing", "removed"]
    assert told[-1] == ("comparing", 7, 7)


def test_all_merged_leaves_no_empty_folders(run):
    merge_run(run, {})
    clean(run, merged=True)
    assert not run.results.exists()
    assert run.root.exists()


@pytest.mark.parametrize(
    "damage",
    ["cut", pytest.param("absent", marks=pytest.mark.slow), pytest.param("foreign bytes", marks=pytest.mark.slow)],
)
def test_without_a_good_output_nothing_goes(run, damage):
    merge_run(run, {})
    if damage == "absent":
        run.output.unlink()
    elif damage == "cut":
        run.output.write_bytes(run.output.read_bytes()[:-50])
    else:
        run.output.write_bytes(b"something else")
    report = clean(run, merged=True)
    assert report.removed == []
    assert {one.reason[:32] for one in report.kept} == {"the output could not be verified"}
    assert len(list(run.shards())) == 6


def test_a_result_damaged_in_the_output_keeps_all_shards(run):
    merge_run(run, {})
    content = bytearray(run.output.read_bytes())
    content[content.index(own_result(seed=3).layout.tobytes()[:32]) + 5] ^= 1
    run.output.write_bytes(content)
    assert clean(run, merged=True).removed == []
    assert len(list(run.shards())) == 6
