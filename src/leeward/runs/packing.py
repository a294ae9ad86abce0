"""Results in files of their own, and packs of them when there are too many: a cluster counts files."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from leeward.errors import StorageError
from leeward.events import Emit
from leeward.store import PACK_SIZE, Key, RunPaths, Value, pack


class Packing:
    """Knows which results lie in files of their own.

    most: of these; when there are more, it is due. attributes: of a pack, those of a merged file.
    """

    def __init__(
        self,
        paths: RunPaths,
        most: int,
        attributes: Callable[[], Mapping[str, Value]],
        record: Emit,
        tell: Emit,
    ) -> None:
        self._paths = paths
        self._most = most
        self._attributes = attributes
        self._record = record
        self._tell = tell
        self._loose: deque[Key] = deque()
        self._batch: list[Key] = []
        self._place = paths.packs

    def add(self, keys: Iterable[Key]) -> None:
        """Of results that were just stored, or found."""
        self._loose.extend(keys)

    @property
    def is_due(self) -> bool:
        return len(self._loose) > self._most

    def pack(self) -> None:
        """The oldest go into a pack, as many as it takes.

        After a StorageError the same call goes on with the same pack. A shard that is not valid stays where it is: the
        merge finds it, and has its task computed again.
        """
        began = time.monotonic()
        if not self._batch:
            try:
                self._place = self._paths.new_pack()
            except OSError as error:
                raise StorageError(f"{self._paths.packs}: cannot be listed ({error})") from error
            oldest = (self._loose.popleft() for _ in range(min(PACK_SIZE, len(self._loose))))
            self._batch = list(dict.fromkeys(oldest))
        packed = pack(self._paths, self._batch, self._place, self._attributes(), emit=self._record)
        self._batch = []
        facts = {"results": packed.count, "bad": len(packed.bad), "kept": len(packed.kept)}
        self._tell("packed", file=str(packed.path), **facts, seconds=round(time.monotonic() - began, 2))
