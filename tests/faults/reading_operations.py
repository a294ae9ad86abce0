"""Operations that read, with a fault in a child process in which files are read: killed there, or a read fails.

What cannot be read for once is not called valid, and nothing is removed, or lost, because of it.
"""

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interception import Fault
from operation import STORED, Act, Operation, prepared, run_paths, traced_python
from run_operations import SEEDS, is_run, leeward_run, run_elsewhere, with_campaign
from store_operations import (
    ATTRIBUTES,
    is_cleaned,
    is_merged,
    start_cleaning,
    start_merge,
    start_merge_of_sources,
    with_foreign_files,
    with_older_output,
    with_output,
)

from foreign_files import own_result
from leeward.store.format.found import FoundFile
from leeward.store.format.keys import Key
from leeward.store.isolated.reader import read_files
from leeward.store.merging.check import check
from leeward.store.merging.clean import clean
from leeward.store.merging.merge import merge_run
from leeward.store.merging.writer import OutputHoldsMoreError

READING_MODES = ("before", "always", "EIO", "lost")


def _reading(make: Callable[[Path, Fault | None], Act]) -> Callable[[Path, Fault | None], Act]:
    """The same, with the fault in a process that reads files."""

    def make_traced(folder: Path, fault: Fault | None) -> Act:
        sys.executable = str(traced_python(folder, fault, "reading"))
        return make(folder, fault)

    return make_traced


def _check(folder: Path, fault: Fault | None) -> Act:
    """What is called valid is what is there."""
    known = json.loads((folder / "known.json").read_text())

    def act(turn: str) -> None:
        seen: list[Any] = []
        check([run_paths(folder).root, run_paths(folder).output], on_found=seen.append)
        results = [found for found in seen if not isinstance(found, FoundFile)]
        wrong = [found.name for found in results if found.is_valid and known.get(found.name) != found.digest]
        assert not wrong, f"valid, and not what is there: {wrong}"
        missed = set(run_paths(folder).shards()) - {found.path for found in seen}
        assert not missed, f"nothing is said of {missed}"

    return act


def _with_output_and_list(folder: Path) -> None:
    with_output(folder)
    known = {str(Key(0, 0, seed)): own_result(seed=seed).digest for seed in STORED}
    (folder / "known.json").write_text(json.dumps(known))


def _merge_unless_more(folder: Path, fault: Fault | None) -> Act:
    """A shard that cannot be read is left out, unless the output has it: then the output stays as it is."""
    merge_run = start_merge(folder, fault)

    def act(turn: str) -> None:
        try:
            merge_run(turn)
        except OutputHoldsMoreError:
            if fault is None:
                raise

    return act


def _is_merged_in_the_end(folder: Path) -> None:
    """When it is done once more, without a fault."""
    merge_run(run_paths(folder), ATTRIBUTES)
    is_merged(folder)
    assert _results_in(run_paths(folder).output) == {str(Key(0, 0, seed)) for seed in STORED}


def _with_finished_run(folder: Path) -> None:
    with_campaign(folder)
    run_elsewhere(folder)


def _with_unfinished_run(folder: Path) -> None:
    """All but one are there, and no output."""
    _with_finished_run(folder)
    run_paths(folder).output.unlink()
    run_paths(folder).shard(Key(0, 0, SEEDS[-1])).unlink()


def _resume(folder: Path, fault: Fault | None) -> Act:
    return lambda turn: leeward_run(folder)


def _cleaned_in_the_end(folder: Path) -> None:
    clean(run_paths(folder), merged=True)
    is_cleaned(folder)
    assert _results_in(run_paths(folder).output) == {str(Key(0, 0, seed)) for seed in STORED}


def _results_in(path: Path) -> set[str]:
    return {found.name for found in read_files([path]) if found.is_valid and not isinstance(found, FoundFile)}


_READER: dict[str, Any] = {
    "modes": READING_MODES,
    "traced": "reading",
    "raises": "LeewardError",  # of a child that never lives, or of an output that cannot be verified
    "sample": 1,
}

READING = {
    "check, reader": Operation(_with_output_and_list, _reading(_check), lambda folder: None, **_READER),
    "merge, reader": Operation(prepared, _reading(start_merge), _is_merged_in_the_end, **_READER),
    "merge, over an output, reader": Operation(
        with_older_output, _reading(_merge_unless_more), _is_merged_in_the_end, **_READER
    ),
    "resume, reader": Operation(_with_unfinished_run, _reading(_resume), is_run, every=3, **_READER),
    "resume with an output, reader": Operation(_with_finished_run, _reading(_resume), is_run, every=3, **_READER),
    "clean --merged, reader": Operation(
        with_output, _reading(functools.partial(start_cleaning, True)), _cleaned_in_the_end, **_READER
    ),
    "merge sources and remove them, reader": Operation(
        with_foreign_files, _reading(start_merge_of_sources), lambda folder: None, every=25, **_READER
    ),
}
