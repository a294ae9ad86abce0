"""A disk that keeps what was synced, and of all else whatever it likes: the states that a power cut may leave behind.

What this disk may do. It is all that POSIX allows, and worse than what ext4 or xfs do by default:

- A write that no fsync of its file has followed may be lost, alone or with others, whole, by pages, or after its first
  bytes. The length of the file is a matter of its own: a file may be as long as it should be and full of zeros, or be
  shorter than what was written. A lost cut (O_TRUNC, ftruncate) leaves old bytes among new ones.
- A name (of a new file or folder, a link, a rename, a removal) that no fsync of its folder has followed may be lost,
  alone or with others, in any order. Changes of one name stay in order. A new name may be there before what was written
  to its file: the empty file after a rename. That a file was synced does nothing for its name, and that a folder was
  synced nothing for its own name in the folder above.

What it may not do. What was synced is there. A rename happens as a whole: the old name or the new one, never neither
and never both, and to sync one of its two folders is enough. A folder that is gone was empty.

What is tried of that: every combination of names, and of each file every set of up to three pages, the last write torn
in the middle or after a byte, the old length and the new one; where that comes to too many, the extremes and a sample.

Left out: disks that say they have synced and have not; bits that turn by themselves; a file system whose own journal
is damaged; writes through shared memory (mmap), which the store does not use.
"""

import hashlib
import itertools
import math
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from power_files import Change, Content, Fate, File, Folder, Slot, in_words


@dataclass(frozen=True)
class Call:
    """A system call that changes something, with paths relative to the folder.

    other: the new name. offset: None where the file's own position, or its end, is meant. size: to cut to. handle: its
    number. flags: of an open. is_gone: the path is the last name of a file that has none any more, or another one.
    """

    name: str
    path: str
    other: str = ""
    data: bytes = b""
    offset: int | None = None
    size: int = 0
    handle: int = -1
    flags: frozenset[str] = frozenset()
    is_gone: bool = False

    def __str__(self) -> str:
        what = f", {len(self.data)} bytes" if self.name == "write" else ""
        return f"{self.name} {self.path or 'the folder'}{f' to {self.other}' if self.other else ''}{what}"


@dataclass(frozen=True)
class State:
    """A tree that the disk may hold. at: after how many calls. lost: in words. files: by path."""

    at: int
    label: str
    lost: str
    files: Mapping[str, Content]
    folders: frozenset[str]

    def __str__(self) -> str:
        return f"{self.label}, lost: {self.lost}"

    @cached_property
    def signature(self) -> str:
        text = "\n".join([*(f"{path} {self.files[path].digest}" for path in sorted(self.files)), *sorted(self.folders)])
        return hashlib.sha256(text.encode()).hexdigest()

    def rebuild(self, folder: Path) -> Path:
        """As a real folder; with hard links, and with the times, which tell an index whose it is."""
        folder.mkdir(parents=True)
        for path in sorted(self.folders):
            (folder / path).mkdir()
        first: dict[File, Path] = {}
        for path, content in self.files.items():
            place = folder / path
            if content.source in first:
                os.link(first[content.source], place)
                continue
            place.write_bytes(content.data)
            first[content.source] = place
            if content.source.mtime_ns is not None:
                os.utime(place, ns=(content.source.mtime_ns, content.source.mtime_ns))
        return folder


@dataclass(frozen=True)
class _Choice:
    """label: what kind of loss. entries: which of its values each name has. fates: of the files; others lose all."""

    label: str
    entries: Mapping[Slot, int]
    fates: Mapping[File, Fate]


