"""Read the data of figures from a run directory or a file of results."""

import itertools
import math
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leeward.campaign import Campaign, open_layouts
from leeward.campaign.remarks import installed_of, is_by_capacity_factor
from leeward.capacity import by_capacity_factor, merit, yield_words
from leeward.charts import shortened
from leeward.errors import BadSourceError, InputError
from leeward.layout import LayoutProblem
from leeward.plots.best import FarmLayout
from leeward.plots.convergence import ONE_BY_ONE, Convergence
from leeward.plots.distribution import LONGEST_NAME, AepCell
from leeward.store import Key, Result
from leeward.watch import find_result, find_results, history_of, layout_view, phases_of, result_lines, run_of, snapshot


@dataclass(frozen=True)
class Choice:
    """A selection of farms and turbine types by their indices. An empty collection selects all."""

    farms: Collection[int] = ()
    types: Collection[int] = ()

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, Key):
            return False
        return (not self.farms or key.farm_idx in self.farms) and (not self.types or key.type_idx in self.types)

    def __str__(self) -> str:
        named = {"farm": self.farms, "type": self.types}
        return " with ".join(f"{what} {', '.join(map(str, n))}" for what, n in named.items() if n) or "any farm"


def known_aeps(path: Path, choice: Choice) -> dict[Key, float]:
    """Return the known AEPs (GWh) of the selected results, sorted by key; raise BadSourceError if there are none."""
    found = _aeps(path)
    aeps = {key: aep for key, aep in found.items() if aep is not None and key in choice}
    if not aeps:
        chosen = sum(key in choice for key in found)
        raise BadSourceError(
            f"{path}: no result of {choice} has a known AEP ({chosen} results of {choice}, {len(found)} in all)"
        )
    return aeps


def _aeps(path: Path) -> dict[Key, float | None]:
    """Return the AEP (GWh) of every result, or None if it is not known; raise an error if the file is damaged."""
    if path.is_dir() and run_of(path) is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about damaged results
            layouts = open_layouts(path)
        with layouts:
            return {result.key: None if math.isnan(result.aep_gwh) else result.aep_gwh for result in layouts.results()}
    found = {Key.parse(line["key"]): line.get("aep") for line in result_lines(path)}
    if not found:
        snapshot(path)  # raises an error if the file is damaged
    return found


def best_key(aeps: Mapping[Key, float], campaign: Campaign | None = None) -> tuple[Key, bool]:
    """Return the key of the best result, the first among equals, and whether it is the best by capacity factor.

    Capacity factors are compared if installed power differs by more than 0.5 %, else AEPs.
    """
    factor = by_capacity_factor(_planned_mw(campaign, *pair) for pair in {key[:2] for key in aeps})
    return _highest(aeps, campaign, factor), factor


def _highest(aeps: Mapping[Key, float], campaign: Campaign | None, factor: bool) -> Key:
    return max(aeps, key=lambda key: merit(aeps[key], _planned_mw(campaign, *key[:2]), factor))


def _planned_mw(campaign: Campaign | None, farm: int, kind: int) -> float | None:
    is_known = campaign is not None and farm in campaign.farms and kind in campaign.types
    return campaign.physics.installed_mw(farm, kind) if campaign is not None and is_known else None


def layout_problem(campaign: Campaign, key: Key) -> LayoutProblem:
    """Return the layout problem of a result, or raise InputError if the campaign does not contain it."""
    if key not in campaign:
        raise InputError(
            f"{key} is not a task of the campaign {campaign.name}, so its area is not known; give "
            "its campaign with --campaign"
        )
    return campaign.problem(key.farm_idx, key.type_idx)


def title_of(campaign: Campaign, key: Key) -> str:
    """Return the headline of a figure of one result."""
    return f"{campaign.farms[key.farm_idx]}, {campaign.types[key.type_idx]}, seed {key.seed}"


def best_of_each_farm(path: Path, campaign: Campaign, choice: Choice) -> list[FarmLayout]:
    """Return the best layout of each farm that has one; see `best_key`."""
    aeps = {key: aep for key, aep in known_aeps(path, choice).items() if key in campaign}
    if not aeps:
        raise BadSourceError(f"{path}: no result belongs to the campaign {campaign.name}; check the campaign file")
    best = _best_by_farm(aeps, campaign)
    return [_farm_layout(campaign, result, best[result.key]) for result in results_of(path, list(best))]


