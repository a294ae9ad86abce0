"""One coordinator for a run directory: who it is, whether it lives, and how another takes its place.

The lock is a file that appears whole (by a link). Its owner counts up in it, in place, every `INTERVAL_S`. A successor
replaces the file by a rename: from then on the old owner, if it should wake up, counts in a file that has no name any
more, and learns from the token in the new one that it is not the owner.
"""

import contextlib
import json
import os
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from leeward.errors import HeldError, StorageError
from leeward.files import NO_LINKS, TEMPORARY, sync, sync_folder, write_all
from leeward.wording import json_text

if os.name == "posix":
    import fcntl

INTERVAL_S = 2.0
INTERVALS = 10  # an owner whose counter stands still for so many may be taken over
_given_back: set[str] = set()  # tokens of locks of this process whose file could not be removed
_COUNTER = "counter {:020d}\n"


@dataclass(frozen=True)
class Owner:
    """A process, told apart from all others on all machines that may see the directory."""

    host: str
    machine_id: str
    boot_id: str
    pid_namespace: str
    pid: int
    process_start: str
    token: str
    since: str

    @classmethod
    def myself(cls) -> "Owner":
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            machine_id=_text("/etc/machine-id"),
            boot_id=_text("/proc/sys/kernel/random/boot_id"),
            pid_namespace=_pid_namespace(),
            pid=pid,
            process_start=process_start(pid) or "",
            token=secrets.token_hex(8),
            since=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )

    @property
    def is_gone(self) -> bool:
        """Whether this very process has certainly ended. False where it cannot be known from here."""
        if self.host != socket.gethostname() or self.machine_id != _text("/etc/machine-id"):
            return False
        if self.boot_id != _text("/proc/sys/kernel/random/boot_id"):
            return bool(self.machine_id)  # this machine was started anew since
        if self.pid_namespace != _pid_namespace():
            return False
        return process_start(self.pid) != self.process_start

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except FileNotFoundError:  # not Linux
        return ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except FileNotFoundError:
        return ""


def process_start(pid: int) -> str | None:
    """When a process of this machine was started, in the machine's own words; None if there is none that runs."""
    if Path("/proc/self/stat").exists():  # Linux
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else fields[19]  # ended, and only its parent has not heard of it yet
    shown = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout.strip() or None


def read_owner(path: Path) -> tuple[Owner | None, int]:
    """Who holds the lock, and the counter; None where nobody does. An unreadable lock is held by an unknown owner."""
    try:
        first, _, second = path.read_text(encoding="utf-8", errors="replace").partition("\n")
    except FileNotFoundError:
        return None, 0
    try:
        return Owner(**json.loads(first)), int(second.split()[1])
    except (ValueError, TypeError, IndexError, RecursionError):
        return Owner("an unknown host", "", "", "", 0, "", first[:64], "an unknown time"), 0


class Lock:
    """Held by this process until `release`, or until somebody takes it over."""

    def __init__(self, path: Path, owner: Owner, handle: int) -> None:
        self.path = path
        self.owner = owner
        self._handle = handle
        self._offset = len(_first_line(owner))
        self._ended = threading.Event()
        self._counter = threading.Thread(target=self._count, name="lock", daemon=True)
        self._counter.start()

    @classmethod
    def take(cls, path: Path, *, take_over: bool = False, tell: Callable[[str], None] | None = None) -> "Lock":
        """Become the owner, or raise a HeldError that says who is.

        take_over: also from an owner that cannot be seen to be dead (on another host, or stopped), if its counter
        stands still for long enough.
        """
        owner = Owner.myself()
        while True:
            try:
                handle = _create(path, owner)
            except FileExistsError:
                handle = None
            except OSError as error:
                raise StorageError(f"{path}: cannot be written ({error})") from error
            if handle is not None:
                return cls(path, owner, handle)
            try:
                holder, counter = read_owner(path)
            except OSError as error:
                raise HeldError(
                    f"{path}: is there, and cannot be read ({error}); expected a file, or nothing"
                ) from error
            if holder is None:
                continue
            if not (holder.is_gone or holder.token in _given_back):
                _refuse_or_wait(path, holder, counter, take_over, tell)
            handle = _replace(path, owner, holder)
            if handle is not None:
                return cls(path, owner, handle)

    @property
    def is_mine(self) -> bool:
        holder, _ = read_owner(self.path)
        return holder is not None and holder.token == self.owner.token

    def check(self) -> None:
        """Raise HeldError if somebody else has taken the directory over."""
        try:
            holder, _ = read_owner(self.path)
            if holder is None:
                self.path.parent.stat()
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be read ({error})") from error
        if holder is None or holder.token != self.owner.token:
            by = (
                f"taken over by {holder}"
                if holder
                else "its lock is gone: removed, or taken over by somebody who ended"
            )
            raise HeldError(f"{self.path.parent}: {by}; this run stops here, and leaves what is stored as it is")

    def release(self) -> None:
        """Let others have it; nothing happens where it was taken over."""
        self._ended.set()
        self._counter.join()
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX)  # nobody takes it over just now
            if self.is_mine:
                self.path.unlink()
        except OSError:
            _given_back.add(self.owner.token)  # the file stays: this process knows better, and others see it ended
        finally:
            os.close(self._handle)

    def _count(self) -> None:
        counter = 0
        while not self._ended.wait(INTERVAL_S):
            counter += 1
            # a full or lost disk: others see the counter stand still, and the run itself says what is wrong
            with contextlib.suppress(OSError):
                os.pwrite(self._handle, _COUNTER.format(counter).encode(), self._offset)
                sync(self._handle)


