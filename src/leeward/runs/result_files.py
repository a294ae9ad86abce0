"""Result files of a run: bad ones go to quarantine, and many small ones into packs."""

import os
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from leeward.files import is_there, replace_file, storage_errors
from leeward.runs.context import RunContext
from leeward.runs.resume import Stored
from leeward.store import (
    PACK_SIZE,
    BadFile,
    BadPack,
    BadShard,
    FoundResult,
    Key,
    Result,
    append_line,
    encode_line,
    finish_packing,
    key_of_shard,
    pack,
    quarantine,
    read_shards,
    store_result,
    unpack,
)


class ResultFiles:
    """Result files of a run directory. Many are packed, because clusters limit the number of files."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._paths = context.paths
        self._disk = context.disk
        self._record = context.audit.record
        self._most = context.work.execution.loose_results
        self._loose: deque[Key] = deque()
        self._batch: list[Key] = []
        self._place = context.paths.packs

    def add(self, keys: Iterable[Key]) -> None:
        """Add results that were just stored or found."""
        self._loose.extend(keys)

    @property
    def is_due(self) -> bool:
        """Return whether there are enough files to pack some."""
        return len(self._loose) > self._most

    def pack(self) -> None:
        """Put the oldest results into a pack.

        After a StorageError the same call resumes the same pack. An invalid shard stays where it is: the merge finds it
        and has its task recomputed.
        """
        began = time.monotonic()
        if not self._batch:
            with storage_errors(self._paths.packs, "cannot be listed"):
                self._place = self._paths.new_pack()
            oldest = (self._loose.popleft() for _ in range(min(PACK_SIZE, len(self._loose))))
            self._batch = list(dict.fromkeys(oldest))
        packed = pack(self._paths, self._batch, self._place, self._context.attributes(), emit=self._record)
        self._batch = []
        facts = {"results": packed.count, "bad": len(packed.bad), "kept": len(packed.kept)}
        self._context.emit("packed", file=str(packed.path), **facts, seconds=round(time.monotonic() - began, 2))

    def repair(self, stored: Stored) -> bool:
        """Move bad files to quarantine and finish interrupted packing; return whether there were bad files.

        Valid results of bad packs are kept and added to `stored`.
        """
        for bad in stored.bad:
            for found in self.move_to_quarantine(bad):
                if found.key is not None and found.key not in stored.results:
                    stored.add(found.key, found)
        moved = {bad.path for bad in stored.bad}
        doubled = [one for one in stored.doubled if one.pack not in moved]
        kept = self._disk.retry(lambda: finish_packing(self._paths, doubled, self._record))
        self.add(stored.loose)
        self.add(key_of_shard(removal.path) for removal in kept)
        return bool(moved)

    def store(self, result: Result) -> None:
        """Store a result from elsewhere; pack some if there are too many files."""
        self._disk.retry(lambda: store_result(self._paths, result))
        line = encode_line(result.index_line())
        self._disk.retry(lambda: self.append_index(line))
        self.add([result.key])
        if self.is_due:
            self._disk.retry(self.pack)

    def move_to_quarantine(self, bad: BadFile) -> list[FoundResult]:
        """Move a file to quarantine; return the valid results of a bad pack, which are now in files of their own."""
        rescued: list[FoundResult] = []
        if isinstance(bad, BadPack) and os.path.lexists(bad.path):
            rescued = self._disk.retry(lambda: unpack(self._paths, bad, self._record))
            self.add(found.key for found in rescued if found.key is not None)
        where = self._disk.retry(lambda: self._moved(bad))
        if where is not None:
            self._context.report.quarantined += 1
            facts = {"verdict": str(bad.verdict), "reason": bad.reason, "where": str(where), "rescued": len(rescued)}
            self._context.emit("quarantined", file=str(bad.path), **facts)
        return rescued

    def _moved(self, bad: BadFile) -> Path | None:
        """Return the new place of a bad file; None if an earlier attempt has moved it."""
        if not os.path.lexists(bad.path):
            return None
        return quarantine(self._paths, bad.path, bad.verdict, bad.reason, self._record)

    def find(self, key: Key) -> dict[str, Any] | None:
        """Return the index line of a result that a dead worker may have stored; move a bad one to quarantine."""
        path = self._paths.shard(key)
        if not is_there(path):
            return None
        (found,) = self._disk.retry(lambda: list(read_shards([path])))
        if not isinstance(found, BadShard):
            return found.index_line()
        self.move_to_quarantine(found)
        return None

    def append_index(self, lines: bytes) -> None:
        """Append lines to the index. After a StorageError they can be appended again: duplicates do no harm."""
        with storage_errors(self._paths.index, "cannot be written"):
            append_line(self._paths.index, lines.decode())

    def replace_index(self, lines: bytes) -> None:
        """Rewrite the index from verified results."""
        with storage_errors(self._paths.index, "cannot be written"):
            replace_file(self._paths.index, lines, durable=False)
