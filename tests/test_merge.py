"""Merging: run directories, merged files and the folder of a crashed script, with every kind of bad source."""

import dataclasses
import os

import pytest

from foreign_files import layout_of, own_result, write_crashed_folder, write_foreign_file, write_own_file
from leeward.errors import BadSourceError, InputError
from leeward.store.directory.audit import Audit, read_lines
from leeward.store.directory.shards import store_result
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.merging.contents import contents_of
from leeward.store.merging.merge import KnownCampaign, merge, merge_run
from leeward.store.merging.merge_report import write_logs
from leeward.store.merging.writer import OutputHoldsMoreError
from leeward.store.paths import RunPaths
from merge_cases import damage, digests, events, expected, found_in, recompute, ten_shards, two_rivals

ATTRIBUTES = {"campaign": "seeds: 3\n", "campaign_name": "test", "total_configs": 12, "crs": "EPSG:25831"}


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


# --- a run directory -------------------------------------------------------------------------------------------------


def test_a_run_becomes_its_output(run):
    audit = Audit(run.root / "audit.jsonl")
    merged = merge_run(run, ATTRIBUTES, emit=audit.record)
    assert (merged.count, merged.replaced, merged.bad_files, merged.moved) == (10, True, [], None)
    assert merged.keys == {Key(0, 0, seed) for seed in range(10)}
    assert digests(run.output) == expected(own_result(seed=seed) for seed in range(10))
    assert [line["event"] for line in read_lines(audit.path)] == ["merge", "merged"]
    assert read_lines(audit.path)[0]["results"] == 10


@pytest.mark.slow
def test_an_output_that_is_up_to_date_is_left_alone(run):
    merge_run(run, {**ATTRIBUTES, "created": "2026-01-01T00:00:00Z"})
    before = run.output.stat()
    again = merge_run(run, {**ATTRIBUTES, "created": "2027-01-01T00:00:00Z"})
    assert (again.count, again.replaced) == (10, False)
    assert again.keys == {Key(0, 0, seed) for seed in range(10)}
    assert run.output.stat().st_ino == before.st_ino
    assert merge_run(run, {**ATTRIBUTES, "campaign": "seeds: 4\n"}).replaced
    store_result(run, own_result(seed=10))
    assert merge_run(run, ATTRIBUTES).count == 11


def test_bad_shards_are_left_out_and_named(run):
    places = [run.shard(Key(0, 0, seed)) for seed in range(5)]
    damage(places[0])
    places[1].write_bytes(b"")
    places[2].write_bytes(places[2].read_bytes()[:1000])
    os.replace(places[3], places[3].with_name("farm0_t0_s77.h5"))
    write_own_file(places[4], [own_result(seed=4), own_result(seed=5)])
    merged = merge_run(run, ATTRIBUTES)
    assert merged.count == 5
    assert merged.keys == {Key(0, 0, seed) for seed in range(5, 10)}
    assert sorted((path.name, verdict) for path, verdict, _ in merged.bad_files) == [
        ("farm0_t0_s0.h5", Verdict.UNREADABLE),
        ("farm0_t0_s1.h5", Verdict.EMPTY),
        ("farm0_t0_s2.h5", Verdict.TRUNCATED),
        ("farm0_t0_s4.h5", Verdict.WRONG_STRUCTURE),
        ("farm0_t0_s77.h5", Verdict.WRONG_STRUCTURE),
    ]
    assert all(reason for _, _, reason in merged.bad_files)


def test_a_shard_in_the_wrong_folder_is_bad(run):
    place = run.shard(Key(0, 0, 3))
    wrong = run.results / ("00" if place.parent.name != "00" else "01") / place.name
    wrong.parent.mkdir(exist_ok=True)
    wrong.write_bytes(place.read_bytes())
    merged = merge_run(run, ATTRIBUTES)
    assert [(one.path, one.verdict) for one in merged.bad_files] == [(wrong, Verdict.WRONG_STRUCTURE)]
    assert len(merged.keys) == merged.count == 10


def test_an_output_with_more_than_the_shards_is_not_replaced(run):
    merge_run(run, ATTRIBUTES)
    before = run.output.read_bytes()
    run.shard(Key(0, 0, 3)).unlink()
    with pytest.raises(OutputHoldsMoreError) as caught:
        merge_run(run, ATTRIBUTES)
    assert caught.value.keys == ["farm0_t0_s3"]
    assert caught.value.bad_files == []
    assert run.output.read_bytes() == before


def test_a_bad_shard_whose_result_only_the_output_has_is_named(run):
    """So that the run can put it in quarantine and compute its task again."""
    merge_run(run, ATTRIBUTES)
    bad = run.shard(Key(0, 0, 3))
    bad.write_bytes(b"")
    with pytest.raises(OutputHoldsMoreError) as caught:
        merge_run(run, ATTRIBUTES)
    assert [(one.path, one.verdict) for one in caught.value.bad_files] == [(bad, Verdict.EMPTY)]


