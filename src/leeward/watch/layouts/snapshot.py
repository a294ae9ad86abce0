"""The snapshot of a campaign of layouts: farms × turbine types × seeds."""

import functools
import itertools
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from leeward.campaign import Campaign
from leeward.capacity import comparison_remark
from leeward.errors import InputError
from leeward.store import Key
from leeward.watch.data import Kind, Progress
from leeward.watch.layouts.campaigns import campaign_of
from leeward.watch.layouts.cells import Cell, Pair, basis_of, cell_of, seeds_of
from leeward.watch.present import Present
from leeward.watch.read import Reading, progress_of
from leeward.wording import listed

NO_ROOM = "InfeasibleError: no feasible layout of "  # the message of `leeward.layout.driver`
MAKE_ROOM = "A retry cannot help. Change the campaign: fewer turbines, less spacing, or a larger area."


def is_out_of_room(message: str) -> bool:
    """Return whether a task failed because the turbines do not fit into the area."""
    return NO_ROOM in message


@dataclass(frozen=True, kw_only=True)
class Snapshot(Progress):
    """The state of a run directory or a lone file of layouts; counted, not verified.

    farms, types: names by number. optimiser: recipe and effort in words; None without a campaign. by_capacity_factor:
    farms whose types are compared by capacity factor, not by AEP. remarks: sentences on the comparison of types.
    """

    KIND: ClassVar[str] = "layouts"
    NOUN: ClassVar[str] = "layout"

    farms: Mapping[int, str]
    types: Mapping[int, str]
    seeds: int | None
    cells: tuple[Cell, ...]
    optimiser: str | None = None
    by_capacity_factor: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()

    @functools.cached_property
    def _installed_mw(self) -> dict[Pair, float | None]:
        return {(cell.farm_idx, cell.type_idx): cell.installed_mw for cell in self.cells}

    def installed_mw(self, farm_idx: int, type_idx: int) -> float | None:
        """Return the installed power of a farm with a turbine type in MW; None if unknown."""
        return self._installed_mw.get((farm_idx, type_idx))

    @property
    def comparison_remark(self) -> str:
        """Return a sentence on the farms whose types are compared by capacity factor; empty if there are none."""
        names = [f"{farm} {self.farms.get(farm, '')}".strip() for farm in self.by_capacity_factor]
        return comparison_remark(names, len(self.farms))


@dataclass(frozen=True, eq=False)
class Observation:
    """A snapshot and the data that it was counted from.

    campaign: None if unknown. seeds: the texts of all keys, by farm and turbine type, and by seed.
    """

    snapshot: Snapshot
    campaign: Campaign | None
    present: Present
    seeds: Mapping[Pair, Mapping[int, str]]


def _checked_campaign(path: Path) -> Campaign | None:
    """Return the campaign of a path; raise InputError if its turbines cannot be counted."""
    campaign = campaign_of(path)
    basis_of(campaign)
    return campaign


def _observe(reading: Reading, seeds: Collection[int] | None) -> Observation:
    """Return the observation. seeds: count only these."""
    campaign: Campaign | None = reading.work
    basis, chosen = basis_of(campaign), _chosen(campaign, seeds)
    there = seeds_of(reading.present.names)
    done = {pair: _counted(campaign, chosen, pair, found) for pair, found in there.items()}

    def counts(key: Key) -> bool:
        return (chosen is None or key.seed in chosen) and (campaign is None or key in campaign)

    failures = {key: failed for key, failed in reading.failures.items() if counts(key)}
    running = {key for key in reading.running_keys if counts(key)}
    farms, types = _names(campaign, done)
    expected = None if campaign is None or chosen is None else len(chosen)  # of each farm and turbine type
    n_there = sum(len(found) if seeds is None else sum(seed in seeds for seed in found) for found in there.values())
    n_done = sum(map(len, done.values()))
    n_expected = None if expected is None else expected * len(farms) * len(types)
    n_failed = Counter(key[:2] for key, failed in failures.items() if failed.final)
    n_running = Counter(key[:2] for key in running)
    seen = Snapshot(
        **vars(progress_of(reading, n_expected, n_done, n_there - n_done, failures, len(running))),
        farms=farms,
        types=types,
        seeds=expected,
        cells=tuple(
            cell_of(pair, expected, done.get(pair, {}), n_failed[pair], n_running[pair], basis, reading.present.figures)
            for pair in itertools.product(farms, types)
        ),
        optimiser=basis.optimiser,
        by_capacity_factor=basis.by_capacity_factor,
        remarks=basis.remarks,
    )
    return Observation(seen, campaign, reading.present, there)


LAYOUTS = Kind(
    parse=Key.parse,
    pattern=r"farm(?!0\d)\d{1,9}_t(?!0\d)\d{1,9}_s(?!0\d)\d{1,10}",
    figure="aep",
    work_of=_checked_campaign,
    show=_observe,
)
key_of = LAYOUTS.key_of


def _counted(
    campaign: Campaign | None, chosen: Collection[int] | None, pair: Pair, there: Mapping[int, str]
) -> Mapping[int, str]:
    """Return the seeds to count."""
    if campaign is not None and not (pair[0] in campaign.farms and pair[1] in campaign.types):
        return {}
    return there if chosen is None else {seed: name for seed, name in there.items() if seed in chosen}


def _names(campaign: Campaign | None, done: Collection[Pair]) -> tuple[dict[int, str], dict[int, str]]:
    """Return the names of farms and turbine types by number; empty names without a campaign."""
    if campaign is not None:
        return dict(campaign.farms), dict(campaign.types)
    farms, types = (sorted({pair[part] for pair in done}) for part in (0, 1))
    return dict.fromkeys(farms, ""), dict.fromkeys(types, "")


def _chosen(campaign: Campaign | None, seeds: Collection[int] | None) -> Collection[int] | None:
    """Return the seeds to count; None for all if the campaign is unknown."""
    if campaign is None:
        return seeds
    known = campaign.seeds if isinstance(campaign.seeds, range) else frozenset(campaign.seeds)
    if seeds is None:
        return known
    chosen = frozenset(seed for seed in seeds if seed in known)
    if not chosen:
        is_range = isinstance(known, range) and known.step == 1
        known_words = f"{min(known)} to {max(known)}" if is_range else listed(campaign.seeds, 10)
        asked = ", ".join(map(str, seeds))
        raise InputError(f"seed {asked}: not in the campaign {campaign.name}, whose seeds are {known_words}")
    return chosen
