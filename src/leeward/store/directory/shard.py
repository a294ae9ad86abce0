"""Shards: small HDF5 files with one result each. Stored means: on the disk, whole, under its final name."""

import contextlib
import errno
import functools
import io
import os
import tempfile
from pathlib import Path

import h5py
from h5py import h5g

from leeward.errors import StorageError
from leeward.files import NotAFileError, kind_of, open_regular, replace_file, sync_folder
from leeward.store.directory.quarantine import quarantine
from leeward.store.format.direct import Held, Pages, checksums, sealed_results
from leeward.store.format.found import FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.schema import LIBVER, BadGroupError, Result, read_group, write_group, write_root
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import read_files
from leeward.store.paths import RunPaths


def shard_bytes(result: Result) -> bytes:
    """The file's content, made in memory: libhdf5 never writes a shard to a disk, on which it may crash when full."""
    image = io.BytesIO()
    with h5py.File(image, "w", libver=LIBVER) as file:
        write_root(file, ())
        write_group(file, result)
    return image.getvalue()


def is_stored(handle: int, result: Result) -> bool:
    """Whether a file that this process has just written holds the result, seal and all."""
    found = sealed_results(Pages(handle)) if checksums() else None
    if found is not None:
        return found[1].keys() == {str(result.key)} and found[1][str(result.key)].seal == result.seal
    with h5py.File(io.BytesIO(os.pread(handle, os.fstat(handle).st_size, 0)), "r") as file:  # the slow way
        name = str(result.key)
        return read_group(h5g.open(file.id, name.encode()), name).seal == result.seal


def result_in(content: bytes, key: Key) -> Result | None:
    """The result of this key in the content of a shard that another machine has made, if it is whole."""
    if checksums() is not None:
        found = sealed_results(Held(content))
        return None if found is None or found[1].keys() != {str(key)} else found[1][str(key)]
    with tempfile.TemporaryDirectory() as folder:  # the slow way, by another process, which bad bytes may end
        path = Path(folder) / f"{key}.h5"
        path.write_bytes(content)
        found_there = [found for found in read_files([path], contents=True) if isinstance(found, FoundResult)]
    return found_there[0].result if len(found_there) == 1 and found_there[0].is_valid else None


def _holds(path: Path, key: Key) -> bool:
    """Whether a file holds a whole result of this key; told without libhdf5, to which a bad file could do harm."""
    if checksums() is None:
        return kind_of(path) == "file"  # more is not to be told here: whoever reads it next will
    try:
        handle = open_regular(path)
    except NotAFileError:
        return False
    try:
        found = sealed_results(Pages(handle))
    finally:
        os.close(handle)
    return found is not None and found[1].keys() == {str(key)}


def _make_folder(folder: Path) -> None:
    """Durably, or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    if (kind := kind_of(folder)) != "folder":
        raise NotAFileError(errno.ENOTDIR, f"{folder} is a {kind}; expected a folder")
    try:
        sync_folder(folder.parent)
    except OSError:
        with contextlib.suppress(OSError):  # somebody has put something there: then others sync it
            folder.rmdir()
        raise


@functools.cache
def _have_synced(folder: Path) -> None:
    """Its name, once in the life of a process: whoever made it may have been killed before it was durable."""
    sync_folder(folder.parent)


def store_result(paths: RunPaths, result: Result) -> Path:
    """Make a result durable, and say where it is.

    Whoever stored the key first keeps the name: two honest computations have the same digest. A StorageError means that
    nothing half-written has the final name; the same call can be made again.
    """
    path = paths.shard(result.key)
    content = shard_bytes(result)
    try:
        if path.exists():
            if _holds(path, result.key):
                _have_synced(path.parent)
                sync_folder(path.parent)  # an earlier try may have come to its name, and no further
                return path
            quarantine(paths, path, Verdict.UNREADABLE, "it stood in the place of a result that was to be stored")
        if kind_of(path.parent) != "folder":
            _make_folder(path.parent)
        _have_synced(path.parent)
        replace_file(path, content, check=lambda handle: is_stored(handle, result))
    except (OSError, KeyError, RuntimeError, BadGroupError) as error:  # the others: h5py, of what was read back
        raise StorageError(f"{path}: cannot be stored ({error})") from error
    return path