def _first_line(owner: Owner) -> bytes:
    return (json_text(asdict(owner)) + "\n").encode()


def _fill(handle: int, owner: Owner) -> None:
    write_all(handle, _first_line(owner) + _COUNTER.format(0).encode())
    sync(handle)


@contextlib.contextmanager
def _written(path: Path, owner: Owner) -> Iterator[tuple[Path, int]]:
    """A file beside the lock with all that belongs in it, and a handle to it, which is closed if this fails."""
    temporary = path.with_name(f".{path.name}.{owner.token}{TEMPORARY}")
    handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        _fill(handle, owner)
        yield temporary, handle
    except BaseException:
        os.close(handle)
        raise
    finally:
        with contextlib.suppress(OSError):  # it is in nobody's way
            temporary.unlink()


def _create(path: Path, owner: Owner) -> int:
    """The lock of a directory that has none; FileExistsError if it has one."""
    with _written(path, owner) as (temporary, handle):
        try:
            os.link(temporary, path)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            return _create_in_place(path, owner, handle)
        _settle(path, owner)
        return handle


def _create_in_place(path: Path, owner: Owner, handle: int) -> int:
    """The same where there are no links: for a moment the lock has its name and is not whole yet."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))
    try:
        place = os.open(path, os.O_RDWR)
        os.dup2(place, handle, inheritable=False)
        os.close(place)
        _fill(handle, owner)
        sync_folder(path.parent)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return handle


def _settle(path: Path, owner: Owner) -> None:
    """Make the name of the lock durable, or give it up."""
    try:
        sync_folder(path.parent)
    except OSError:
        holder, _ = read_owner(path)
        if holder is not None and holder.token == owner.token:
            path.unlink(missing_ok=True)
        raise


def _replace(path: Path, owner: Owner, holder: Owner) -> int | None:
    """Take the lock from its holder; None if somebody else was faster."""
    try:
        with path.open("rb") as old:
            fcntl.flock(old, fcntl.LOCK_EX)  # one at a time
            now, _ = read_owner(path)
            if now is None or now.token != holder.token:
                return None
            with _written(path, owner) as (temporary, handle):
                temporary.replace(path)
                _settle(path, owner)
                return handle
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path}: cannot be taken over ({error})") from error


def _refuse_or_wait(
    path: Path, holder: Owner, counter: int, take_over: bool, tell: Callable[[str], None] | None
) -> None:
    """Return when the holder may be taken over."""
    if not take_over:
        raise HeldError(
            f"{path.parent}: held by {holder}; wait until it ends, stop it, or choose another output with -o. If it is "
            "dead or stopped and cannot be ended from here: --take-over"
        )
    if tell is not None:
        tell(f"watching {holder} for {INTERVALS * INTERVAL_S:g} s before taking over")
    for _ in range(INTERVALS):
        time.sleep(INTERVAL_S)
        now, newer = read_owner(path)
        if now is None or now.token != holder.token:
            return
        if newer != counter:
            raise HeldError(f"{path.parent}: held by {holder}, and it is alive: its counter moves; not taken over")
