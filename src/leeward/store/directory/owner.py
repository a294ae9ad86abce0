"""The identity of a process, unique among all machines that share a folder."""

import hashlib
import os
import secrets
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from leeward.store.directory.audit import utc_now


@dataclass(frozen=True)
class Owner:
    """A process, identified uniquely among all machines that share the directory."""

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
            since=utc_now(),
        )

    @property
    def tag(self) -> str:
        """A text that identifies this process in file names: machine, boot, process id, start time."""
        machine = _short(self.host, self.machine_id, self.pid_namespace)
        return f"{machine}-{_short(self.boot_id)}-{self.pid}-{_short(self.process_start)}"

    @classmethod
    def unknown(cls, reason: str, token: str) -> "Owner":
        return cls(reason, "", "", "", 0, "", token, "")

    @property
    def is_gone(self) -> bool:
        """True if this process has certainly ended; False if it runs or cannot be checked from here."""
        if self.host != socket.gethostname() or self.machine_id != _text("/etc/machine-id"):
            return False
        if self.boot_id != _text("/proc/sys/kernel/random/boot_id"):
            return bool(self.machine_id)  # this machine has been rebooted since then
        if self.pid_namespace != _pid_namespace():
            return False
        return process_start(self.pid) != self.process_start

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}" if self.pid else f"unknown ({self.host})"


def is_tag_gone(tag: str) -> bool | None:
    """Return whether the process of a tag has ended; None if it cannot be checked from here."""
    me = Owner.myself()
    machine, boot, pid, start = tag.split("-")
    my_machine, my_boot, _, _ = me.tag.split("-")
    if machine != my_machine or not me.machine_id:
        return None
    if boot != my_boot:
        return True  # this machine has been rebooted since then
    return _short(process_start(int(pid)) or "") != start


def _short(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:8]


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
    """Return the start time of a local process, in the format of the system; None if it is not running."""
    if Path("/proc/self/stat").exists():  # Linux
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else fields[19]  # Z, X: ended, but not yet reaped by its parent
    shown = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout.strip() or None
