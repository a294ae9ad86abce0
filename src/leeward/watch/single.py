"""Find one result without reading all the others."""

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.campaign import open_layouts
from leeward.errors import BadSourceError
from leeward.store import FoundResult, RunPaths, output_index, read_files
from leeward.watch.kinds import present_at
from leeward.watch.places import demand_place, kind_of, run_of


@dataclass(frozen=True)
class ResultSeen:
    """A result, of any kind, and the file that holds it."""

    result: Any
    file: Path


def find_result(path: Path, key: Any) -> ResultSeen:
    """Return one checked result of a run directory, a file of results, or a folder of them."""
    found = find_results(path, [key])
    if found:
        return found[key]
    run = run_of(path)
    if run is not None:
        what = "damaged" if key in present_at(path) else "missing"
        raise BadSourceError(f"{path}: {key} is {what}; run `leeward check {run.root} --complete` for details")
    if kind_of(path) == "evaluations":
        raise BadSourceError(f"{path}: {key} is damaged or missing; run `leeward check {path} --complete` for details")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignore warnings about other results that are damaged
        layouts = open_layouts(path)
    with layouts:
        return ResultSeen(layouts[key], path)


def find_results(path: Path, keys: Collection[Any]) -> dict[Any, ResultSeen]:
    """Return several results of a run directory or a file, without those that are damaged or missing."""
    demand_place(path)
    run = run_of(path)
    ways: list[Callable[[list[Any]], dict[Path, list[Any]]]] = []
    if run is not None:
        ways = [lambda wanted: {run.shard(key): [key] for key in wanted}, lambda wanted: _packs_with(run, wanted)]
    merged = path if run is None or path.is_file() else run.output
    ways.insert(0 if path.is_file() else len(ways), lambda wanted: {merged: wanted})
    found: dict[Any, ResultSeen] = {}
    for way in ways:
        asked = way([key for key in keys if key not in found])
        found |= _read({place: wanted for place, wanted in asked.items() if wanted and place.is_file()})
    return found


def _packs_with(run: RunPaths, keys: Collection[Any]) -> dict[Path, list[Any]]:
    """Return the packs whose index has any of the keys, or that have no index."""
    packs = {}
    for pack in run.pack_files() if keys else ():
        content = output_index(pack, is_pack=True)
        packs[pack] = [key for key in keys if content is None or b'"%s"' % str(key).encode() in content]
    return packs


def _read(asked: Mapping[Path, Sequence[Any]]) -> dict[Any, ResultSeen]:
    """Return the results of these keys by file, without those that are damaged or missing."""
    names = {place: [str(key) for key in keys] for place, keys in asked.items()}
    return {
        found.result.key: ResultSeen(found.result, found.path)
        for found in read_files(list(names), contents=True, keys=names)
        if isinstance(found, FoundResult) and found.result is not None
    }
