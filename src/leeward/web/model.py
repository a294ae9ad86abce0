"""What the dashboard knows, looked up at most as often as it is worth: pages are many, the disk is one."""

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from leeward.campaign import Campaign
from leeward.store.audit import read_lines
from leeward.store.keys import Key
from leeward.store.schema import Result
from leeward.watch import Observation, Snapshot, observe
from leeward.watch.campaigns import run_of
from leeward.watch.drawings import FarmShape, LayoutView, farm_shape, layout_view
from leeward.watch.present import key_of
from leeward.watch.single import find_result, find_results
from leeward.watch.tasks import Figures, TaskTable
from leeward.wind import WindRose, wind_rose

SHORTEST_S = 1.0  # between two looks
PATIENCE = 10.0  # looking takes at most this part of the time: a tenth
VIEWS_KEPT = 64
RESULTS_KEPT = 256
WAIT_S = 1.5  # for wake losses; then a page is shown without them


class Model:
    """One place, seen through caches. Safe to use from several threads."""

    def __init__(self, path: Path, campaign: Campaign | None = None) -> None:
        """campaign: what the results belong to, instead of what the place says."""
        self.path = path
        self._named = campaign
        self._looking = threading.RLock()
        self._computing = threading.RLock()
        self._seen: Observation | None = None
        self._next_look = 0.0
        self._tasks: TaskTable | None = None
        self._figures = Figures(path)
        self._results: OrderedDict[tuple[Key, str], Result] = OrderedDict()
        self._views: OrderedDict[tuple[Key, str], Future[LayoutView]] = OrderedDict()
        self._work = ThreadPoolExecutor(1, "wake losses")
        self._shapes: dict[int, FarmShape] = {}
        self._campaign_text = ""

    # --- counted ---

    def observation(self) -> Observation:
        """The latest look; a new one where the last is old, and it did not take long."""
        with self._looking:
            now = time.monotonic()
            if self._seen is None or now >= self._next_look:
                self._seen = self._same_campaign(observe(self.path, campaign=self._named))
                self._tasks = None
                took = time.monotonic() - now
                self._next_look = time.monotonic() + max(SHORTEST_S, PATIENCE * took)
            return self._seen

    @property
    def snapshot(self) -> Snapshot:
        return self.observation().snapshot

    @property
    def campaign(self) -> Campaign | None:
        return self.observation().campaign

    def tasks(self) -> TaskTable:
        """Every task, of the latest look."""
        with self._looking:
            seen = self.observation()
            if self._tasks is None:
                self._figures.refresh()
                self._tasks = TaskTable(seen, self._figures)
            return self._tasks

    def audit(self) -> list[dict[str, Any]]:
        """All events, the oldest first; none of a lone file."""
        run = run_of(self.path)
        return [] if run is None else read_lines(run.audit)

    def _same_campaign(self, seen: Observation) -> Observation:
        """With the campaign that is known already, if it is the same: what it has worked out is kept."""
        old = None if self._seen is None else self._seen.campaign
        text = "" if seen.campaign is None else seen.campaign.study_text()
        if old is not None and text == self._campaign_text:
            return Observation(seen.snapshot, old, seen.present)
        self._campaign_text = text
        self._shapes.clear()
        self._views.clear()
        self.__dict__.pop("rose", None)
        return seen

    # --- read ---

    def result(self, key: Key) -> Result:
        """One result, checked; kept as long as the index tells the same of it."""
        known = self._cached(key)
        return self._keep(find_result(self.path, key).result) if known is None else known

    def _cached(self, key: Key) -> Result | None:
        with self._looking:
            return self._results.get(self._which(key))

    def _keep(self, result: Result) -> Result:
        with self._looking:
            self._results[self._which(result.key)] = result
            while len(self._results) > RESULTS_KEPT:
                self._results.popitem(last=False)
        return result

    def _which(self, key: Key) -> tuple[Key, str]:
        """Of one key another result may come: then the index tells something else of it."""
        return key, repr(self.tasks().find(key))

    def view(self, key: Key) -> LayoutView:
        """One layout as it is drawn, with the wake loss of each turbine; without it where that takes long, for now.

        The first one takes a second, and half a minute where the wake engine was never used on this machine.
        """
        result = self.result(key)
        with self._looking:
            which = self._which(key)
            if which not in self._views:
                self._views[which] = self._work.submit(layout_view, self.campaign, result)
                if len(self._views) > VIEWS_KEPT:
                    self._views.popitem(last=False)
            view = self._views[which]
        try:
            return view.result(timeout=WAIT_S)
        except TimeoutError:
            words = "the wake losses are being worked out"
            return replace(layout_view(self.campaign, result, with_losses=False), remark=words, is_pending=True)

    def shapes(self) -> Mapping[int, FarmShape]:
        """All areas; none where the campaign is not known."""
        campaign = self.campaign
        with self._computing:
            for farm in campaign.farms if campaign is not None else ():
                if campaign is not None and farm not in self._shapes:
                    self._shapes[farm] = farm_shape(campaign, farm)
            return dict(self._shapes)

    def best_results(self, type_idx: int | None = None) -> dict[int, Result]:
        """By farm: its best layout, of one turbine type or of all. Damaged ones are left out; checks tell of them."""
        best: dict[int, tuple[float, Key]] = {}
        for cell in self.snapshot.cells:
            key = key_of(cell.best_key or "")
            is_wanted = type_idx is None or cell.type_idx == type_idx
            if key is not None and cell.best_aep is not None and is_wanted:
                best[cell.farm_idx] = max(best.get(cell.farm_idx, (0.0, key)), (cell.best_aep, key))
        keys = [key for _, key in best.values()]
        unread = [key for key in keys if self._cached(key) is None]
        for read in find_results(self.path, unread)[0].values():
            self._keep(read)
        return {key.farm_idx: result for key in keys if (result := self._cached(key)) is not None}

    @cached_property
    def rose(self) -> WindRose | None:
        """Of the campaign's site."""
        campaign = self.campaign
        return None if campaign is None else wind_rose(campaign.site)

    def versions(self) -> str:
        """Of the programs that made the first result there is."""
        for cell in self.snapshot.cells:
            key = key_of(cell.best_key or "")
            if key is not None:
                return str(self.result(key).details.get("versions", ""))
        return ""