def test_a_run_without_results_makes_no_output(tmp_path):
    paths = RunPaths(tmp_path / "layouts.h5")
    paths.results.mkdir(parents=True)
    assert (merge_run(paths, ATTRIBUTES).count, paths.output.exists()) == (0, False)


def test_a_damaged_output_is_made_anew_and_kept(run):
    merge_run(run, ATTRIBUTES)
    damage(run.output)
    damaged = run.output.read_bytes()
    merged = merge_run(run, ATTRIBUTES)
    assert merged.moved.read_bytes() == damaged
    assert len(found_in(run.output)) == 10


# --- sources of all kinds --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_sources_of_all_kinds_and_the_same_again(run, tmp_path, output):
    other = write_own_file(tmp_path / "other.h5", [own_result(farm=1), own_result()], campaign="old: 1", created="2025")
    foreign = write_foreign_file(tmp_path / "worker_1.h5", [(2, 0, 0)])
    told = []
    report = merge([run.root, other, foreign], output, on_progress=lambda *news: told.append(news))
    assert (report.results, report.no_aep, report.conflicts, report.missing) == (12, 0, [], None)
    assert [(str(one.key), one.dropped) for one in report.duplicates] == [("farm0_t0_s0", 10)]
    found = found_in(output)
    assert found["farm2_t0_s0"].origin == "foreign"
    assert found["farm2_t0_s0"].details["source"] == "worker_1.h5"
    assert contents_of(output).file.attributes["campaign"] == "old: 1"
    assert told[-1] == ("writing", 12, 12)
    assert ("checking", 12, 12) in told
    before = digests(output)
    assert merge([foreign, other, run.root], output).results == 12
    assert digests(output) == before
    assert merge([output], output).results == 12
    assert digests(output) == before


@pytest.mark.slow
def test_an_existing_output_is_not_robbed(run, output):
    merge([run.root], output)
    run.shard(Key(0, 0, 3)).unlink()
    with pytest.raises(OutputHoldsMoreError, match="sources of the merge"):
        merge([run.root], output)
    assert merge([run.root, output], output).results == 10
    logs = sorted(path.name for path in output.parent.glob("merge_log_*.txt"))
    assert len(logs) == 3  # the one that was refused has a log too


def test_one_bad_source_ends_it_and_all_are_named(run, tmp_path, output):
    damage(run.shard(Key(0, 0, 0)))
    empty = tmp_path / "empty.h5"
    empty.touch()
    with pytest.raises(BadSourceError) as caught:
        merge([run.root, empty], output)
    message = str(caught.value)
    assert "2 files or results" in message
    assert "empty.h5: empty" in message
    assert "farm0_t0_s0" in message
    assert "--on-bad skip" in message
    assert [path.suffix for path in sorted(output.parent.iterdir())] == [".jsonl", ".txt"]
    assert "empty.h5" in next(output.parent.glob("*.txt")).read_text()


def test_many_bad_sources_are_summed_up(tmp_path, output):
    for number in range(30):
        (tmp_path / f"worker_{number}.h5").touch()
    with pytest.raises(BadSourceError, match="and 10 more"):
        merge([tmp_path], output)


@pytest.mark.parametrize("on_bad", ["skip", "salvage"])
def test_one_bad_group_does_not_sink_the_others(tmp_path, output, on_bad):
    some = [own_result(seed=seed) for seed in range(10)]
    source = write_own_file(tmp_path / "some.h5", some)
    damage(source)
    report = merge([source], output, on_bad=on_bad)
    assert digests(output) == expected(some[1:])
    assert [[bad.name for bad in file.bad] for file in report.bad_files] == [["farm0_t0_s0"]]
    assert not report.is_all_well


def test_nothing_valid_is_an_error(tmp_path, output):
    with pytest.raises(BadSourceError, match="no valid result"):
        merge([write_foreign_file(tmp_path / "worker_1.h5")], output)
    (tmp_path / "empty.h5").touch()
    with pytest.raises(BadSourceError, match="no valid result"):
        merge([tmp_path], output, on_bad="skip")
    assert not output.exists()


def test_wrong_options(run, output):
    with pytest.raises(InputError, match="on_bad"):
        merge([run.root], output, on_bad="ignore")
    with pytest.raises(InputError, match="prefer"):
        merge([run.root], output, prefer="worst")
    with pytest.raises(InputError, match=r"\.h5"):
        merge([run.root], output.with_suffix(".txt"))
    with pytest.raises(InputError, match="not a folder"):
        merge([run.root], output.parent / "absent" / "layouts.h5")


