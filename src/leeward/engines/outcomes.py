"""What an engine tells its coordinator of a task."""

from dataclasses import dataclass
from typing import Any

from leeward.errors import LeewardError
from leeward.store import Key, Result


class EngineLostError(LeewardError):
    """The machines that compute are gone, or never came; what was stored is stored."""


@dataclass(frozen=True)
class Began:
    """A worker has begun. fingerprint: if the attempt is still to be recorded; a worker that can, has done so."""

    key: Key
    worker: str
    fingerprint: str | None = None


@dataclass(frozen=True)
class Done:
    """The result is on the disk; line: what the index says of it."""

    key: Key
    line: dict[str, Any]
    worker: str


@dataclass(frozen=True)
class Computed:
    """The result is here, and not on the disk yet, which its worker cannot reach."""

    key: Key
    result: Result
    line: dict[str, Any]
    worker: str


@dataclass(frozen=True)
class Failed:
    """There is no result. kind: "exception" is the task's own word; "died" and "timed-out" are its worker's fate;
    "cut-off" is its worker's end that was known before; and with "storing" the disk did not answer.
    """

    key: Key
    kind: str
    message: str
    traceback: str
    seconds: float
    worker: str


@dataclass(frozen=True)
class Stuck:
    """The disk takes nothing; the worker keeps what it has, and tries again by itself."""

    key: Key
    message: str


@dataclass(frozen=True)
class Unstuck:
    """It does again."""

    key: Key


@dataclass(frozen=True)
class Returned:
    """It is to be handed out again: nobody has said that it was begun.

    mark: if its worker was lost. An attempt on the disk by a worker that has it in its name was made in this run.
    """

    key: Key
    mark: str = ""


Outcome = Began | Done | Computed | Failed | Stuck | Unstuck | Returned
