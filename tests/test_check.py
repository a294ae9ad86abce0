"""Check: verdicts on whatever is named, and nothing written."""

import os
import shutil

import h5py
import pytest

from foreign_files import (
    layout_of,
    own_result,
    write_crashed_folder,
    write_foreign_file,
    write_own_file,
)
from leeward.errors import InputError
from leeward.store.directory.shards import store_result
from leeward.store.directory.sources import gather
from leeward.store.format.found import FoundFile
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.merging.check import check
from leeward.store.paths import RunPaths


@pytest.fixture
def run(tmp_path):
    """A run directory with five shards, and its merged file."""
    paths = RunPaths(tmp_path / "layouts.h5")
    results = [own_result(seed=seed) for seed in range(5)]
    for result in results:
        store_result(paths, result)
    paths.quarantine.mkdir()
    (paths.quarantine / "farm0_t0_s9.h5").write_bytes(b"")
    (paths.shard(Key(0, 0, 0)).parent / ".farm0_t0_s9.h5.1234.tmp").write_bytes(b"")
    write_own_file(paths.output, results)
    return paths


def snapshot(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_sound_run_directory(run, tmp_path):
    before = snapshot(tmp_path)
    report = check([run.root])
    assert report.is_well
    assert (report.files, report.results, len(report.keys)) == (5, 5, 5)
    report = check([tmp_path])
    assert report.is_well
    assert (report.files, report.results, len(report.keys)) == (6, 10, 5)
    assert len(report.duplicates) == 5
    assert report.duplicates[Key(0, 0, 1)] == [run.output, run.shard(Key(0, 0, 1))]
    assert not report.conflicts
    assert snapshot(tmp_path) == before


def test_what_is_expected(run):
    report = check([run.output], expected=[Key(0, 0, seed) for seed in (1, 2, 3, 4, 5)])
    assert report.missing == [Key(0, 0, 5)]
    assert report.extra == [Key(0, 0, 0)]
    assert not report.is_well
    assert check([run.output], expected=[Key(0, 0, 1)]).is_well


def test_shards_in_the_wrong_place(run):
    one, two = run.shard(Key(0, 0, 1)), run.shard(Key(0, 0, 2))
    shutil.copy(one, two)
    shutil.copy(one, one.with_name("farm7_t7_s7.h5"))
    shutil.copy(run.output, run.shard(Key(0, 0, 3)))
    write_foreign_file(run.shard(Key(0, 0, 4)), [(0, 0, 4)])
    heard = []
    report = check([run.root], on_found=heard.append)
    assert not report.is_well
    assert set(report.keys) == {Key(0, 0, 0), Key(0, 0, 1), Key(0, 0, 3), Key(0, 0, 4)}
    assert report.result_verdicts[Verdict.WRONG_STRUCTURE] == 2 + 4
    assert report.file_verdicts[Verdict.WRONG_STRUCTURE] == 2
    reasons = {found.path: found.reason for found in heard if found.verdict is not Verdict.VALID}
    assert reasons[two] == f"it is in the wrong place; expected {one}"


def test_the_folder_of_the_crash(tmp_path):
    heard = []
    report = check([write_crashed_folder(tmp_path / "layouts.h5_temp")], on_found=heard.append)
    assert not report.is_well
    assert report.file_verdicts == {Verdict.VALID: 7, Verdict.EMPTY: 1, Verdict.TRUNCATED: 1}
    assert (report.no_aep, len(report.keys), report.results) == (3, 8, 9)
    bad = [found.path.name for found in heard if found.verdict is not Verdict.VALID]
    assert bad == ["worker_101.h5", "worker_108.h5"]
    assert list(report.duplicates) == [Key(0, 0, 0)]
    assert not report.conflicts
    assert len(heard) == 9 + 9
    assert sum(found.size for found in heard if isinstance(found, FoundFile)) == report.size


def test_conflicts_and_what_is_none(tmp_path):
    write_foreign_file(tmp_path / "a.h5", [(0, 0, 0), (0, 0, 1), (0, 0, 2)])
    write_foreign_file(tmp_path / "b.h5", [(0, 0, 0)], aep=None)  # the layout alone: nothing is lost with it
    write_foreign_file(tmp_path / "c.h5", [(0, 0, 1)], aep=101.0)
    write_foreign_file(tmp_path / "d.h5", [(0, 0, 2)], diameter=None)
    with h5py.File(tmp_path / "d.h5", "r+") as file:
        file["optimized_layouts/farm0_t0_s2/layout"] = layout_of(Key(0, 0, 2)) + 1
    report = check([tmp_path])
    assert report.conflicts == {
        Key(0, 0, 1): [tmp_path / "a.h5", tmp_path / "c.h5"],
        Key(0, 0, 2): [tmp_path / "a.h5", tmp_path / "d.h5"],
    }
    assert set(report.duplicates) == {Key(0, 0, seed) for seed in range(3)}
    assert not report.is_well


def test_a_judge(run):
    def judge(result):
        return "too good" if result.key.seed == 3 else None

    heard = []
    report = check([run.output], judge=judge, on_found=heard.append)
    assert report.result_verdicts == {Verdict.VALID: 4, Verdict.IMPLAUSIBLE: 1}
    assert [found.reason for found in heard if found.verdict is Verdict.IMPLAUSIBLE] == ["too good"]
    assert (heard[-1].valid, heard[-1].bad) == (4, 1)
    assert not report.is_well


def test_what_is_not_in_the_campaign_is_not_judged(run):
    report = check([run.output], judge=lambda result: "never good enough", campaign=[Key(0, 0, 3)])
    assert report.result_verdicts == {Verdict.VALID: 4, Verdict.IMPLAUSIBLE: 1}
    assert report.extra == [Key(0, 0, seed) for seed in (0, 1, 2, 4)]
    assert report.missing == []


def test_unfit_files_are_bounded_and_counted(run, monkeypatch):
    monkeypatch.setattr("leeward.store.merging.check.MOST_UNFIT", 3)
    report = check([run.root], judge=lambda result: "too good")
    assert len(report.unfit) == 3
    assert report.result_verdicts[Verdict.IMPLAUSIBLE] == 5


def test_gather(run, tmp_path):
    (tmp_path / "notes.txt").touch()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "x.hdf5").touch()
    (tmp_path / "deep" / ".y.h5.12.tmp").touch()
    (tmp_path / "deep" / "link.h5").symlink_to("nowhere")
    (tmp_path / "odd.run").mkdir()
    (tmp_path / "odd.run" / "z.h5").touch()
    sources = gather([tmp_path, tmp_path / "layouts.h5", tmp_path / "deep" / ".." / "layouts.h5"])
    assert [str(source.path.relative_to(tmp_path)) for source in sources] == [
        "layouts.run",
        "layouts.h5",
        "deep/link.h5",
        "deep/er/x.hdf5",
        "odd.run/z.h5",
    ]
    assert len(list(sources[0].files)) == 5
    assert [source.path.name for source in gather([run.quarantine])] == ["farm0_t0_s9.h5"]
    assert [source.path.name for source in gather([tmp_path / "notes.txt"])] == ["notes.txt"]
    with pytest.raises(InputError, match="no such file or folder"):
        gather([tmp_path / "none.h5"])
    os.symlink("nowhere", tmp_path / "dangling.h5")
    assert check([tmp_path / "dangling.h5"]).file_verdicts == {Verdict.UNREADABLE: 1}