def best_results(path: Path, campaign: Campaign, choice: Choice) -> list[Result]:
    """Return the best result of each farm that has one; none if the run has no results of the campaign yet."""
    aeps = {key: aep for key, aep in _aeps(path).items() if aep is not None and key in choice and key in campaign}
    return results_of(path, list(_best_by_farm(aeps, campaign)))


def _best_by_farm(aeps: Mapping[Key, float], campaign: Campaign) -> dict[Key, bool]:
    """Return the best key of each farm, and whether it is the best of several types by capacity factor."""
    best: dict[Key, bool] = {}
    for farm, keys in itertools.groupby(sorted(aeps), key=lambda key: key.farm_idx):
        known = {key: aeps[key] for key in keys}
        is_by_factor = is_by_capacity_factor(campaign, farm)
        best[_highest(known, campaign, is_by_factor)] = is_by_factor and len({key.type_idx for key in known}) > 1
    return best


def results_of(path: Path, keys: Sequence[Key]) -> list[Result]:
    """Return these results, or raise an error that names a missing or damaged one."""
    seen = find_results(path, keys)
    return [(seen[key] if key in seen else find_result(path, key)).result for key in keys]


def _farm_layout(campaign: Campaign, result: Result, is_by_factor: bool) -> FarmLayout:
    key = result.key
    view = layout_view(campaign, result)
    return FarmLayout(
        label=str(key.farm_idx),
        name=f"{campaign.farms[key.farm_idx]}, {result.n_turbines} × {campaign.types[key.type_idx]}",
        area=campaign.physics.area(key.farm_idx),
        x=result.x,
        y=result.y,
        aep_gwh=result.aep_gwh,
        rotor_diameter_m=result.rotor_diameter_m,
        wake_loss=view.wake_loss,
        installed_mw=view.installed_mw,
        is_by_factor=is_by_factor,
    )


def aep_cells(path: Path, campaign: Campaign | None, choice: Choice) -> list[AepCell]:
    """Return AEP by seed for each farm and type. Without a campaign, farms and types have numbers instead of names."""
    farms = {} if campaign is None else _unambiguous(campaign.farms)
    types = {} if campaign is None else _unambiguous(campaign.types)
    cells: dict[tuple[int, int], dict[int, float]] = {}
    for key, aep in known_aeps(path, choice).items():
        cells.setdefault((key.farm_idx, key.type_idx), {})[key.seed] = aep
    installed = {pair: _planned_mw(campaign, *pair) for pair in cells}
    types = {kind: _with_power(name, installed, kind) for kind, name in types.items()}
    return [
        AepCell(farms.get(pair[0], f"farm {pair[0]}"), types.get(pair[1], f"type {pair[1]}"), by_seed, installed[pair])
        for pair, by_seed in sorted(cells.items())
    ]


def _with_power(name: str, installed: Mapping[tuple[int, int], float | None], kind: int) -> str:
    """Return the name of a turbine type with its installed power, as a range over the farms."""
    known = sorted(mw for (_, other), mw in installed.items() if other == kind and mw is not None)
    if not known:
        return name
    power = "–".join(dict.fromkeys(f"{mw:.5g}" for mw in (known[0], known[-1])))
    return f"{shortened(name, LONGEST_NAME - len(power) - 5)}, {power} MW"


def _unambiguous(names: Mapping[int, str]) -> dict[int, str]:
    """Return the names, with the number added to those that occur several times."""
    times = Counter(names.values())
    return {number: name if times[name] == 1 else f"{name} ({number})" for number, name in names.items()}


def convergences(path: Path, keys: Sequence[Key], campaign: Campaign | None = None) -> list[Convergence]:
    """Return the convergence of these results. campaign: gives installed power that results do not contain."""
    found = []
    for result in results_of(path, keys):
        by_phase = phases_of(result)
        label = f"{result.key}, {yield_words(result.aep_gwh, installed_of(campaign, result))}".removesuffix(", ")
        label = label.replace(", ", "\n") if len(keys) <= ONE_BY_ONE else label  # room for several lines
        found.append(Convergence(label, list(by_phase), list(by_phase.values()), history_of(result)))
    return found
