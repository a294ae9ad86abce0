"""The data of the dashboard, cached so that many pages cause few disk reads."""

import threading
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from leeward.campaign import Campaign
from leeward.pages.study import Tasks
from leeward.store import Result, file_identity
from leeward.watch import (
    LayoutView,
    ResourceView,
    ResultSeen,
    TaskTable,
    best_of_farms,
    find_result,
    find_results,
    layout_view,
    resource_view,
    run_of,
)
from leeward.web.reading import Background, Reader

WAIT_S = 0.6  # a page waits this long for wake losses, then it is shown without them
VIEWS_KEPT = 64
RESULTS_KEPT = 256


class Model:
    """A run directory or file of results, read through caches. Thread-safe."""

    def __init__(self, path: Path, campaign: Any = None) -> None:
        """Start the background threads. campaign: replaces the campaign or study found with the results."""
        self.path = path
        self._reader = Reader(path, campaign)
        self._table_lock = threading.Lock()
        self._results: dict[Any, tuple[object, ResultSeen]] = {}
        self._work = Background("wake losses")
        self._table = lru_cache(maxsize=1)(TaskTable)
        self._evaluations = lru_cache(maxsize=1)(Tasks)
        self._view = lru_cache(maxsize=VIEWS_KEPT)(self._start_view)
        self._resource = lru_cache(maxsize=1)(self._start_resource)

    # --- counted ---

    def observation(self) -> Any:
        """Return an `Observation` of layouts or a `StudyObservation`."""
        return self._reader.latest()

    @property
    def snapshot(self) -> Any:
        """Return a `Snapshot` of layouts or a `StudySnapshot`."""
        return self.observation().snapshot

    @property
    def campaign(self) -> Any:
        """Return the campaign or the study; None if unknown."""
        return self.observation().campaign

    def remark(self) -> str:
        """Return a remark if the data are out of date, else ""."""
        return self._reader.remark()

    def tasks(self) -> TaskTable:
        """Return all tasks of a campaign of layouts."""
        seen = self.observation()
        with self._table_lock:
            return self._table(seen)

    def evaluations(self) -> Tasks:
        """Return all tasks of a study."""
        seen = self.observation()
        with self._table_lock:
            return self._evaluations(seen)

    def warm_up(self) -> None:
        """Make the table of tasks in advance. An error is raised later, when a page asks for the table."""
        self._work.submit(self.evaluations if self.snapshot.KIND == "evaluations" else self.tasks)

    # --- read ---

    def result(self, key: Any) -> Any:
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

    def _known(self, key: Any) -> Any:
        """Return a cached result if its files have not changed, else None."""
        kept = self._results.get(key)
        return kept[1].result if kept is not None and kept[0] == self._places(kept[1]) else None

    def _keep(self, seen: ResultSeen) -> Any:
        if len(self._results) >= RESULTS_KEPT:
            self._results.clear()
        self._results[seen.result.key] = self._places(seen), seen
        return seen.result

    def _places(self, seen: ResultSeen) -> object:
        """Return the identities of the file that held a result and of the one that is searched first."""
        run = run_of(self.path)
        first = self.path if run is None or self.path.is_file() else run.shard(seen.result.key)
        return file_identity(first), file_identity(seen.file)

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

    def resource(self) -> ResourceView | None:
        """Return the map of the wind, computed once; None if there is none. Raise TimeoutError while it is computed."""
        return self._resource(self.campaign).result(timeout=WAIT_S)

    def _start_resource(self, campaign: Campaign | None) -> Future[ResourceView | None]:
        return self._work.submit(lambda: resource_view(campaign))
