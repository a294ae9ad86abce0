"""Select the results to export."""

import functools
import math
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from leeward.campaign.reading import rated_powers
from leeward.errors import BadSourceError, InputError
from leeward.store import EvaluationKey, Evaluations, FoundFile, FoundResult, Key, Layouts
from leeward.study import study_of
from leeward.watch import demand_place, present_at, run_of
from leeward.wording import listed

AnyResults = TypeVar("AnyResults", Layouts, Evaluations)


@dataclass(frozen=True)
class Choice:
    """A selection of results by key, farm, type and seed; an empty one selects all.

    best: only the highest AEP of each farm and type.
    """

    keys: Collection[Key] = ()
    farms: Collection[int] = ()
    types: Collection[int] = ()
    seeds: Collection[int] = ()
    best: bool = False

    def __contains__(self, key: Key) -> bool:
        pairs = ((key.farm_idx, self.farms), (key.type_idx, self.types), (key.seed, self.seeds))
        return (not self.keys or key in self.keys) and all(number in some for number, some in pairs if some)


def open_results(path: Path) -> Layouts:
    """Return the results of a run directory, a file or a folder of files; `bad` lists the damaged ones.

    A run directory includes results that only its merged file still has.
    """
    return _opened(path, functools.partial(Layouts, rated_powers=rated_powers))


def open_evaluations(path: Path) -> Evaluations:
    """Return the results of a study in a run directory or a file; `bad` lists the damaged ones.

    A run directory includes results that only its merged file still has.
    """
    return _opened(path, functools.partial(Evaluations, study_of=study_of))


def _opened(path: Path, make: Callable[..., AnyResults]) -> AnyResults:
    demand_place(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # `bad` lists what is damaged
        results = make(path)
        run = run_of(path)
        if path.is_file() or run is None or not run.output.is_file():
            return results
        elsewhere = present_at(path).names.difference(map(str, results))
        return make(path, also=run.output) if elsewhere else results


def damaged(layouts: Layouts, choice: Choice) -> list[FoundResult | FoundFile]:
    """Return the damaged results and files that may hold a selected result that no intact file has."""

    def counts(bad: FoundResult | FoundFile) -> bool:
        if isinstance(bad, FoundFile) or bad.key is None:
            return not choice.keys  # all keys of the selection were found, so this file held other results
        return bad.key in choice and bad.key not in layouts

    return [bad for bad in layouts.bad if counts(bad)]


def chosen(layouts: Layouts, choice: Choice) -> Layouts:
    """Return the selected results. Raise BadSourceError or InputError if there are none."""
    if not len(layouts) and layouts.bad:
        raise BadSourceError(
            f"{layouts.path}: {len(layouts.bad)} damaged, no intact results; `leeward check` lists the reasons"
        )
    if not len(layouts):
        raise InputError(f"{layouts.path}: has no results")
    for key in choice.keys:
        layouts[key]  # raises an error if the key is missing or damaged
    keys = [key for key in layouts if key in choice]
    if not keys:
        raise InputError(f"{layouts.path}: none of its {len(layouts)} results matches {_wanted(choice, layouts)}")
    return layouts.only(_best(layouts.only(keys)) if choice.best else keys)


def chosen_evaluations(evaluations: Evaluations, keys: Collection[EvaluationKey]) -> Evaluations:
    """Return the evaluations of these keys, or all. Raise BadSourceError or InputError if there are none."""
    if not len(evaluations) and evaluations.bad:
        raise BadSourceError(
            f"{evaluations.path}: {len(evaluations.bad)} damaged, no intact results; `leeward check` lists the reasons"
        )
    if not len(evaluations):
        raise InputError(f"{evaluations.path}: has no results")
    for key in keys:
        evaluations[key]  # raises an error if the key is missing or damaged
    return evaluations.only(keys or evaluations)


def _best(layouts: Layouts) -> list[Key]:
    """Return the best key of each farm and type; among equals, the one with the lowest seed."""
    found: dict[tuple[int, int], tuple[float, Key]] = {}
    for result in layouts.results():
        pair = result.key.farm_idx, result.key.type_idx
        rank = (math.inf if math.isnan(result.aep_gwh) else -result.aep_gwh), result.key
        found[pair] = min(found.get(pair, rank), rank)
    return [key for _, key in found.values()]


def _wanted(choice: Choice, layouts: Layouts) -> str:
    asked, there = [], []
    for word, position, some in (("farm", 0, choice.farms), ("type", 1, choice.types), ("seed", 2, choice.seeds)):
        if some:
            asked.append(f"{word} {', '.join(map(str, some))}")
            there.append(f"{word}s {listed(sorted({key[position] for key in layouts}), 20)}")
    return f"{', '.join(asked)}; it has {'; '.join(there)}"
