"""Count the usable cores, and end child processes together with their parent."""

import ctypes
import os
import signal
import sys
from pathlib import Path

_SET_PARENT_DEATH_SIGNAL = 1  # the option PR_SET_PDEATHSIG of prctl


def exit_with_parent(parent: int) -> None:
    """Have the kernel end this process when its parent ends.

    parent: process id of the parent. Only on Linux; elsewhere a child sees the end of its input instead.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before the call
            os._exit(1)


def usable_cores() -> int:
    """Return the number of cores that the machine, the CPU affinity, the container and the SLURM job allow."""
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
    """Return the CPU limits, in cores, of this process's control group and of all above it."""
    limits = []
    for group in _groups(own):
        for folder in (root / group, *(root / group).parents):
            if not folder.is_relative_to(root):
                break
            limits += _quota(folder)
    return limits


def _groups(own: Path) -> list[str]:
    """Return the paths of this process's control groups, relative to their mounts."""
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
