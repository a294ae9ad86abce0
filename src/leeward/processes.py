"""Processes: how many this machine has cores for, and children that never outlive their parent."""

import ctypes
import os
import signal
import sys
from pathlib import Path

_SET_PARENT_DEATH_SIGNAL = 1  # of prctl


def end_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that ends and whatever this one is doing.

    parent: its process id, as it gave it. Elsewhere than on Linux a child sees the end of its input instead.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it was gone before the signal was asked for
            os._exit(1)


def usable_cores() -> int:
    """The least of: the cores there are, those this process is bound to, its container's share, its SLURM job's."""
    limits = [float(os.cpu_count() or 1)]
    if hasattr(os, "sched_getaffinity"):
        limits.append(len(os.sched_getaffinity(0)))
    limits += _container_limits()
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        value = os.environ.get(name, "")
        if value.isdigit():
            limits.append(float(value))
            break
    return max(1, int(min(limits)))


def _container_limits(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> list[float]:
    """Processor time that control groups allow, in cores: of this process's group and of all above it."""
    limits = []
    for group in _groups(own):
        for folder in (root / group, *(root / group).parents):
            if not folder.is_relative_to(root):
                break
            limits += _quota(folder)
    return limits


def _groups(own: Path) -> list[str]:
    """The places of this process in the trees of control groups, relative to their mounts."""
    try:
        lines = own.read_text().splitlines()
    except OSError:  # not Linux
        return []
    places = []
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if controllers == "":
            places.append(place.lstrip("/"))
        elif "cpu" in controllers.split(","):
            places.append(controllers + place)
    return places


def _quota(folder: Path) -> list[float]:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        except OSError:  # no limit set here
            return []
    return [] if quota in ("max", "-1") else [float(quota) / float(period)]
