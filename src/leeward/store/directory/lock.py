"""The lock of a run directory, which allows one coordinator at a time.

The lock is a file. A hard link creates it, so that it is never incomplete. As a heartbeat, its owner increments a
counter in it every `INTERVAL_S`. A successor replaces the file by a rename. If the old owner wakes up then, it
increments the counter of the replaced file, which has no name, and reads in the new file that it lost the lock.

Only the process that holds the claim on the token of a lock may replace or remove it. The claim is a file of the same
kind beside the lock, so the claim of a dead process can be taken over too. This needs atomic renames and links (or
exclusive creation), but no file locks, which many cluster file systems lack. On NFS the
client repeats a request whose reply was lost. The repeated request may fail although the first one succeeded; the
token in the file shows whether it did.
"""

import contextlib
import errno
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from leeward.errors import HeldError, StorageError
from leeward.events import Emit, ignore
from leeward.files import (
    NO_LINKS,
    TEMPORARY,
    NotAFileError,
    open_regular,
    read_regular,
    refresh,
    rename,
    storage_errors,
    sync,
    sync_folder,
    write_all,
)
from leeward.store.directory.owner import Owner
from leeward.wording import json_text

INTERVAL_S = 2.0
INTERVALS = 10  # a lock whose counter stops for this many intervals is stale
LARGEST = 1 << 16  # bytes of a lock file
STALE_TRIES = 3
_abandoned: set[str] = set()  # tokens of locks that this process released, but whose file it could not remove
_COUNTER = "counter {:020d}\n"


def read_owner(path: Path) -> tuple[Owner | None, int]:
    """Return the owner of the lock (None if it is free) and the counter. An unreadable lock has an unknown owner."""
    try:
        first, _, second = _content(path).decode(errors="replace").partition("\n")
    except FileNotFoundError:
        return None, 0
    except NotAFileError as error:
        return Owner.unknown(error.strerror or str(error), ""), 0
    try:
        return Owner(**json.loads(first)), int(second.split()[1])
    except (ValueError, TypeError, IndexError, RecursionError):
        return Owner.unknown("its lock cannot be read", first[:64]), 0


def _content(path: Path) -> bytes:
    """Return the content of a lock file. Open it again if it was just replaced on an NFS server."""
    tries = STALE_TRIES
    while True:
        try:
            refresh(path.parent)  # otherwise NFS may return a cached lock that another machine has replaced
            return read_regular(path, LARGEST)
        except OSError as error:
            tries -= 1
            if error.errno != errno.ESTALE or tries == 0:
                raise


class Lock:
    """A lock that this process holds until `release`, or until another process takes it over."""

    def __init__(self, path: Path, owner: Owner, handle: int) -> None:
        self.path = path
        self.owner = owner
        self._handle = handle
        self._offset = len(_first_line(owner))
        self._ended = threading.Event()
        self._counter = threading.Thread(target=self._count, name="lock", daemon=True)
        self._counter.start()

    @classmethod
    def take(cls, path: Path, *, take_over: bool = False, emit: Emit = ignore) -> "Lock":
        """Take the lock, or raise a HeldError that names the owner.

        take_over: also take a stale lock whose owner may be alive (on another host, or suspended).
        """
        owner = Owner.myself()
        try:
            while True:
                _acquire(path, owner, take_over, emit)
                handle = open_regular(path, os.O_RDWR)
                if os.pread(handle, LARGEST, 0).startswith(_first_line(owner)):
                    return cls(path, owner, handle)
                os.close(handle)  # taken over before it was opened
        except OSError as error:
            _abandoned.add(owner.token)  # in case the lock was already created
            raise StorageError(f"{path}: cannot be written ({error})") from error

    def check(self) -> None:
        """Raise HeldError if another process has taken the lock over."""
        with storage_errors(self.path, "cannot be read"):
            holder, _ = read_owner(self.path)
            if holder is None:
                self.path.parent.stat()
        if holder is None or holder.token != self.owner.token:
            gone = "the lock is gone: it was removed, or taken over by a process that has ended"
            why = f"taken over by {holder}" if holder else gone
            raise HeldError(f"{self.path.parent}: {why}; this run stops here and leaves the stored results as they are")

    def release(self) -> None:
        """Release the lock. Do nothing if another process took it over."""
        self._ended.set()
        self._counter.join()
        os.close(self._handle)  # close it first: NFS renames an open file instead of removing it
        try:
            with _claim(self.path, self.owner.token, self.owner):
                _remove(self.path, self.owner)
        except HeldError:
            return  # another process is taking it over
        except OSError:  # disk full: remove it without a claim, because a race with a successor is rare
            try:
                _remove(self.path, self.owner)
            except OSError:
                _abandoned.add(self.owner.token)  # the file stays; others see that this process has ended

    def _count(self) -> None:
        counter = 0
        while not self._ended.wait(INTERVAL_S):
            counter += 1
            # on a full or lost disk others see a stale lock, and the run itself reports the error
            with contextlib.suppress(OSError):
                os.pwrite(self._handle, _COUNTER.format(counter).encode(), self._offset)
                sync(self._handle)


