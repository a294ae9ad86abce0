"""Packs: results in larger files while a run goes on, and never one lost on the way."""

import json
import os
import shutil
import signal
from types import SimpleNamespace
from unittest import mock

import pytest

import run_cases
from foreign_files import left_behind, own_result, write_foreign_file, write_own_file
from leeward.campaign import open_layouts
from leeward.errors import StorageError
from leeward.runs import result_files
from leeward.runs.result_files import ResultFiles
from leeward.store.directory.audit import Audit, read_lines
from leeward.store.directory.index import output_index, output_index_path
from leeward.store.directory.results import BadPack, Doubled, RunFiles, read_results
from leeward.store.directory.shards import BadShard, ShardPaths, store_result
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.merging import packs
from leeward.store.merging.check import check
from leeward.store.merging.clean import clean
from leeward.store.merging.merge import merge, merge_run
from leeward.store.merging.packs import finish_packing, pack, unpack
from leeward.store.paths import RunPaths
from leeward.watch import find_result, present_at, result_lines, snapshot
from merge_cases import digests, expected
from run_cases import INLINE, calls, kill_group, leeward_here, make_campaign, start, until

ALL = range(8)


@pytest.fixture
def run(tmp_path):
    """A run directory with eight shards."""
    return eight_shards(tmp_path)


def eight_shards(folder):
    paths = RunPaths(folder / "layouts.h5")
    for place in (paths.root, *paths.folders()):
        place.mkdir()
    for seed in ALL:
        store_result(paths, own_result(seed=seed))
    return paths


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A run directory with a pack of five results, and three shards; tests work on copies of it."""
    paths = eight_shards(tmp_path_factory.mktemp("packed"))
    packed(paths, range(5))
    return paths.root


@pytest.fixture
def first(run, template):
    """The pack of the run's first five results, whose shards are gone."""
    shutil.rmtree(run.root)
    shutil.copytree(template, run.root)  # with the times, by which an index knows its pack
    (path,) = run.pack_files()
    return path


def keys(seeds):
    return [Key(0, 0, seed) for seed in seeds]


def packed(run, seeds, **options):
    return pack(run, keys(seeds), run.new_pack(), {"campaign_name": "packs"}, **options)


def loose(run):
    return sorted(key.seed for key in ShardPaths(run).keys)


def answers(run):
    found = list(read_results(RunFiles(run)))
    results = sorted(one.key.seed for one in found if not isinstance(one, BadShard | BadPack | Doubled))
    return results, [one for one in found if isinstance(one, BadShard | BadPack | Doubled)]


def everything(seeds=ALL):
    return expected([own_result(seed=seed) for seed in seeds])


def flip(path, seed):
    """A bit in one layout."""
    content = bytearray(path.read_bytes())
    content[content.index(own_result(seed=seed).layout.tobytes()[:32]) + 5] ^= 16
    path.write_bytes(content)


def events(run):
    return [line["event"] for line in read_lines(run.audit)]


# --- one pack --------------------------------------------------------------------------------------------------------


def test_shards_become_a_pack(run):
    done = packed(run, range(5), emit=Audit(run.audit).record)
    assert (done.count, done.bad, done.kept) == (5, [], [])
    assert run.pack_files() == [done.path]
    assert digests(done.path) == everything(range(5))
    assert loose(run) == [5, 6, 7]
    assert answers(run) == (list(ALL), [])
    assert events(run) == ["pack", "removing", "removed", "packed"]
    assert output_index(done.path, is_pack=True).count(b"\n") == 5


@pytest.mark.slow
def test_packs_are_in_the_order_of_their_making(run):
    names = [packed(run, [seed]).path for seed in range(2)]
    assert run.pack_files() == names
    assert [path.name[:11] for path in names] == ["pack-000001", "pack-000002"]


def test_a_bad_shard_stays_where_it_is(run):
    bad = run.shard(Key(0, 0, 2))
    flip(bad, 2)
    run.shard(Key(0, 0, 3)).unlink()
    done = packed(run, range(5))
    assert {one.path.name: one.verdict for one in done.bad} == {
        "farm0_t0_s2.h5": Verdict.UNREADABLE,
        "farm0_t0_s3.h5": Verdict.UNREADABLE,
    }
    assert done.count == 3
    assert bad.exists()
    assert loose(run) == [2, 5, 6, 7]


def test_only_bad_shards_make_no_pack(run):
    flip(run.shard(Key(0, 0, 2)), 2)
    done = packed(run, [2])
    assert (done.count, len(done.bad), run.pack_files()) == (0, 1, [])