class Disk:
    """Starts with a folder, all of it synced, and is told call after call."""

    def __init__(self, folder: Path) -> None:
        self.root = Folder()
        self.count = 0  # of calls that have changed something
        self._rules: list[tuple[Slot, int, Slot, int]] = []  # who has come so far has brought the other so far
        self._gone: dict[str, File] = {}  # what had that name when it was taken away
        self._places: dict[tuple[File, int], int] = {}  # where a handle writes next; -1: at the end
        for place in sorted(folder.rglob("*")):
            path = str(place.relative_to(folder))
            node = Folder() if place.is_dir() else _synced(place)
            self._folder_of(path).slots[Path(path).name] = Slot(path, [node], [0])

    # --- what happens to it ------------------------------------------------------------------------------------------

    def apply(self, call: Call) -> bool:
        """Whether anything has changed by it that a power cut might undo, or can no longer undo."""
        self.count += 1
        if getattr(self, f"_{call.name}")(call) is not False:
            return True
        self.count -= 1
        return False

    def _open(self, call: Call) -> bool:
        slot = self._slot(call.path)
        is_new = slot.live is None
        if is_new:
            self._set(slot, File())
        file = slot.live
        if not isinstance(file, File):
            return False
        self._places[file, call.handle] = -1 if "O_APPEND" in call.flags else 0
        if "O_TRUNC" in call.flags and file.live:
            file.change(Change(self.count, 0, None))
            return True
        return is_new

    def _write(self, call: Call) -> bool:
        file = self._file(call)
        offset = call.offset
        if offset is None:
            place = self._places.get((file, call.handle), 0)
            offset = len(file.live) if place < 0 else place
            if place >= 0:
                self._places[file, call.handle] = offset + len(call.data)
        file.change(Change(self.count, offset, call.data))
        return bool(call.data)

    def _truncate(self, call: Call) -> bool:
        file = self._file(call)
        is_other = call.size != len(file.live)
        if is_other:
            file.change(Change(self.count, call.size, None))
        return is_other

    def _sync(self, call: Call) -> None:
        node = self._file(call) if call.is_gone else self._node(call.path)
        if isinstance(node, File):
            node.sync()
        elif isinstance(node, Folder):
            entries = {slot: slot.latest for slot in node.slots.values()}
            for slot, index in self._closed(entries).items():
                slot.durable = max(slot.durable, index)

    def _rename(self, call: Call) -> None:
        source, target = self._slot(call.path), self._slot(call.other)
        node = source.live
        if isinstance(target.live, File):
            self._gone[call.other] = target.live
        self._set(target, node)
        self._set(source, None)
        self._rules.append((source, source.latest, target, target.latest))
        self._rules.append((target, target.latest, source, source.latest))

    def _link(self, call: Call) -> None:
        self._set(self._slot(call.other), self._slot(call.path).live)

    def _unlink(self, call: Call) -> None:
        slot = self._slot(call.path)
        if isinstance(slot.live, File):
            self._gone[call.path] = slot.live
        self._set(slot, None)

    def _mkdir(self, call: Call) -> None:
        self._set(self._slot(call.path), Folder())

    def _rmdir(self, call: Call) -> None:
        slot = self._slot(call.path)
        inside = slot.live.slots.values() if isinstance(slot.live, Folder) else ()
        self._set(slot, None)
        self._rules += [(slot, slot.latest, other, other.latest) for other in inside]

    def _set(self, slot: Slot, node: File | Folder | None) -> None:
        slot.history.append(node)
        slot.calls.append(self.count)

    def _node(self, path: str) -> File | Folder | None:
        return self._slot(path).live if path else self.root

    def _folder_of(self, path: str) -> Folder:
        node: File | Folder | None = self.root
        for name in Path(path).parts[:-1]:
            slot = node.slots.get(name) if isinstance(node, Folder) else None
            node = slot.live if slot else None
        if not isinstance(node, Folder):
            raise KeyError(f"no folder for {path}")
        return node

    def _slot(self, path: str) -> Slot:
        return self._folder_of(path).slots.setdefault(Path(path).name, Slot(path, [None], [0]))

    def _file(self, call: Call) -> File:
        node = self._gone.get(call.path) if call.is_gone else self._node(call.path)
        if not isinstance(node, File):
            raise KeyError(f"no file for {call}")
        return node

    def take_times(self, folder: Path) -> None:
        """Of the files as they are in the end."""
        for path, content in self.live().files.items():
            content.source.mtime_ns = (folder / path).stat().st_mtime_ns

    # --- what it may hold --------------------------------------------------------------------------------------------

    def live(self) -> State:
        """What everybody sees as long as there is power."""
        entries = {slot: slot.latest for slot in self._slots()}
        return self._state(_Choice("nothing lost", entries, {file: file.whole for file in self._files()}))

    def states(self, rng: random.Random, most: int) -> Iterator[State]:
        """Those that are possible now: all, if there are at most so many, else so many with the extremes among them."""
        seen = set()
        for choice in self._choices(rng, most):
            state = self._state(choice)
            if state.signature not in seen:
                seen.add(state.signature)
                yield state

    def _choices(self, rng: random.Random, most: int) -> Iterator[_Choice]:
        slots = [slot for slot in self._slots() if slot.durable < slot.latest]
        final = self._files()
        files = [file for file in final if file.changes]
        fates = {file: file.fates(rng, final[file]) for file in files}
        options: list[list[int]] = [list(range(slot.durable, slot.latest + 1)) for slot in slots]
        options += [list(range(len(fates[file]))) for file in files]

        def chosen(label: str, picked: tuple[int, ...]) -> _Choice:
            entries = dict(zip(slots, picked, strict=False))
            kept = {file: fates[file][number] for file, number in zip(files, picked[len(slots) :], strict=True)}
            return _Choice(label, entries, kept)

        if math.prod(map(len, options)) <= most:
            for number, picked in enumerate(itertools.product(*options)):
                yield chosen(f"case {number}", picked)
            return
        extremes = list(self._extremes(slots, fates))
        yield from extremes[:5]
        yield from rng.sample(extremes[5:], max(0, min(len(extremes), most) - 5))
        for number in range(most - len(extremes)):
            yield chosen(f"random {number}", tuple(map(rng.choice, options)))

    @staticmethod
    def _extremes(slots: list[Slot], fates: dict[File, list[Fate]]) -> Iterator[_Choice]:
        names = {slot: slot.latest for slot in slots}
        data = {file: file.whole for file in fates}
        sizes = {file: Fate(size=len(file.live)) for file in fates}
        yield _Choice("nothing lost", names, data)
        yield _Choice("all lost", {}, {})
        yield _Choice("only names kept", names, {})
        yield _Choice("only names and lengths kept", names, sizes)
        yield _Choice("only data kept", {}, data)
        for slot in slots:
            for index in range(slot.durable, slot.latest):
                yield _Choice("one name lost", {**names, slot: index}, data)
            for index in range(slot.durable + 1, slot.latest + 1):
                yield _Choice("one name kept, no data", {slot: index}, {})
                yield _Choice("one name kept", {slot: index}, data)
        for file, some in fates.items():
            for fate in some:
                yield _Choice("one file damaged", names, {**data, file: fate})
                yield _Choice("one file kept", names, {file: fate})

    def _closed(self, entries: Mapping[Slot, int]) -> dict[Slot, int]:
        """With all that these bring about."""
        closed = dict(entries)
        is_changed = True
        while is_changed:
            is_changed = False
            for slot, index, other, least in self._rules:
                if closed.get(slot, slot.durable) >= index and closed.get(other, other.durable) < least:
                    closed[other] = least
                    is_changed = True
        return closed

    def _state(self, choice: _Choice) -> State:
        entries = self._closed(choice.entries)
        files: dict[str, Content] = {}
        folders: set[str] = set()
        lost: list[str] = []

        def walk(folder: Folder, path: str) -> None:
            for name, slot in folder.slots.items():
                index = entries.get(slot, slot.durable)
                if index < slot.latest:
                    numbers = ", ".join(map(str, slot.calls[index + 1 :]))
                    lost.append(f"the name {path}{name} (as of call {numbers})")
                node = slot.history[index]
                if isinstance(node, Folder):
                    folders.add(f"{path}{name}")
                    walk(node, f"{path}{name}/")
                elif node is not None:
                    fate = choice.fates.get(node, Fate())
                    files[f"{path}{name}"] = node.content(fate)
                    if node.changes and fate != node.whole:
                        lost.append(f"{in_words(node, fate)} {path}{name}")

        walk(self.root, "")
        return State(self.count, choice.label, "; ".join(lost) or "nothing", files, frozenset(folders))

    def _slots(self) -> list[Slot]:
        """All that any state may have a use for."""
        found, folders = [], [self.root]
        for folder in folders:
            for slot in folder.slots.values():
                found.append(slot)
                inside = (node for node in slot.history[slot.durable :] if isinstance(node, Folder))
                folders += [node for node in inside if node not in folders]
        return found

    def _files(self) -> dict[File, bool]:
        """All that any state may have, and whether any name of theirs is a final one."""
        found: dict[File, bool] = {}
        for slot in self._slots():
            for node in slot.history[slot.durable :]:
                if isinstance(node, File):
                    found[node] = found.get(node, False) or not slot.path.endswith(".tmp")
        return found


def _synced(place: Path) -> File:
    content = place.read_bytes()
    return File(content, bytearray(content), mtime_ns=place.stat().st_mtime_ns)
