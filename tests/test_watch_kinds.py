"""The kind-independent part of `watch`, with a toy kind of work whose keys are not those of layouts."""

import re
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from leeward.errors import InputError
from leeward.store.directory.index import IndexLines, encode_line, write_output_index
from leeward.store.directory.lock import Lock
from leeward.store.paths import RunPaths
from leeward.watch import absent_tasks, kinds, observe, present_at, result_lines
from leeward.watch.data import Kind
from leeward.watch.read import progress_of, read_place
from web_cases import beat, fail


@dataclass(frozen=True, order=True)
class Evaluation:
    """A layout in a year, with some of its wakes."""

    layout: int
    year: int
    case: str

    def __str__(self):
        return f"layout{self.layout}_{self.year}_{self.case}"

    @classmethod
    def parse(cls, text):
        found = re.fullmatch(r"layout(\d+)_(\d{4})_(\w+)", text)
        if found is None:
            raise InputError(f"{text!r} is no key of an evaluation")
        return cls(int(found[1]), int(found[2]), found[3])


KEYS = [Evaluation(layout, year, case) for layout in (2, 10) for year in (2030, 2035) for case in ("all", "none")]
STUDY = SimpleNamespace(name="neighbours", n_tasks=len(KEYS), tasks=lambda: iter(KEYS))
STUDY.execution = SimpleNamespace(retries=2)


def shown(reading, _):
    """Everything that was expected, without a choice."""
    done = sum(key in reading.present for key in KEYS)
    return progress_of(
        reading, len(KEYS), done, len(reading.present.names) - done, reading.failures, len(reading.running_keys)
    )


EVALUATIONS = Kind(Evaluation.parse, r"layout\d+_\d{4}_[a-z]+", "loss", lambda path: STUDY, shown)


@pytest.fixture
def paths(tmp_path, monkeypatch):
    """A run directory of evaluations: two results in files of their own, one in a pack, one in the output alone."""
    monkeypatch.setitem(kinds.KINDS, "evaluations", EVALUATIONS)
    paths = RunPaths(tmp_path / "evaluations.h5")
    for folder in (*paths.folders(), paths.packs):
        folder.mkdir(parents=True)
    for key in KEYS[:2]:
        paths.shard(key).parent.mkdir(exist_ok=True)
        paths.shard(key).touch()
    (paths.shard(KEYS[0]).parent / "farm0_t0_s0.h5").touch()
    created = {"created": "2026-11-15T08:00:00Z"}
    paths.index.write_bytes(b"".join(encode_line({"key": str(key), "loss": 0.5, **created}) for key in KEYS[:2]))
    for file, key, more in ((paths.new_pack(), KEYS[2], {"wakes": "all"}), (paths.output, KEYS[3], {})):
        file.touch()
        lines = IndexLines()
        lines.add({"key": str(key), "loss": 0.25, **more})
        write_output_index(file, lines)
    fail(paths, KEYS[4])
    beat(paths, str(KEYS[5]))
    return paths


def test_progress(paths):
    lock = Lock.take(paths.lock)
    try:
        seen = observe(paths.root, kind="evaluations")
    finally:
        lock.release()
    assert (seen.campaign, seen.expected, seen.done, seen.missing, seen.beyond) == ("neighbours", 8, 4, 4, 0)
    assert (seen.failed, seen.running, seen.output_results, seen.unreadable_lines) == (1, 1, 1, 0)
    assert [(failed.key, failed.final) for failed in seen.failures] == [(str(KEYS[4]), True)]
    assert [(host.workers, host.busy) for host in seen.hosts] == [(1, 1)]
    assert seen.is_running
    assert not seen.is_complete
    assert seen.activity.startswith("running: ")
    assert seen.notes == (f"1 file(s) in {paths.results} do not have the name of a shard",)
    assert seen.as_data()["expected"] == 8
    assert "cells" not in seen.as_data()


def test_figures_are_those_of_the_kind(paths):
    reading = read_place(paths.root, EVALUATIONS, 0.0)
    assert reading.present.figures == {str(KEYS[0]): 0.5, str(KEYS[1]): 0.5, str(KEYS[2]): 0.25, str(KEYS[3]): 0.25}
    assert reading.running_keys == {KEYS[5]}
    assert all(key in reading.present for key in KEYS[:4])
    assert present_at(paths.root, "evaluations") == reading.present


def test_lists_are_in_the_order_of_the_keys(paths):
    """By number: as texts, layout10 sorts before layout2."""
    assert [line["key"] for line in result_lines(paths.root, "evaluations")] == [str(key) for key in KEYS[:4]]
    absence = absent_tasks(paths.root, kind="evaluations")
    assert (absence.campaign, absence.expected) == ("neighbours", 8)
    assert [(task.key, task.reason.partition(":")[0]) for task in absence.tasks] == [
        (KEYS[4], "failed"),
        (KEYS[5], "running on w1"),
        (KEYS[6], "no result"),
        (KEYS[7], "no result"),
    ]
