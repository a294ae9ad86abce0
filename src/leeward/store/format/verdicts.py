"""Verdicts on files and results."""

import enum
from typing import NoReturn

from leeward.errors import LeewardError


class Verdict(enum.StrEnum):
    """A verdict in one word. A reason comes with it."""

    VALID = "valid"
    EMPTY = "empty"  # a file of 0 bytes
    NOT_HDF5 = "not-hdf5"
    TRUNCATED = "truncated"
    UNREADABLE = "unreadable"
    WRONG_STRUCTURE = "wrong-structure"
    BAD_SEAL = "bad-seal"
    IMPLAUSIBLE = "implausible"
    CRASHED_READER = "crashed-reader"
    TIMED_OUT_READER = "timed-out-reader"


class BadGroupError(LeewardError):
    """A group that is not a valid result."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict


def refuse(reason: str) -> NoReturn:
    """Raise BadGroupError with the verdict "wrong-structure"."""
    raise BadGroupError(Verdict.WRONG_STRUCTURE, reason)