def test_a_dry_run_changes_nothing(run, output):
    damage(run.shard(Key(0, 0, 0)))
    report = merge([run.root], output, dry_run=True)
    assert "1 files or results" in report.problem
    assert merge([run.root], output, dry_run=True, on_bad="skip").results == 9
    assert list(output.parent.iterdir()) == []


def test_what_the_campaign_says_goes_into_the_output(run, output):
    told = {"campaign": "text", "campaign_name": "name", "crs": "EPSG:1", "grid_size": 20, "random_pct": 25.0}
    expected = [Key(0, 0, seed) for seed in range(12)]
    report = merge([run.root], output, campaign=KnownCampaign(attributes=told, expected=expected))
    assert report.missing == [Key(0, 0, 10), Key(0, 0, 11)]
    attributes = contents_of(output).file.attributes
    assert {name: attributes[name] for name in told} == told
    assert (attributes["total_configs"], attributes["successful_configs"]) == (12, 10)
    assert merge([output], output).size > 0
    kept = contents_of(output).file.attributes
    assert {**kept, "created": ""} == {**attributes, "created": ""}


def test_different_campaigns_are_noted(tmp_path, output):
    old = write_own_file(tmp_path / "a.h5", [own_result()], campaign="old", created="2025-01-01T00:00:00Z")
    new = write_own_file(tmp_path / "b.h5", [own_result(seed=1)], campaign="new", created="2026-01-01T00:00:00Z")
    report = merge([new, old], output)
    assert contents_of(output).file.attributes["campaign"] == "new"
    assert "2 different campaigns" in report.notes[0]


def test_how_a_campaign_is_run_makes_it_no_other_one(tmp_path, output):
    forms = (
        "seeds: 3\nexecution: {workers: 2,\n  retries: 1}\nname: a\n",
        "seeds: 3\nexecution:\n  workers: 4\nname: a\n",
    )
    paths = [
        write_own_file(tmp_path / f"{seed}.h5", [own_result(seed=seed)], campaign=form)
        for seed, form in enumerate(forms)
    ]
    assert merge(paths, output).notes == []


# --- the same key twice ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_bad", ["abort", "skip"])
def test_different_results_are_an_error(rivals, output, on_bad):
    paths, _, _ = rivals
    with pytest.raises(BadSourceError, match="--prefer") as caught:
        merge(paths, output, on_bad=on_bad)
    assert "farm0_t0_s0: the same layout with different AEP" in str(caught.value)
    assert not output.exists()


@pytest.mark.slow
def test_the_newest_or_the_best_is_preferred(rivals, output):
    paths, first, second = rivals
    report = merge(paths, output, prefer="newest")
    assert digests(output)["farm0_t0_s0"] == first.digest
    assert [(one.kept, len(one.alternatives)) for one in report.conflicts] == [(0, 2)]
    with pytest.raises(OutputHoldsMoreError):  # the output was not among the sources
        merge(paths[1:], output, prefer="best")
    merge([*paths, output], output, prefer="best")
    assert digests(output)["farm0_t0_s0"] == second.digest
    assert len(digests(output)) == 2


def test_without_a_date_the_time_of_the_file_counts(tmp_path, output):
    old = write_own_file(tmp_path / "old.h5", [own_result(aep=99.0)])
    new = write_own_file(tmp_path / "new.h5", [own_result(aep=90.0)])
    os.utime(old, (1000, 1000))
    merge([new, old], output, prefer="newest")
    assert found_in(output)["farm0_t0_s0"].aep_gwh == 90.0


def test_different_settings_are_said(tmp_path, output):
    other = dataclasses.replace(own_result(), fingerprint="e" * 64)
    paths = [write_own_file(tmp_path / "a.h5", [own_result()]), write_own_file(tmp_path / "b.h5", [other])]
    with pytest.raises(BadSourceError, match="different settings"):
        merge(paths, output)


@pytest.mark.slow
def test_foreign_results_are_compared_by_layout_and_aep(tmp_path, output):
    one = write_foreign_file(tmp_path / "worker_1.h5", [(0, 0, 0)])
    two = write_foreign_file(tmp_path / "worker_2.h5", [(0, 0, 0)], diameter=241.0, folder="optimized_layouts")
    three = write_foreign_file(tmp_path / "worker_3.h5", [(0, 0, 0)], aep=-1.0)
    for sources in ([one, two, three], [three, one]):
        output.unlink(missing_ok=True)
        report = merge(sources, output)
        assert (report.results, len(report.duplicates), report.no_aep) == (1, len(sources) - 1, 0)
        assert found_in(output)["farm0_t0_s0"].aep_gwh == 100.0
    four = write_foreign_file(tmp_path / "worker_4.h5", [(0, 0, 0)], aep=101.0)
    with pytest.raises(BadSourceError, match="different AEP"):
        merge([one, four], output)
    five = write_foreign_file(tmp_path / "worker_5.h5", [(0, 0, 0)], layout=layout_of((0, 0, 1)))
    with pytest.raises(BadSourceError, match="different layouts"):
        merge([one, five], output)