def test_no_shard_goes_before_the_pack_was_read_again(run, monkeypatch):
    """The pack is damaged between its rename and the proof."""
    wrote = packs.write_merged

    def damaging(output, *arguments, **options):
        written = wrote(output, *arguments, **options)
        flip(output, 3)
        return written

    monkeypatch.setattr(packs, "write_merged", damaging)
    done = packed(run, range(5))
    assert len(done.kept) == 5
    assert loose(run) == list(ALL)
    results, others = answers(run)
    (bad,) = [one for one in others if isinstance(one, BadPack)]
    assert results == list(ALL)
    assert bad.path == done.path


def test_a_shard_that_changes_meanwhile_stays(run, monkeypatch):
    wrote = packs.write_merged

    def disturbing(*arguments, **options):
        written = wrote(*arguments, **options)
        os.utime(run.shard(Key(0, 0, 1)), ns=(1, 1))
        return written

    monkeypatch.setattr(packs, "write_merged", disturbing)
    assert [removal.reason for removal in packed(run, range(3)).kept] == ["it changed after it was read"]
    assert 1 in loose(run)


def test_cut_off_it_goes_on_with_the_same_pack(run, monkeypatch):
    place = run.new_pack()
    real = os.unlink

    def failing(path, *arguments, **options):
        if str(path).endswith("s2.h5"):
            raise OSError(5, "Input/output error")
        real(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", failing)
        with pytest.raises(StorageError, match="Input/output"):
            pack(run, keys(range(5)), place, {})
    assert 2 in loose(run)
    done = pack(run, keys(range(5)), place, {})
    assert (done.path, done.count, done.kept) == (place, 5, [])
    assert run.pack_files() == [place]
    assert loose(run) == [5, 6, 7]


def test_what_a_killed_one_left_is_removed(run):
    run.packs.mkdir()
    left = run.packs / left_behind("pack-000001-00112233.h5")
    left.write_bytes(b"half")
    packed(run, range(3))
    assert not left.exists()
    assert len(run.pack_files()) == 1


# --- the same result twice, and others -------------------------------------------------------------------------------


@pytest.fixture
def twice(run, first):
    """The pack of five results that are in shards too, as a kill leaves them between the rename and the removal."""
    for seed in range(5):
        store_result(run, own_result(seed=seed))
    return first


@pytest.mark.slow
def test_a_result_in_a_pack_and_a_shard_counts_once(run, twice):
    results, others = answers(run)
    assert results == list(ALL)
    assert {(one.key.seed, one.pack) for one in others} == {(seed, twice) for seed in range(5)}
    assert len(others) == 5
    assert finish_packing(run, others) == []
    assert loose(run) == [5, 6, 7]
    assert answers(run) == (list(ALL), [])


def test_an_index_that_was_not_written_is_written_later(run, first):
    before = output_index(first, is_pack=True)
    assert before.count(b"\n") == 5
    output_index_path(first).unlink()
    assert finish_packing(run, []) == []
    assert output_index(first, is_pack=True) == before


@pytest.mark.slow
def test_the_same_in_two_packs(run, twice):
    second = run.new_pack()
    shutil.copy(twice, second)
    results, others = answers(run)
    assert results == list(ALL)
    assert {type(one) for one in others} == {Doubled}


@pytest.mark.slow
def test_another_result_of_a_key_is_named_and_put_aside(run, first):
    """What was stored first counts, and nothing is deleted."""
    store_result(run, own_result(seed=1, aep=7.0))
    results, (rival,) = answers(run)
    assert results == list(ALL)
    assert isinstance(rival, BadShard)
    assert rival.path == run.shard(Key(0, 0, 1))
    assert str(first) in rival.reason
    report = clean(run)
    assert [path.exists() for path in report.quarantined] == [True]
    assert answers(run) == (list(ALL), [])


@pytest.mark.slow
def test_another_result_in_another_pack(run, first):
    second = run.new_pack()
    write_own_file(second, [own_result(seed=1, aep=7.0), own_result(seed=20)])
    results, (rival,) = answers(run)
    assert results == [*ALL, 20]
    assert rival == BadPack(second, Verdict.WRONG_STRUCTURE, rival.reason, frozenset(keys([1])))
    report = clean(run)
    assert report.unpacked == 1
    assert loose(run) == [5, 6, 7, 20]
    assert answers(run) == ([*ALL, 20], [])


# --- damaged packs ---------------------------------------------------------------------------------------------------


def test_what_a_damaged_pack_holds_becomes_shards(run, first):
    flip(first, 3)
    results, (bad,) = answers(run)
    assert results == [0, 1, 2, 4, 5, 6, 7]
    assert "farm0_t0_s3" in bad.reason
    rescued = unpack(run, bad, Audit(run.audit).record)
    assert sorted(found.key.seed for found in rescued) == [0, 1, 2, 4]
    assert first.exists(), "it goes to quarantine afterwards"
    assert not output_index_path(first).exists()
    assert loose(run) == [0, 1, 2, 4, 5, 6, 7]
    assert read_lines(run.audit)[-1]["lost"] == ["farm0_t0_s3"]


@pytest.mark.parametrize(
    "damage", ["start", pytest.param("end", marks=pytest.mark.slow), pytest.param("half", marks=pytest.mark.slow)]
)
def test_a_pack_that_cannot_be_opened_gives_back_what_its_bytes_hold(run, damage):
    path = packed(run, ALL).path
    content = path.read_bytes()
    if damage == "start":
        path.write_bytes(bytes(100) + content[100:])
    else:
        path.write_bytes(content[: -50 if damage == "end" else len(content) // 2])
    results, (bad,) = answers(run)
    assert results == []
    rescued = {found.key.seed for found in unpack(run, bad)}
    assert rescued == set(loose(run))
    assert rescued == set(ALL) if damage != "half" else rescued
    assert {str(found.key): found.digest for found in map(only, run.shards())}.items() <= everything().items()


def only(path):
    (found,) = [one for one in check_found([path]) if hasattr(one, "digest")]
    return found


def check_found(paths):
    found = []
    check(paths, on_found=found.append)
    assert all(one.is_valid for one in found)
    return found


@pytest.mark.parametrize(
    "what",
    [
        "junk",
        pytest.param("empty", marks=pytest.mark.slow),
        pytest.param("foreign", marks=pytest.mark.slow),
        pytest.param("folder", marks=pytest.mark.slow),
    ],
)
def test_what_is_no_pack_goes_to_quarantine(run, first, what):
    odd = run.new_pack()
    if what == "folder":
        odd.mkdir()
    elif what == "foreign":
        write_foreign_file(odd, [(0, 0, 9)])
    else:
        odd.write_bytes(b"" if what == "empty" else b"junk")
    report = clean(run)
    assert [bad.path for bad in report.bad] == [odd]
    assert report.quarantined[0].exists()
    assert answers(run) == (list(ALL), [])


# --- whoever reads a run directory -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_merge_takes_packs_and_shards(run, twice):
    packed(run, [5])
    merged = merge_run(run, {})
    assert (merged.count, merged.replaced, merged.bad_files) == (8, True, [])
    assert merged.keys == set(keys(ALL))
    assert digests(run.output) == everything()
    again = merge_run(run, {})
    assert again.count == 8
    assert again.keys == set(keys(ALL))
    finish_packing(run, answers(run)[1])
    assert not merge_run(run, {}).replaced
    packed(run, [6, 7])
    assert not merge_run(run, {}).replaced, "packing changes nothing"


def test_the_merge_names_a_damaged_pack_and_takes_what_is_good(run, first):
    flip(first, 3)
    merged = merge_run(run, {})
    assert [bad.path for bad in merged.bad_files] == [first]
    assert merged.keys == set(keys([0, 1, 2, 4, 5, 6, 7]))


def problems_in(run):
    """Return what a check finds invalid."""
    found = []
    check([run.root], on_found=found.append)
    return [one for one in found if one.verdict is not Verdict.VALID]


def test_check(run, twice):
    packed(run, [5])
    report = check([run.root])
    assert report.is_well
    assert (report.files, len(report.keys), len(report.duplicates)) == (9, 8, 5)
    flip(run.pack_files()[0], 3)
    assert not check([run.root]).is_well
    assert [found.name for found in problems_in(run)] == ["farm0_t0_s3"]


def test_check_judges_what_is_in_packs(run, first):
    judged = []
    check([run.root], judge=lambda result: judged.append(result.key.seed))
    assert sorted(judged) == list(ALL)


def test_shards_that_are_packed_while_they_are_read(run, tmp_path, monkeypatch):
    """Whoever has a list of shards finds them gone; they are in a pack by now."""
    old = sorted(run.shards())
    monkeypatch.setattr(RunPaths, "shards", lambda self: iter(old))
    packed(run, ALL)
    report = check([run.root])
    assert report.is_well, problems_in(run)
    assert set(report.keys) == set(keys(ALL))
    with open_layouts(run.root) as layouts:
        assert [key.seed for key in layouts] == list(ALL)
    listed = [[], run.pack_files()]  # the pack has come after the list was made
    monkeypatch.setattr(RunPaths, "pack_files", lambda self: listed.pop(0))
    merged = merge([run.root], tmp_path / "other.h5")
    assert (merged.results, merged.bad_files) == (8, [])


def test_a_shard_that_is_gone_without_packs_is_missed(run, monkeypatch):
    old = sorted(run.shards())
    monkeypatch.setattr(RunPaths, "shards", lambda self: iter(old))
    old[3].unlink()
    assert not check([run.root]).is_well


@pytest.mark.slow
def test_merging_from_a_run_directory(run, twice, tmp_path):
    output = tmp_path / "other.h5"
    report = merge([run.root], output)
    assert (report.results, len(report.duplicates), report.bad_files) == (8, 5, [])
    assert digests(output) == everything()
    removed = merge([run.root, output], output, remove_sources=True)
    assert not run.packs.exists(), list(run.packs.iterdir())
    assert removed.results == 8


@pytest.mark.slow
def test_salvage_of_a_run_directory(run, first, tmp_path):
    content = first.read_bytes()
    first.write_bytes(bytes(100) + content[100:])
    merge([run.root], tmp_path / "other.h5", on_bad="salvage")
    assert digests(tmp_path / "other.h5") == everything()


def test_open_layouts(run, twice):
    with open_layouts(run.root) as layouts:
        assert [key.seed for key in layouts] == list(ALL)
        assert layouts[0, 0, 3].digest == own_result(seed=3).digest


@pytest.mark.slow
def test_clean_merged_removes_packs_that_the_output_holds(run):
    packed(run, range(3))
    merge_run(run, {})
    later = own_result(seed=8)
    store_result(run, later)
    packed(run, [3, 8])
    report = clean(run, merged=True, emit=Audit(run.audit).record)
    assert [one.reason for one in report.kept] == ["not in the output: farm0_t0_s8"]
    assert [path.name[:11] for path in run.packs.iterdir()] == ["pack-000002", "pack-000002"]
    assert loose(run) == []
    merge([run.root, run.output], run.output)
    clean(run, merged=True)
    assert not run.packs.exists()
    assert digests(run.output) == everything(range(9))


def test_status_counts_packed_results_without_opening_packs(run, twice, monkeypatch):
    packed(run, [5])
    for path in run.pack_files():
        os.utime(path)  # as a copy of the run directory is
    monkeypatch.setattr("leeward.store.isolated.reader.read_files", None)
    seen = snapshot(run.root)
    assert seen.done == 8
    present = present_at(run.root)
    assert len(present.names & present.figures.keys()) == 6, "shards that no index tells of have none"
    assert [line["key"] for line in result_lines(run.root)] == [str(key) for key in keys(ALL)]


def test_status_reads_a_pack_without_an_index(run, first):
    output_index_path(first).unlink()
    assert snapshot(run.root).done == 8
    assert find_result(run.root, Key(0, 0, 3)).file == first


def test_one_result_is_found_in_its_pack(run, first):
    seen = find_result(run.root, Key(0, 0, 3))
    assert (seen.file, seen.result.digest) == (first, own_result(seed=3).digest)


# --- runs ------------------------------------------------------------------------------------------------------------


def test_packing_when_there_are_too_many(run, monkeypatch):
    monkeypatch.setattr(result_files, "PACK_SIZE", 3)
    told = []
    context = SimpleNamespace(paths=run, audit=Audit(run.audit), attributes=dict, work=mock.Mock(), disk=None)
    context.work.execution.loose_results = 4
    context.emit = lambda kind, **facts: told.append((kind, facts))
    packing = ResultFiles(context)
    packing.add(keys(range(4)))
    assert not packing.is_due
    packing.add(keys(range(3, 8)))  # one of them twice
    while packing.is_due:
        packing.pack()
    assert [facts["results"] for _, facts in told] == [3, 2]
    assert answers(run) == (list(ALL), [])
    assert loose(run) == [5, 6, 7]


def small_run(folder, seeds=14, most=3, engine=INLINE, **options):
    return make_campaign(folder, seeds=seeds, execution={**engine, "loose_results": most}, **options)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """Return the digests of the same campaign, never packed and never killed."""
    folder = tmp_path_factory.mktemp("calm")
    small_run(folder, most=1000)
    assert leeward_here("run", "campaign.yaml", cwd=folder).returncode == 0
    assert not (folder / "layouts.run" / "packs").exists()
    return run_cases.digests(folder / "layouts.h5")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished campaign with packs; tests work on copies of it."""
    folder = tmp_path_factory.mktemp("finished")
    small_run(folder)
    done = leeward_here("run", "campaign.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def copy(folder, place):
    shutil.copytree(folder, place, dirs_exist_ok=True)
    return RunPaths(place / "layouts.h5")


def test_a_run_packs_on_its_way(tmp_path, finished, calm):
    paths = copy(finished, tmp_path)
    assert run_cases.digests(paths.output) == calm
    assert len(paths.pack_files()) >= 3
    assert len(list(paths.shards())) <= 4
    assert len(calls(tmp_path)) == 14
    again = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert len(calls(tmp_path)) == 14
    assert json.loads(leeward_here("status", "layouts.run", "--json", cwd=tmp_path).stdout)["done"] == 14
    assert leeward_here("missing", "layouts.run", cwd=tmp_path).returncode == 0
    assert "packs" in leeward_here("check", "layouts.run", "--deep", "--complete", cwd=tmp_path).stdout


@pytest.mark.slow
def test_killed_again_and_again_while_it_packs(tmp_path, calm):
    """The coordinator is killed at each step of its packing; nothing that was stored is computed again.

    Each time three more tasks may end. More than one result in a file of its own is too many, so it packs each time.
    """
    workers = {"workers": 2, "timeout_s": run_cases.PATIENCE_S}
    small_run(tmp_path, most=1, engine=workers, orders={seed: f"until=go-{seed // 3}" for seed in range(14)})
    paths = RunPaths(tmp_path / "layouts.h5")
    for turn, step in enumerate(("pack", "removing", "removed", "packed")):
        before = len(events(paths))
        (tmp_path / f"go-{turn}").touch()
        process = start("run", "campaign.yaml", cwd=tmp_path)
        try:
            until(lambda step=step, before=before: step in events(paths)[before:], f"the step {step!r} of packing")
        finally:
            kill_group(process)
        assert problems_in(paths) == []
    (tmp_path / "go-4").touch()
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert run_cases.digests(paths.output) == calm
    assert not list(paths.quarantine.iterdir())
    counts = [calls(tmp_path).count(seed) for seed in range(14)]
    assert sum(counts) <= 14 + 4 * 2, "only what was in hand was computed again"
    assert sorted(key.seed for key in (set(check([paths.root]).keys))) == list(range(14))


@pytest.mark.slow
def test_a_damaged_pack_costs_only_what_is_lost(tmp_path, finished, calm):
    paths = copy(finished, tmp_path)
    paths.output.unlink()
    damaged = paths.pack_files()[0]
    with open_layouts(damaged) as layouts:
        hit = next(iter(layouts))
        place = layouts[hit].layout.tobytes()[:32]
    content = bytearray(damaged.read_bytes())
    content[content.index(place) + 5] ^= 16
    damaged.write_bytes(content)
    before = calls(tmp_path)
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert calls(tmp_path)[len(before) :] == [hit.seed]
    assert run_cases.digests(paths.output) == calm
    assert [path.name.startswith(damaged.name) for path in paths.quarantine.iterdir()] == [True, True]


@pytest.mark.slow
def test_after_clean_merged_results_come_back_as_packs(tmp_path, finished, calm):
    paths = copy(finished, tmp_path)
    assert leeward_here("clean", "layouts.run", "--merged", cwd=tmp_path).returncode == 0
    assert not list(paths.files())
    assert leeward_here("run", "campaign.yaml", cwd=tmp_path).returncode == 0
    assert len(calls(tmp_path)) == 14
    assert len(list(paths.shards())) <= 4
    assert run_cases.digests(paths.output) == calm


@pytest.mark.slow
def test_a_run_can_be_stopped_while_there_is_much_to_pack(tmp_path):
    small_run(tmp_path, engine={"workers": 1, "timeout_s": run_cases.PATIENCE_S}, orders={8: "until=told"})
    process = start("run", "campaign.yaml", cwd=tmp_path)
    paths = RunPaths(tmp_path / "layouts.h5")
    try:
        until(lambda: paths.packs.exists() and 8 in calls(tmp_path), "a pack, and the task that waits")
        os.kill(process.pid, signal.SIGTERM)
        until(lambda: "a second Ctrl-C or SIGTERM" in (tmp_path / "output.txt").read_text(), "the request is heard")
        (tmp_path / "told").touch()
        assert process.wait(run_cases.PATIENCE_S) == 143
    finally:
        kill_group(process)
    assert problems_in(paths) == []