def _first_line(owner: Owner) -> bytes:
    return (json_text(asdict(owner)) + "\n").encode()


def _is_held_by(path: Path, token: str) -> bool:
    holder, _ = read_owner(path)
    return holder is not None and holder.token == token


def _acquire(path: Path, owner: Owner, take_over: bool = False, emit: Emit = ignore) -> None:
    """Put a lock (or a claim) of this owner at `path`. Raise HeldError if another process has it."""
    while not _create(path, owner):
        holder, counter = read_owner(path)
        if holder is None:
            continue
        if not (holder.is_gone or holder.token in _abandoned):
            _refuse_or_wait(path, holder, counter, take_over, emit)
        with _claim(path, holder.token, owner, take_over, emit):
            if _is_held_by(path, holder.token):
                _put(path, owner, rename)
                return


@contextlib.contextmanager
def _claim(path: Path, token: str, owner: Owner, take_over: bool = False, emit: Emit = ignore) -> Iterator[None]:
    """Hold the exclusive right to replace or remove the lock with this token, or raise HeldError."""
    name = hashlib.sha256(token.encode()).hexdigest()[:12]
    claim = path.with_name(f".{path.name}.{name}{TEMPORARY}")
    _acquire(claim, owner, take_over, emit)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # a leftover claim has no effect once the lock has another token
            _remove(claim, owner)


def _create(path: Path, owner: Owner) -> bool:
    """Create the lock if it is free. Return whether it was created."""
    try:
        _put(path, owner, _link)
    except FileExistsError:
        return False
    return True


def _put(path: Path, owner: Owner, name_it: Callable[[Path, Path], None]) -> None:
    """Write a lock to a temporary file, then call `name_it(temporary, path)`. The lock is durable or does not exist."""
    temporary = path.with_name(f".{path.name}.{owner.token}{TEMPORARY}")
    try:
        _write(temporary, _first_line(owner) + _COUNTER.format(0).encode())
        try:
            name_it(temporary, path)
        except OSError:
            if not _is_held_by(path, owner.token):
                raise
        try:
            sync_folder(path.parent)
        except OSError:
            _remove(path, owner)
            raise
    finally:
        with contextlib.suppress(OSError):  # a leftover is harmless
            temporary.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    """Create a file exclusively, durable or not at all."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        write_all(handle, content)
        sync(handle)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def _link(temporary: Path, path: Path) -> None:
    """Give a complete file a second name, which must be free.

    On a file system without links, copy it: for a moment the lock has its name but is incomplete.
    """
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _write(path, temporary.read_bytes())


def _remove(path: Path, owner: Owner) -> None:
    if _is_held_by(path, owner.token):
        path.unlink(missing_ok=True)


def _refuse_or_wait(path: Path, holder: Owner, counter: int, take_over: bool, emit: Emit) -> None:
    """Wait until the lock is stale. Raise HeldError if its heartbeat advances, or without `take_over`."""
    if not take_over:
        raise HeldError(
            f"{path.parent}: held by {holder}; wait until it ends, stop it, or choose another output with -o. If it is "
            "dead or suspended and cannot be ended from here, use --take-over"
        )
    emit("waiting", message=f"watching the heartbeat of {holder} for {INTERVALS * INTERVAL_S:g} s before taking over")
    for _ in range(INTERVALS):
        time.sleep(INTERVAL_S)
        now, newer = read_owner(path)
        if now is None or now.token != holder.token:
            return
        if newer != counter:
            raise HeldError(f"{path.parent}: held by {holder}, which is alive: its heartbeat advances; stop it first")
