"""What SLURM's squeue says of jobs."""

import re
from dataclasses import dataclass

_LEFT = re.compile(r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+)\Z")


@dataclass(frozen=True)
class Job:
    """state: PENDING, RUNNING, ... reason: why it waits. ends: on the monotonic clock, if there is a limit."""

    state: str
    reason: str
    ends: float | None


def parse_queue(text: str, now: float) -> dict[str, Job]:
    """Jobs by their numbers, from lines of number, state, reason and time left, between bars."""
    jobs = {}
    for line in text.splitlines():
        number, _, rest = line.partition("|")
        state, _, rest = rest.partition("|")
        reason, _, left = rest.rpartition("|")
        seconds = seconds_left(left.strip())
        is_running = state == "RUNNING" and seconds is not None
        jobs[number.strip()] = Job(state, reason, now + seconds if is_running and seconds is not None else None)
    return jobs


def seconds_left(text: str) -> float | None:
    """Of 1-02:03:04, 2:03:04 or 3:04; None for anything else, such as UNLIMITED."""
    found = _LEFT.match(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
