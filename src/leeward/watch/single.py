"""One result, found without reading all the others."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from leeward.errors import BadSourceError
from leeward.store.found import FoundResult
from leeward.store.keys import Key
from leeward.store.layouts import open_layouts
from leeward.store.reader import read_files
from leeward.store.schema import Result
from leeward.watch.campaigns import demand_place, run_of


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
        places = [path] if run is None else [path, run.shard(key)]
    else:
        places = [] if run is None else [run.shard(key), run.output]
    seen = _first(places, key)
    if seen is not None:
        return seen
    with open_layouts(path) as layouts:  # says what is there instead
        return ResultSeen(layouts[key], path)


def _first(places: Iterable[Path], key: Key) -> ResultSeen | None:
    for place in places:
        if not place.is_file():
            continue
        for found in read_files([place], contents=True, keys={place: [str(key)]}):
            if isinstance(found, FoundResult) and found.key == key:
                if found.result is None:
                    raise BadSourceError(f"{place}: {key} is damaged ({found.verdict}: {found.reason})")
                return ResultSeen(found.result, place)
    return None
