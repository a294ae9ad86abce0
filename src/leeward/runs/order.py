"""Order among the files of a run: bad ones out of the way, what they still hold kept, and not too many of them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leeward.events import Emit
from leeward.runs.packing import Packing
from leeward.runs.resume import Stored
from leeward.store import BadFile, BadPack, FoundResult, RunPaths, finish_packing, key_of_shard, quarantine, unpack

Patiently = Callable[[Callable[[], Any]], Any]  # calls what writes, and waits for a disk that does not take it


class Order:
    """quarantined: how many files were put aside."""

    def __init__(self, paths: RunPaths, packing: Packing, patiently: Patiently, record: Emit, tell: Emit) -> None:
        self._paths = paths
        self._packing = packing
        self._patiently = patiently
        self._record = record
        self._tell = tell
        self.quarantined = 0

    def put_in_order(self, stored: Stored) -> bool:
        """What was found when the run began: bad files go, and packing that was cut off is finished.

        What bad packs still hold is kept, and added to what is stored; whether there were bad files at all.
        """
        for bad in stored.bad:
            for found in self.put_aside(bad):
                if found.key is not None and found.key not in stored.results:
                    stored.add(found.key, found)
        moved = {bad.path for bad in stored.bad}
        doubled = [one for one in stored.doubled if one.pack not in moved]
        kept = self._patiently(lambda: finish_packing(self._paths, doubled, self._record))
        self._packing.add(stored.loose)
        self._packing.add(key_of_shard(removal.path) for removal in kept)
        return bool(moved)

    def store(self, action: Callable[[], Path]) -> None:
        """A result that comes from elsewhere; with room made for its file where there are too many."""
        path = self._patiently(action)
        self._packing.add([key_of_shard(path)])
        if self._packing.is_due:
            self._patiently(self._packing.pack)

    def put_aside(self, bad: BadFile) -> list[FoundResult]:
        """Move a file to quarantine; what a pack still holds is in files of its own before, and told."""
        rescued: list[FoundResult] = []
        if isinstance(bad, BadPack) and os.path.lexists(bad.path):
            rescued = self._patiently(lambda: unpack(self._paths, bad, self._record))
            self._packing.add(found.key for found in rescued if found.key is not None)
        where = self._patiently(lambda: self._moved(bad))
        if where is not None:
            self.quarantined += 1
            facts = {"verdict": str(bad.verdict), "reason": bad.reason, "where": str(where), "rescued": len(rescued)}
            self._tell("quarantined", file=str(bad.path), **facts)
        return rescued

    def _moved(self, bad: BadFile) -> Path | None:
        """Where a bad file is now; None where somebody was faster, or an earlier try got as far as moving it."""
        if not os.path.lexists(bad.path):
            return None
        return quarantine(self._paths, bad.path, bad.verdict, bad.reason, self._record)
