"""Sources that are removed after a merge: only when all that they hold is in the output, and under the lock."""

import h5py
import pytest

from foreign_files import own_result, write_crashed_folder, write_foreign_file, write_own_file
from leeward.errors import HeldError, StorageError
from leeward.store.directory.audit import read_lines
from leeward.store.directory.lock import Lock
from leeward.store.format.keys import Key
from leeward.store.merging import removal
from leeward.store.merging.merge import KnownCampaign, merge
from merge_cases import damage, events, found_in, recompute, ten_shards, two_rivals


@pytest.fixture
def output(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "layouts.h5"


@pytest.fixture
def run(tmp_path):
    return ten_shards(tmp_path)


@pytest.fixture
def crashed(tmp_path):
    return write_crashed_folder(tmp_path / "layouts.h5_temp")


@pytest.fixture
def rivals(tmp_path):
    return two_rivals(tmp_path)


def test_sources_go_when_all_is_in_the_output(run, tmp_path, output):
    folder = tmp_path / "sources"
    (folder / "deep").mkdir(parents=True)
    write_own_file(folder / "deep" / "a.h5", [own_result(farm=1)])
    write_foreign_file(folder / "worker_1.h5", [(2, 0, 0)], aep=None)
    write_foreign_file(folder / "worker_2.h5")
    run.campaign.touch()
    report = merge([run.root, folder], output, remove_sources=True, campaign=KnownCampaign(recompute=recompute))
    assert [removal for removal in report.removals if removal.reason] == []
    assert not folder.exists()
    assert not run.results.exists()
    assert run.campaign.exists()
    logged = events(report)
    assert len(logged["removing"]) == len(logged["removed"]) == 13
    assert "removed  " in report.logs[1].read_text()


def test_what_is_not_proved_stays(crashed, tmp_path, output):
    strange = write_foreign_file(crashed / "strange.h5", [(3, 0, 0)])
    with h5py.File(strange, "a") as file:
        file["notes"] = 1
    noted = write_foreign_file(crashed / "noted.h5", [(4, 0, 0)])
    with h5py.File(noted, "a") as file:
        file["farm4_t0_s0/wind"] = [1.0, 2.0]
    report = merge([crashed], output, on_bad="skip", remove_sources=True)
    stays = {removal.path.name: removal.reason for removal in report.removals if removal.reason}
    assert sorted(stays) == ["noted.h5", "strange.h5", "worker_101.h5", "worker_108.h5"]
    assert sorted(path.name for path in crashed.iterdir()) == sorted(stays)
    assert len(events(report)["kept"]) == 4


MORE = {
    "an attribute of the file": lambda file: file.attrs.__setitem__("written_by", "somebody"),
    "an attribute of a layout": lambda file: file["farm0_t0_s0/layout"].attrs.__setitem__("unit", "m"),
    "an attribute of init": lambda file: file["init"].attrs.__setitem__("note", "n"),
    "an attribute of a folder": lambda file: file.create_group("optimized_layouts").attrs.__setitem__("note", "n"),
    "an init of many values": lambda file: (file.__delitem__("init"), file.__setitem__("init", [1, 2, 3])),
    "an init that is no integer": lambda file: (file.__delitem__("init"), file.__setitem__("init", 1.5)),
}


QUICK = "an attribute of the file"  # for `make test`


@pytest.mark.parametrize("what", [pytest.param(one, marks=() if one == QUICK else pytest.mark.slow) for one in MORE])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_foreign_file_that_holds_more_stays(tmp_path, output, what, dry_run):
    plain = write_foreign_file(tmp_path / "worker_1.h5", [(0, 0, 1)])
    more = write_foreign_file(tmp_path / "worker_2.h5", [(0, 0, 0)])
    with h5py.File(more, "a") as file:
        MORE[what](file)
    report = merge([plain, more], output, remove_sources=True, dry_run=dry_run)
    assert report.results == 2
    assert {one.path: bool(one.reason) for one in report.removals} == {plain: False, more: True}
    assert [plain.exists(), more.exists()] == [dry_run, True]


def test_an_attribute_beside_a_sealed_result_keeps_its_file(tmp_path, output):
    source = write_own_file(tmp_path / "a.h5", [own_result()])
    with h5py.File(source, "a") as file:
        file["farm0_t0_s0/layout"].attrs["unit"] = "m"
    report = merge([source], output, remove_sources=True)
    assert "the attribute unit" in report.removals[0].reason
    assert source.exists()


@pytest.mark.parametrize("dry_run", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_foreign_duplicate_that_says_something_else_stays(tmp_path, output, dry_run):
    """Its layout and its aep are in the output; what its attributes say is not."""
    first = write_foreign_file(tmp_path / "worker_1.h5", [(0, 0, 0)], operator="a")
    same = write_foreign_file(tmp_path / "worker_2.h5", [(0, 0, 0)], operator="a")
    other = write_foreign_file(tmp_path / "worker_3.h5", [(0, 0, 0)], operator="b")
    wider = write_foreign_file(tmp_path / "worker_4.h5", [(0, 0, 0)], operator="a", diameter=300.0)
    cost = write_foreign_file(tmp_path / "worker_5.h5", [(0, 0, 0)], operator="a", aep=-5.0)
    none = write_foreign_file(tmp_path / "worker_6.h5", [(0, 0, 0)], operator="a", aep=None)
    paths = [first, same, other, wider, cost, none]
    report = merge(paths, output, remove_sources=True, dry_run=dry_run)
    assert report.results == 1
    stays = {one.path: one.reason for one in report.removals if one.reason}
    assert sorted(stays) == [other, wider, cost]
    assert "the attributes differ" in stays[other]
    assert all(path.exists() for path in ([other, wider, cost] if not dry_run else paths))


@pytest.mark.slow
def test_what_would_be_removed_is_what_is_removed(crashed, rivals, run, output):
    damage(run.shard(Key(0, 0, 0)))
    options = {"on_bad": "skip", "prefer": "best", "remove_sources": True}
    sources = [crashed, *rivals[0], run.root]
    would = merge(sources, output, dry_run=True, **options).removals
    done = merge(sources, output, **options).removals
    assert {one.path: bool(one.reason) for one in would} == {one.path: bool(one.reason) for one in done}
    assert len(would) == 21


@pytest.mark.slow
def test_the_run_directory_of_sources_is_held(run, output):
    lock = Lock.take(run.lock)
    try:
        for sources in ([run.root], [run.root.parent], [run.shard(Key(0, 0, 0))], [run.results]):
            with pytest.raises(HeldError, match="held by process"):
                merge(sources, output, remove_sources=True)
        assert len(list(run.shards())) == 10
        assert merge([run.root], output, remove_sources=True, dry_run=True).results == 10
        assert merge([run.root], output).results == 10
    finally:
        lock.release()
    held = []
    merge([run.root], output, remove_sources=True, on_progress=lambda *news: held.append(run.lock.exists()))
    assert all(held)
    assert not run.lock.exists()
    logged = read_lines(run.audit)
    assert [(line["event"], len(line["paths"])) for line in logged] == [("removing", 10), ("removed", 10)]
    assert logged[0]["output"] == str(output)


def test_the_loser_of_a_conflict_stays(rivals, output):
    report = merge(rivals[0], output, prefer="best", remove_sources=True)
    assert {one.path.name: one.reason for one in report.removals} == {
        "a.h5": "not in the output: farm0_t0_s0",
        "b.h5": "",
    }
    assert rivals[0][0].exists()


def test_the_output_itself_stays(run, output):
    merge([run.root], output)
    link = output.with_name("link.h5")
    link.hardlink_to(output)
    report = merge([link, output, run.root], output, remove_sources=True)
    assert "it is the output" in [one.reason for one in report.removals]
    assert len(found_in(output)) == 10


def test_a_corrupt_output_costs_no_source(run, output, monkeypatch):
    true_remove = removal.proved

    def corrupted(sources, place):
        damage(place)
        return true_remove(sources, place)

    monkeypatch.setattr(removal, "proved", corrupted)
    report = merge([run.root], output, remove_sources=True)
    assert {one.reason[:32] for one in report.removals} == {"the output could not be verified"}
    assert len(list(run.shards())) == 10


def test_a_log_that_cannot_be_written_ends_the_removal(run, output, monkeypatch):
    def fail(path, line, *, durable):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("leeward.store.merging.merge_report.append_line", fail)
    with pytest.raises(StorageError, match="No space"):
        merge([run.root], output, remove_sources=True)
    assert len(list(run.shards())) == 10