def test_a_source_that_changes_in_between_is_noticed(tmp_path, output):
    source = write_own_file(tmp_path / "some.h5", [own_result(seed=seed) for seed in range(3)])

    def meddle(what, done, total):
        if what == "checking":
            write_own_file(source, [own_result(seed=seed, aep=1.0) for seed in range(3)])

    with pytest.raises(BadSourceError, match="changed"):
        merge([source], output, on_progress=meddle)
    assert not output.exists()


# --- the crash -------------------------------------------------------------------------------------------------------


def test_the_crashed_folder_is_no_reason_to_give_up(crashed, output):
    with pytest.raises(BadSourceError) as caught:
        merge([crashed], output)
    assert "worker_101.h5: empty" in str(caught.value)
    assert "worker_108.h5: truncated" in str(caught.value)
    report = merge([crashed], output, on_bad="skip")
    found = found_in(output)
    assert sorted(found) == [f"farm0_t0_s{seed}" for seed in range(8)]
    assert {key for key, one in found.items() if one.status == "no-aep"} == {f"farm0_t0_s{seed}" for seed in (2, 3, 7)}
    assert (report.no_aep, len(report.bad_files), len(report.duplicates)) == (3, 2, 1)
    assert "may still hold results" in report.notes[0]


@pytest.mark.slow
def test_a_missing_aep_is_computed_and_marked(crashed, output):
    merge([crashed], output, on_bad="skip")
    report = merge([crashed], output, on_bad="skip", campaign=KnownCampaign(recompute=recompute))
    assert (report.no_aep, sorted(report.recomputed)) == (0, [Key(0, 0, seed) for seed in (2, 3, 7)])
    found = found_in(output)
    assert (found["farm0_t0_s2"].aep_gwh, found["farm0_t0_s2"].status) == (502.0, "success")
    assert found["farm0_t0_s2"].details["aep_source"] == "recomputed"
    assert found["farm0_t0_s2"].details["min_spacing_m"] == 700.0
    assert found["farm0_t0_s0"].aep_gwh == 100.0
    before = digests(output)
    merge([crashed, output], output, on_bad="skip")  # the computed ones win, and nothing is lost
    assert digests(output) == before


def test_an_aep_that_cannot_be_computed_is_counted(crashed, output):
    def refuse(key, x, y):
        raise InputError(f"{key} is no task")

    report = merge([crashed], output, on_bad="skip", campaign=KnownCampaign(recompute=refuse))
    assert report.no_aep == 3
    assert report.not_recomputed[Key(0, 0, 2)] == "farm0_t0_s2 is no task"


# --- the log ---------------------------------------------------------------------------------------------------------


def test_the_logs_say_it_all(crashed, rivals, output):
    report = merge(
        [crashed, *rivals[0]], output, on_bad="skip", prefer="best", campaign=KnownCampaign(recompute=recompute)
    )
    logged = events(report)
    files = {line["path"].rpartition("/")[2]: line for line in logged["file"]}
    assert len(files) == 11
    assert files["worker_101.h5"]["verdict"] == "empty"
    assert (files["worker_100.h5"]["valid"], files["worker_100.h5"]["taken"]) == (2, 1)
    assert len(files["worker_100.h5"]["sha256"]) == 64
    assert files["worker_100.h5"]["size"] == (crashed / "worker_100.h5").stat().st_size
    kinds = [logged["kind"][number] for number in files["b.h5"]["kinds"]]
    assert kinds == []  # the foreign one is the best
    assert any("aep_source" in kind["attributes"] for kind in logged["kind"])
    assert all({"layout", "aep"} <= set(kind["datasets"]) for kind in logged["kind"])
    assert logged["conflict"][0]["key"] == "farm0_t0_s0"
    assert len(logged["recomputed"]) == 3
    assert logged["end"][0]["results"] == report.results
    text = report.logs[1].read_text()
    assert "moved: no\n" in text
    for word in ("worker_105.h5", "sha256", "Duplicates", "Conflicts", "truncated", "AEP recomputed", "results: 8"):
        assert word in text
    assert report.logs[0].with_suffix("") == report.logs[1].with_suffix("")


def test_two_merges_in_one_second_have_two_logs(run, output):
    report = merge([run.root], output)
    logs = {*report.logs, *write_logs(report), *write_logs(report)}
    assert len(logs) == 6
    assert {path for path in output.parent.iterdir() if path.name.startswith("merge_log_")} == logs
