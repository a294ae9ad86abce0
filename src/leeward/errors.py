"""Exceptions. Every message says what was found, where, what was expected and what to do next."""

import errno
from pathlib import Path

# these system errors mean that the user gave a wrong file name; all others concern the disk
_WRONG_NAMES = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL)
_STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE)


class LeewardError(Exception):
    """Base class of all exceptions of leeward."""


class InputError(LeewardError, ValueError):
    """Raised if a number, name or file given by the user cannot be used."""


class InfeasibleError(LeewardError):
    """Raised if no layout satisfies all constraints; the message gives the violation, or how many turbines fit."""


class NotANumberError(LeewardError):
    """Raised if a computation yields a value that is not finite."""


class StorageError(LeewardError):
    """Raised if the disk rejects a write. No half-written file has its final name: the call can be retried."""


class HeldError(LeewardError):
    """Raised if another process holds the run directory, or has taken it over."""


class BadSourceError(LeewardError):
    """Raised if a command cannot do its work because files or results are unusable."""


def write_error(path: Path, error: OSError) -> LeewardError:
    """Return the error for a file that cannot be written: an InputError for a wrong name, else a StorageError."""
    reason = error.strerror or error
    if error.errno in _WRONG_NAMES:
        return InputError(f"{path}: cannot be written ({reason}); give a file name in an existing folder")
    return StorageError(f"{path}: cannot be written ({reason}); free some space, or choose another folder")


def is_storage_error(error: OSError) -> bool:
    """Return whether a system error concerns the disk: full, read-only, failing or gone."""
    return error.errno in _STORAGE
