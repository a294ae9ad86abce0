"""What leeward raises. Every message says what was found, where, what was expected and what to do next."""

import errno
from pathlib import Path

# a name that cannot be a file's is the person's error; whatever else the system says is the disk's
_WRONG_NAMES = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL)
_STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE)


class LeewardError(Exception):
    """Base class: catch this one to catch all of them."""


class InputError(LeewardError, ValueError):
    """A number, name or file that a person gave cannot be used."""


class InfeasibleError(LeewardError):
    """No layout that satisfies all constraints; says by how much they are violated, or how much room there is."""


class NotANumberError(LeewardError):
    """A computation gave something that is not a finite number."""


class StorageError(LeewardError):
    """The disk would not take what was to be written; nothing half-written has a final name. Try again later."""


class HeldError(LeewardError):
    """Another process holds the run directory, or has taken it over."""


class BadSourceError(LeewardError):
    """Files or results that cannot be used stand in the way of what was asked for."""


def write_error(path: Path, error: OSError) -> LeewardError:
    """Return the error for a file that cannot be written: an InputError for a wrong name, else a StorageError."""
    reason = error.strerror or error
    if error.errno in _WRONG_NAMES:
        return InputError(
            f"{path}: cannot be written ({reason}); expected a folder that is there and the name of a file in it"
        )
    return StorageError(f"{path}: cannot be written ({reason}); make room there, or choose another folder")


def is_storage_error(error: OSError) -> bool:
    """Return whether an error of the system is about the disk: full, read-only, failing or gone."""
    return error.errno in _STORAGE
