"""What the dashboard knows, looked up at most as often as it is worth: pages are many, the disk is one."""

import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from leeward.campaign import Campaign
from leeward.errors import StorageError
from leeward.store.audit import read_lines
from leeward.store.index import output_index_path
from leeward.store.keys import Key
from leeward.store.schema import Result
from leeward.watch import Observation, Snapshot, observe
from leeward.watch.campaigns import run_of
from leeward.watch.drawings import FarmShape, LayoutView, farm_shape, layout_view
from leeward.watch.figures import identity
from leeward.watch.present import key_of
from leeward.watch.single import ResultSeen, find_result, find_results
from leeward.watch.tasks import Figures, TaskTable
from leeward.wind import WindRose, wind_rose

SHORTEST_S = 1.0  # between two looks
PATIENCE = 10.0  # looking takes at most this part of the time: a tenth
LOOK_S = 0.5  # how long a page waits for a new look; then it shows what the last one saw
WAIT_S = 0.6  # for wake losses; then a page is shown without them
VIEWS_KEPT = 64
RESULTS_KEPT = 256
FEW = 5


class Model:
    """One place, seen through caches. Safe to use from several threads."""

    def __init__(self, path: Path, campaign: Campaign | None = None) -> None:
        """campaign: what the results belong to, instead of what the place says."""
        self.path = path
        self._named = campaign
        self._lock = threading.RLock()  # of what follows, for moments
        self._computing = threading.RLock()
        self._eyes = ThreadPoolExecutor(1, "looking")
        self._look: Future[Observation] | None = None  # the one that is under way
        self._seen: Observation | None = None
        self._file: object = None  # which one was seen, of a lone file
        self._look_began = self._next_look = 0.0
        self._tasks: tuple[Observation, TaskTable] | None = None
        self._figures = Figures(path)
        self._results: OrderedDict[Key, tuple[object, ResultSeen]] = OrderedDict()
        self._views: OrderedDict[tuple[Key, str], Future[LayoutView]] = OrderedDict()
        self._work = ThreadPoolExecutor(1, "wake losses")
        self._shapes: dict[int, FarmShape] = {}
        self._campaign_text = ""

    # --- counted ---

    def close(self) -> None:
        """Nothing more is begun; what is being worked out comes to its end."""
        for pool in (self._eyes, self._work):
            pool.shutdown(wait=False, cancel_futures=True)

    def observation(self) -> Observation:
        """The latest look. Where it is old a new one is taken, which is not waited for if it takes long."""
        with self._lock:
            seen = self._seen
            if self._look is None and (seen is None or time.monotonic() >= self._next_look):
                self._look_began = time.monotonic()
                self._look = self._eyes.submit(self._take_look)
            look, waited = self._look, time.monotonic() - self._look_began
        if seen is None or look is None:
            return cast("Future[Observation]", look).result() if seen is None else seen
        try:
            return look.result(timeout=max(LOOK_S - waited, 0.0))  # once: a page asks for it several times
        except TimeoutError:
            return seen

    def _take_look(self) -> Observation:
        began = time.monotonic()
        try:
            file = self._lone_file()
            if self._seen is not None and file is not None and file == self._file:
                seen = self._seen
            else:
                seen = self._same_campaign(observe(self.path, campaign=self._named))
            took = time.monotonic() - began
            with self._lock:
                self._file = file
                self._seen, self._next_look = seen, time.monotonic() + max(SHORTEST_S, PATIENCE * took)
            return seen
        finally:
            with self._lock:
                self._look = None

    def _lone_file(self) -> object:
        """Which file it is, to be looked at only when it is another: without an index it is read as a whole."""
        if run_of(self.path) is not None or not self.path.is_file():
            return None
        return identity(self.path), identity(output_index_path(self.path))

    @property
    def snapshot(self) -> Snapshot:
        return self.observation().snapshot

    @property
    def campaign(self) -> Campaign | None:
        return self.observation().campaign

    def tasks(self) -> TaskTable:
        """Every task, of the latest look."""
        seen = self.observation()
        with self._computing:
            if self._tasks is None or self._tasks[0] is not seen:
                self._figures.refresh()
                self._tasks = seen, TaskTable(seen, self._figures)
            return self._tasks[1]

    def warm_up(self) -> None:
        """Make the table of tasks before anybody asks for it; who asks is told what goes wrong with it."""
        self._work.submit(self.tasks)

    def audit(self) -> list[dict[str, Any]]:
        """All events, the oldest first; none of a lone file."""
        run = run_of(self.path)
        try:
            return [] if run is None else read_lines(run.audit)
        except OSError as error:
            raise StorageError(f"{self.path}: its audit trail cannot be read ({error})") from error

    def _same_campaign(self, seen: Observation) -> Observation:
        """With the campaign that is known already, if it is the same: what it has worked out is kept."""
        old = None if self._seen is None else self._seen.campaign
        if old is not None and seen.campaign is old:
            return seen
        text = "" if seen.campaign is None else seen.campaign.study_text()
        if old is not None and text == self._campaign_text:
            return Observation(seen.snapshot, old, seen.present)
        self._campaign_text = text
        with self._computing, self._lock:
            self._shapes.clear()
            self._views.clear()
            self.__dict__.pop("rose", None)
        return seen

    # --- read ---

    def result(self, key: Key) -> Result:
        """One result, checked; kept as long as the files that may hold it are the same."""
        known = self._known(key)
        return self._keep(find_result(self.path, key)) if known is None else known

    def view(self, key: Key) -> LayoutView:
        """One layout as it is drawn, with the wake loss of each turbine; without it where that takes long, for now.

        The first one takes a second, and half a minute where the wake engine was never used on this machine.
        """
        result, campaign = self.result(key), self.campaign
        which = key, result.digest
        with self._lock:
            if which not in self._views:
                self._views[which] = self._work.submit(layout_view, campaign, result)
                if len(self._views) > VIEWS_KEPT:
                    self._views.popitem(last=False)[1].cancel()
            view = self._views[which]
        try:
            return view.result(timeout=WAIT_S)
        except TimeoutError:
            words = "the wake losses are being worked out"
            return replace(layout_view(campaign, result, with_losses=False), remark=words, is_pending=True)

    def shapes(self) -> Mapping[int, FarmShape]:
        """All areas; none where the campaign is not known."""
        campaign = self.campaign
        with self._computing:
            for farm in campaign.farms if campaign is not None else ():
                if campaign is not None and farm not in self._shapes:
                    self._shapes[farm] = farm_shape(campaign, farm)
            return dict(self._shapes)

    def best_results(self, farms: Collection[int], type_idx: int | None = None) -> dict[int, Result]:
        """By farm, of these: its best layout, of one turbine type or of all. Damaged ones are left out."""
        best: dict[int, tuple[float, Key]] = {}
        chosen = frozenset(farms)
        for cell in self.snapshot.cells:
            is_wanted = cell.farm_idx in chosen and type_idx in (None, cell.type_idx)
            key = key_of(cell.best_key or "") if is_wanted else None
            if key is not None and cell.best_aep is not None:
                best[cell.farm_idx] = max(best.get(cell.farm_idx, (0.0, key)), (cell.best_aep, key))
        known = {key: self._known(key) for _, key in best.values()}
        found = find_results(self.path, [key for key, result in known.items() if result is None])
        known |= {key: self._keep(seen) for key, seen in found.items()}
        return {farm: result for farm, (_, key) in best.items() if (result := known[key]) is not None}

    @cached_property
    def rose(self) -> WindRose | None:
        """Of the campaign's site."""
        campaign = self.campaign
        return None if campaign is None else wind_rose(campaign.site)

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
