"""Warnings about the file system of a run directory."""

import os
import re
from pathlib import Path
from typing import NamedTuple

MOUNTS = Path("/proc/self/mountinfo")
IN_MEMORY = ("tmpfs", "ramfs")
# Windows shares, and folders of the host of a virtual machine
SHARES = ("cifs", "smb3", "9p", "vboxsf", "drvfs", "prl_fs")


class Mount(NamedTuple):
    """A mounted file system. kind: "ext4", "nfs4", ...; options: of the mount and of the file system."""

    point: str
    kind: str
    options: frozenset[str]


def mount_of(path: Path) -> Mount | None:
    """Return the mount of a path; None if the system has no list of mounts (macOS)."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return None
    place = os.path.realpath(path).rstrip("/") + "/"
    found = [mount for mount in map(_parsed, lines) if place.startswith(mount.point.rstrip("/") + "/")]
    # the last mount at a point hides the others
    return max(reversed(found), key=lambda mount: len(mount.point), default=None)


def _parsed(line: str) -> Mount:
    """Parse a line: ID, parent, device, root, point, options, tags, "-", kind, source, options; see proc(5)."""
    before, _, after = line.partition(" - ")
    head, tail = before.split(" "), after.split(" ")
    point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), head[4])
    return Mount(point, tail[0], frozenset([*head[5].split(","), *tail[-1].split(",")]))


def remark(path: Path) -> str:
    """Return a warning about the file system of a run directory, in one line; "" if there is none."""
    mount = mount_of(path)
    if mount is None:
        return ""
    if mount.kind in IN_MEMORY:
        return (
            f"{path} is in memory ({mount.kind}): its results are lost when this machine restarts; "
            "choose a folder on a disk with -o"
        )
    if mount.kind in ("nfs", "nfs4"):
        version = next((option[5:] for option in sorted(mount.options) if option.startswith("vers=")), mount.kind[3:])
        soft = {"soft", "softerr"} & mount.options
        return (
            f"{path} is on NFS {version}".rstrip()
            + ": another node may see new results up to a minute late"
            + (
                f", and a slow server causes I/O errors (the mount option is {min(soft)}; hard is safer)"
                if soft
                else ""
            )
        )
    if mount.kind in SHARES or mount.kind.startswith("fuse"):
        return f"{path} is on {mount.kind}: whether results survive a power cut depends on its server"
    return ""
