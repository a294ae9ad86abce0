"""The data of the dashboard, cached so that many pages cause few disk reads."""

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from leeward.campaign import Campaign
from leeward.store import Key, Result
from leeward.watch import (
    FarmShape,
    LayoutView,
    Observation,
    ResultSeen,
    Snapshot,
    TaskTable,
    best_of_farms,
    farm_shape,
    find_result,
    find_results,
    identity,
    layout_view,
    run_of,
)
from leeward.web.reading import Background, Reader
from leeward.wind import WindRose, wind_rose

WAIT_S = 0.6  # wait for wake losses; then a page is shown without them
VIEWS_KEPT = 64
RESULTS_KEPT = 256


class Model:
    """A run directory or file of results, read through caches. Thread-safe."""

    def __init__(self, path: Path, campaign: Campaign | None = None) -> None:
        """Start the background threads. campaign: replaces the one found with the results."""
        self.path = path
        self._reader = Reader(path, campaign)
        self._lock = threading.Lock()  # of the caches, held briefly
        self._counting = threading.Lock()
        self._tasks: tuple[Observation, TaskTable] | None = None
        self._results: OrderedDict[Key, tuple[object, ResultSeen]] = OrderedDict()
        self._work = Background("wake losses")
        self._view = lru_cache(maxsize=VIEWS_KEPT)(self._start_view)

    # --- counted ---

    def observation(self) -> Observation:
        return self._reader.latest()

    @property
    def snapshot(self) -> Snapshot:
        return self.observation().snapshot

    @property
    def campaign(self) -> Campaign | None:
        return self.observation().campaign

    def remark(self) -> str:
        """Return a remark if the data are out of date, else ""."""
        return self._reader.remark()

    def tasks(self) -> TaskTable:
        """Return all tasks."""
        seen = self.observation()
        with self._counting:
            if self._tasks is None or self._tasks[0] is not seen:
                self._tasks = seen, TaskTable(seen)
            return self._tasks[1]

    def warm_up(self) -> None:
        """Make the table of tasks in advance; an error is raised when a page asks for it."""
        self._work.submit(self.tasks)

    # --- read ---

    def result(self, key: Key) -> Result:
        """Return one result, checked, from the cache if its files have not changed."""
        known = self._known(key)
        return self._keep(find_result(self.path, key)) if known is None else known

    def best_results(self, farms: Collection[int], type_idx: int | None = None) -> dict[int, Result]:
        """Return the best layout of each of these farms, of one turbine type or of all, without damaged ones."""
        best = best_of_farms(self.snapshot.cells, farms, type_idx)
        known = {key: self._known(key) for key in best.values()}
        found = find_results(self.path, [key for key, result in known.items() if result is None])
        known |= {key: self._keep(seen) for key, seen in found.items()}
        return {farm: result for farm, key in best.items() if (result := known[key]) is not None}

    def _known(self, key: Key) -> Result | None:
        """Return a cached result if its files have not changed, else None."""
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
        """Return the identities of the file that held a result and of the one that is searched first."""
        run = run_of(self.path)
        first = self.path if run is None or self.path.is_file() else run.shard(seen.result.key)
        return identity(first), identity(seen.file)

    # --- computed ---

    def view(self, result: Result) -> LayoutView:
        """Return one layout for drawing; without wake losses while they are being computed.

        The first one takes a second, or half a minute if the wake engine has to be compiled.
        """
        campaign = self.campaign
        try:
            return self._view(campaign, result).result(timeout=WAIT_S)
        except TimeoutError:
            words = "they are being computed"
            return replace(layout_view(campaign, result, with_losses=False), remark=words, is_pending=True)

    def _start_view(self, campaign: Campaign | None, result: Result) -> Future[LayoutView]:
        return self._work.submit(lambda: layout_view(campaign, result))

    def shapes(self) -> Mapping[int, FarmShape]:
        """Return all areas; none if the campaign is not known."""
        return _shapes(self.campaign)

    @property
    def rose(self) -> WindRose | None:
        return _rose(self.campaign)


@lru_cache(maxsize=1)  # a campaign never changes
def _shapes(campaign: Campaign | None) -> Mapping[int, FarmShape]:
    return {} if campaign is None else {farm: farm_shape(campaign, farm) for farm in campaign.farms}


@lru_cache(maxsize=1)
def _rose(campaign: Campaign | None) -> WindRose | None:
    return None if campaign is None else wind_rose(campaign.physics.site)
