"""Files, folders and names on a disk: what was synced of each, what came after, and what may become of it."""

import hashlib
import itertools
import random
from dataclasses import dataclass, field
from functools import cached_property

PAGE = 4096
_FEW = 3  # changes of a file of which all subsets are tried


@dataclass(frozen=True)
class Content:
    """What is in a file, in one state. source: the file, which may have several names."""

    data: bytes
    source: "File"

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class Fate:
    """What became of the changes of a file: those kept, one of which may be torn after so many bytes; and its length,
    where that is not just what was kept.
    """

    kept: frozenset[int] = frozenset()
    torn: int = -1
    torn_after: int = 0
    size: int | None = None


@dataclass(frozen=True)
class Change:
    """Bytes at an offset, or a new length. call: its number."""

    call: int
    offset: int
    data: bytes | None

    def apply(self, image: bytearray, first: int | None = None) -> None:
        if self.data is None:
            _resize(image, self.offset)
            return
        data = self.data[:first]
        if len(image) < self.offset:
            _resize(image, self.offset)
        image[self.offset : self.offset + len(data)] = data


def _resize(image: bytearray, size: int) -> None:
    del image[size:]
    image.extend(bytes(size - len(image)))


@dataclass(eq=False)
class File:
    """durable: what was synced last. live: what everybody sees. changes: since it was synced."""

    durable: bytes = b""
    live: bytearray = field(default_factory=bytearray)
    changes: list[Change] = field(default_factory=list)
    mtime_ns: int | None = None
    _contents: dict[Fate, Content] = field(default_factory=dict)

    def change(self, change: Change) -> None:
        change.apply(self.live)
        pieces = [change]
        if change.data:
            ends = range((change.offset // PAGE + 1) * PAGE, change.offset + len(change.data), PAGE)
            cuts = [0, *(end - change.offset for end in ends), len(change.data)]
            pieces = [Change(change.call, change.offset + a, change.data[a:b]) for a, b in itertools.pairwise(cuts)]
        self.changes += pieces
        self._contents.clear()

    def sync(self) -> None:
        self.durable = bytes(self.live)
        self.changes.clear()
        self._contents.clear()

    def content(self, fate: Fate) -> Content:
        if fate not in self._contents:
            image = bytearray(self.durable)
            for number in sorted(fate.kept):
                self.changes[number].apply(image, fate.torn_after if number == fate.torn else None)
            if fate.size is not None:
                _resize(image, fate.size)
            self._contents[fate] = Content(bytes(image), self)
        return self._contents[fate]

    @property
    def whole(self) -> Fate:
        """Nothing is lost."""
        return Fate(frozenset(range(len(self.changes))))

    def fates(self, rng: random.Random, is_final: bool) -> list[Fate]:
        """What may become of it; less is tried where it has no final name."""
        count = len(self.changes)
        if not count:
            return [Fate()]
        last = self.changes[-1]
        torn = Fate(self.whole.kept, count - 1, len(last.data or b"") // 2)
        fates = [Fate(), self.whole, torn]
        if not is_final:
            return fates
        zeros, cut = Fate(size=len(self.live)), Fate(self.whole.kept, size=len(self.durable))
        one_byte = Fate(self.whole.kept, count - 1, 1)
        fates += [zeros, cut, one_byte]
        if count <= _FEW:
            subsets = [set(some) for length in range(count) for some in itertools.combinations(range(count), length)]
        else:
            subsets = [{number for number in range(count) if rng.random() < 0.5} for _ in range(2 * _FEW)]
            subsets += [set(range(count)) - {rng.randrange(count)} for _ in range(_FEW)]
        for some in subsets:
            fates += [Fate(frozenset(some)), Fate(frozenset(some), size=len(self.live))]
        return list(dict.fromkeys(fates))


@dataclass(eq=False)
class Folder:
    slots: dict[str, "Slot"] = field(default_factory=dict)


@dataclass(eq=False)
class Slot:
    """A name, and all that it has ever stood for. calls: which call gave it each. durable: the one that was synced."""

    path: str
    history: list[File | Folder | None]
    calls: list[int]
    durable: int = 0

    @property
    def latest(self) -> int:
        return len(self.history) - 1

    @property
    def live(self) -> File | Folder | None:
        return self.history[-1]


def in_words(file: File, fate: Fate) -> str:
    missing = [number for number in range(len(file.changes)) if number not in fate.kept]
    parts = []
    if missing:
        calls = sorted({file.changes[number].call for number in missing})
        parts.append(f"{len(missing)} of {len(file.changes)} pages written (calls {calls[0]} to {calls[-1]})")
    if fate.torn >= 0:
        parts.append(f"all but {fate.torn_after} bytes of the last write")
    if fate.size is not None and fate.size != len(file.live):
        parts.append(f"the length {len(file.live)} instead of {fate.size}")
    elif missing and fate.size is not None:
        parts.append("zeros there instead")
    return f"{' and '.join(parts) or 'something'} of"
