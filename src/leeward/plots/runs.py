"""From a run directory or a file of results to what is drawn of it."""

import math
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.campaign.layouts import open_layouts
from leeward.errors import BadSourceError, InputError
from leeward.plots.best import FarmLayout
from leeward.plots.convergence import Convergence
from leeward.plots.distribution import AepCell
from leeward.store.keys import Key
from leeward.watch import result_lines, snapshot
from leeward.watch.campaigns import run_of
from leeward.watch.drawings import layout_view
from leeward.watch.rise import history_of, phases_of
from leeward.watch.single import find_result, find_results

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.layout import LayoutProblem
    from leeward.store.schema import Result


@dataclass(frozen=True)
class Choice:
    """Which farms and turbine types are wanted, by farm_idx and type_idx; none named: all."""

    farms: Collection[int] = ()
    types: Collection[int] = ()

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, Key):
            return False
        return (not self.farms or key.farm_idx in self.farms) and (not self.types or key.type_idx in self.types)

    def __str__(self) -> str:
        named = [f"{what} {', '.join(map(str, which))}" for what, which in self._named() if which]
        return " with ".join(named) or "any farm"

    def _named(self) -> list[tuple[str, Collection[int]]]:
        return [("farm", self.farms), ("type", self.types)]


def known_aeps(path: Path, choice: Choice) -> dict[Key, float]:
    """AEP (GWh) of the results there whose AEP is known, in the order of their keys; at least one."""
    found = _aeps_at(path)
    aeps = {key: aep for key, aep in found.items() if aep is not None and key in choice}
    if not aeps:
        chosen = sum(key in choice for key in found)
        raise BadSourceError(
            f"{path}: no result of {choice} whose AEP is known, of {chosen} there and {len(found)} in all; "
            "expected at least one"
        )
    return aeps


def _aeps_at(path: Path) -> dict[Key, float | None]:
    """Of all results there; None where nobody knows it. A file that is damaged, and tells of none, is an error."""
    if path.is_dir() and run_of(path) is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of others that are damaged
            layouts = open_layouts(path)
        with layouts:
            return {result.key: None if math.isnan(result.aep) else result.aep for result in layouts.results()}
    found = {Key.parse(line["key"]): line.get("aep") for line in result_lines(path)}
    if not found:
        snapshot(path)  # which says what is wrong, if anything is
    return found


def best_key(aeps: Mapping[Key, float]) -> Key:
    """Of the highest AEP; the first of equal ones."""
    return max(aeps, key=lambda key: aeps[key])


def layout_problem(campaign: "Campaign", key: Key) -> "LayoutProblem":
    """The area and the wind of a result."""
    if key not in campaign:
        raise InputError(f"{key} is not a task of the campaign {campaign.name}, whose area a picture needs")
    return campaign.problem(key.farm_idx, key.type_idx)


def title_of(campaign: "Campaign", key: Key) -> str:
    """What stands above a picture of one result."""
    return f"{campaign.farms[key.farm_idx]}, {campaign.types[key.type_idx]}, seed {key.seed}"


def best_of_each_farm(path: Path, campaign: "Campaign", choice: Choice) -> list[FarmLayout]:
    """The layout with the highest AEP of each farm of the campaign that has any."""
    aeps = {key: aep for key, aep in known_aeps(path, choice).items() if key in campaign}
    if not aeps:
        raise BadSourceError(f"{path}: none of its results is of the campaign {campaign.name}")
    farms = sorted({key.farm_idx for key in aeps})
    best = [best_key({key: aep for key, aep in aeps.items() if key.farm_idx == farm}) for farm in farms]
    return [_farm_layout(campaign, result) for result in _results(path, best)]


def _results(path: Path, keys: Sequence[Key]) -> "list[Result]":
    """All of these, read in one go; of one that is not there, or damaged, the error says which."""
    seen = find_results(path, keys)
    return [(seen[key] if key in seen else find_result(path, key)).result for key in keys]


def _farm_layout(campaign: "Campaign", result: "Result") -> FarmLayout:
    key = result.key
    view = layout_view(campaign, result)
    return FarmLayout(
        label=str(key.farm_idx),
        name=f"{campaign.farms[key.farm_idx]}, {result.n_turbines} × {campaign.types[key.type_idx]}",
        area=campaign.area(key.farm_idx),
        x=result.x,
        y=result.y,
        aep_gwh=result.aep,
        rotor_diameter_m=result.diameter,
        wake_loss=view.wake_loss,
    )


def aep_cells(path: Path, campaign: "Campaign | None", choice: Choice) -> list[AepCell]:
    """AEP over the seeds for each farm and type; named as the campaign does, else by number."""
    farms = {} if campaign is None else _told_apart(campaign.farms)
    types = {} if campaign is None else _told_apart(campaign.types)
    cells: dict[tuple[int, int], dict[int, float]] = {}
    for key, aep in known_aeps(path, choice).items():
        cells.setdefault((key.farm_idx, key.type_idx), {})[key.seed] = aep
    return [
        AepCell(farms.get(farm, f"farm {farm}"), types.get(kind, f"type {kind}"), by_seed)
        for (farm, kind), by_seed in sorted(cells.items())
    ]


def _told_apart(names: Mapping[int, str]) -> dict[int, str]:
    """Names of which several things have one, with their numbers."""
    times = Counter(names.values())
    return {number: name if times[name] == 1 else f"{name} ({number})" for number, name in names.items()}


def convergences(path: Path, keys: Sequence[Key]) -> list[Convergence]:
    """How the AEP of these results rose."""
    return [_convergence(result) for result in _results(path, keys)]


def _convergence(result: "Result") -> Convergence:
    by_phase = phases_of(result)
    return Convergence(str(result.key), list(by_phase), list(by_phase.values()), history_of(result))
