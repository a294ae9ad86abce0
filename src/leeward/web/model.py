"""What the dashboard knows, looked up at most as often as it is worth: pages are many, the disk is one."""

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from leeward.campaign import Campaign
from leeward.store import Key, Result
from leeward.watch import (
    FarmShape,
    Figures,
    LayoutView,
    Observation,
    ResultSeen,
    Snapshot,
    TaskTable,
    audit_events,
    best_of_farms,
    farm_shape,
    find_result,
    find_results,
    identity,
    layout_view,
    run_of,
)
from leeward.web.background import Background
from leeward.web.looks import Looks
from leeward.wind import WindRose, wind_rose

WAIT_S = 0.6  # for wake losses; then a page is shown without them
VIEWS_KEPT = 64
RESULTS_KEPT = 256
FEW = 5


class Model:
    """One place, seen through caches. Safe to use from several threads."""

    def __init__(self, path: Path, campaign: Campaign | None = None) -> None:
        """campaign: what the results belong to, instead of what the place says."""
        self.path = path
        self._looks = Looks(path, campaign)
        self._lock = threading.RLock()  # of what follows, for moments
        self._counting = threading.Lock()
        self._tasks: tuple[Observation, TaskTable] | None = None
        self._figures = Figures(path)
        self._results: OrderedDict[Key, tuple[object, ResultSeen]] = OrderedDict()
        self._study = _Study(None)
        self._work = Background("wake losses")

    # --- counted ---

    def observation(self) -> Observation:
        """The latest look."""
        return self._looks.latest()

    @property
    def snapshot(self) -> Snapshot:
        return self.observation().snapshot

    @property
    def campaign(self) -> Campaign | None:
        return self.observation().campaign

    def remark(self) -> str:
        """What there is to say about the age of all this."""
        return self._looks.remark()

    def tasks(self) -> TaskTable:
        """Every task, of the latest look."""
        seen = self.observation()
        with self._counting:
            if self._tasks is None or self._tasks[0] is not seen:
                self._figures.refresh()
                self._tasks = seen, TaskTable(seen, self._figures)
            return self._tasks[1]

    def warm_up(self) -> None:
        """Make the table of tasks before anybody asks for it; who asks is told what goes wrong with it."""
        self._work.submit(self.tasks)

    def audit(self) -> list[dict[str, Any]]:
        """All events, the oldest first; none of a lone file."""
        return audit_events(self.path)

    # --- read ---

    def result(self, key: Key) -> Result:
        """One result, checked; kept as long as the files that may hold it are the same."""
        known = self._known(key)
        return self._keep(find_result(self.path, key)) if known is None else known

    def best_results(self, farms: Collection[int], type_idx: int | None = None) -> dict[int, Result]:
        """By farm, of these: its best layout, of one turbine type or of all. Damaged ones are left out."""
        best = best_of_farms(self.snapshot.cells, farms, type_idx)
        known = {key: self._known(key) for key in best.values()}
        found = find_results(self.path, [key for key, result in known.items() if result is None])
        known |= {key: self._keep(seen) for key, seen in found.items()}
        return {farm: result for farm, key in best.items() if (result := known[key]) is not None}

    def versions(self) -> str:
        """Of the programs that made a result; of one that can be read."""
        farms = list(self.snapshot.farms)[:FEW]
        for result in self.best_results(farms).values():
            return str(result.details.get("versions", ""))
        return ""

    def _known(self, key: Key) -> Result | None:
        """One that was read before, if nothing has happened to it since."""
        with self._lock:
            kept = self._results.get(key)
            if kept is not None:
                self._results.move_to_end(key)
        return kept[1].result if kept is not None and kept[0] == self._places(kept[1]) else None

    def _keep(self, seen: ResultSeen) -> Result:
        places = self._places(seen)
        with self._lock:
            self._results[seen.result.key] = places, seen
            if len(self._results) > RESULTS_KEPT:
                self._results.popitem(last=False)
        return seen.result

    def _places(self, seen: ResultSeen) -> object:
        """Which files they are: the one that it was found in, and those that come first where it is looked for."""
        run = run_of(self.path)
        first = self.path if run is None or self.path.is_file() else run.shard(seen.result.key)
        return identity(first), identity(seen.file)

    # --- worked out ---

    def view(self, key: Key) -> LayoutView:
        """One layout as it is drawn, with the wake loss of each turbine; without it where that takes long, for now.

        The first one takes a second, and half a minute where the wake engine was never used on this machine.
        """
        result, campaign = self.result(key), self.campaign
        which = key, result.digest
        with self._lock:
            views = self._of(campaign).views
            if which not in views:
                views[which] = self._work.submit(lambda: layout_view(campaign, result))
                if len(views) > VIEWS_KEPT:
                    views.popitem(last=False)
            views.move_to_end(which)
            view = views[which]
        try:
            return view.result(timeout=WAIT_S)
        except TimeoutError:
            words = "the wake losses are being worked out"
            return replace(layout_view(campaign, result, with_losses=False), remark=words, is_pending=True)

    def shapes(self) -> Mapping[int, FarmShape]:
        """All areas; none where the campaign is not known."""
        campaign = self.campaign
        with self._lock:
            return self._of(campaign).shapes

    @property
    def rose(self) -> WindRose | None:
        """Of the campaign's site."""
        campaign = self.campaign
        with self._lock:
            return self._of(campaign).rose

    def _of(self, campaign: Campaign | None) -> "_Study":
        """What is kept of this very campaign; what was of another goes."""
        if self._study.campaign is not campaign:
            self._study = _Study(campaign)
        return self._study


class _Study:
    """What was worked out for one campaign."""

    def __init__(self, campaign: Campaign | None) -> None:
        self.campaign = campaign
        self.views: OrderedDict[tuple[Key, str], Future[LayoutView]] = OrderedDict()

    @cached_property
    def shapes(self) -> dict[int, FarmShape]:
        campaign = self.campaign
        return {} if campaign is None else {farm: farm_shape(campaign, farm) for farm in campaign.farms}

    @cached_property
    def rose(self) -> WindRose | None:
        return None if self.campaign is None else wind_rose(self.campaign.site)
