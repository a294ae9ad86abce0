"""One result, found without reading all the others."""

import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from leeward.errors import BadSourceError, LeewardError
from leeward.store.found import FoundResult
from leeward.store.index import output_index
from leeward.store.keys import Key
from leeward.store.layouts import open_layouts
from leeward.store.paths import RunPaths
from leeward.store.reader import read_files
from leeward.store.schema import Result
from leeward.watch.campaigns import demand_place, run_of
from leeward.watch.read import present_at


@dataclass(frozen=True)
class ResultSeen:
    """file: where it was found."""

    result: Result
    file: Path


def find_result(path: Path, key: Key) -> ResultSeen:
    """From a run directory, a file of results, or a folder of them; checked on the way."""
    demand_place(path)
    run = run_of(path)
    if path.is_file():
        places = [path] if run is None else [path, run.shard(key), *_packs_with(run, key)]
    else:
        places = [] if run is None else [run.shard(key), *_packs_with(run, key), run.output]
    for place in places:
        seen = _in_file(place, key)
        if seen is not None:
            return seen
    if run is not None:
        what = "damaged" if key in present_at(path) else "not there"
        raise BadSourceError(f"{path}: {key} is {what}; `leeward check {run.root} --complete` says more")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of others that are damaged
        layouts = open_layouts(path)  # the key may lie in any of several places
    with layouts:
        return ResultSeen(layouts[key], path)


def find_results(path: Path, keys: Collection[Key]) -> tuple[dict[Key, Result], list[str]]:
    """Several at once, which is quicker, in the order of the keys; and what is wrong with those that are not there."""
    demand_place(path)
    run = run_of(path)
    names: dict[Path, list[str]] = {}
    for key in keys:
        shard = None if run is None else run.shard(key)
        if shard is None or not shard.is_file():
            shard = path if run is None else run.output
        names.setdefault(shard, []).append(str(key))
    found: dict[Key, Result] = {}
    files = [file for file in names if file.is_file()]
    for each in read_files(files, contents=True, keys={file: names[file] for file in files}):
        if isinstance(each, FoundResult) and each.result is not None:
            found[each.result.key] = each.result
    problems = []
    for key in keys:
        if key not in found:
            try:
                found[key] = find_result(path, key).result
            except LeewardError as error:
                problems.append(str(error))
    return {key: found[key] for key in keys if key in found}, problems


def _packs_with(run: RunPaths, key: Key) -> Iterator[Path]:
    """Those that hold the key as the indexes beside them say, or that have none."""
    start = b'"%s"' % str(key).encode()
    for pack in run.pack_files():
        content = output_index(pack, is_pack=True)
        if content is None or start in content:
            yield pack


def _in_file(place: Path, key: Key) -> ResultSeen | None:
    """None where it is not, or is damaged."""
    if place.is_file():
        for found in read_files([place], contents=True, keys={place: [str(key)]}):
            if isinstance(found, FoundResult) and found.result is not None:
                return ResultSeen(found.result, place)
    return None
