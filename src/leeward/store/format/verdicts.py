"""What can be said of a file or of a result without trusting it."""

import enum


class Verdict(enum.StrEnum):
    """One word for each; the reason is said beside it."""

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
