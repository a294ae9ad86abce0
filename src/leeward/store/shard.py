"""Shards: small HDF5 files with one result each. Stored means: on the disk, whole, under its final name."""

import io
from pathlib import Path

import h5py
from h5py import h5g

from leeward.errors import StorageError
from leeward.files import replace_file, sync_folder
from leeward.store.keys import Key
from leeward.store.paths import RunPaths
from leeward.store.schema import LIBVER, Result, read_group, write_group, write_root


def shard_bytes(result: Result) -> bytes:
    """The file's content, made in memory: libhdf5 never writes a shard to a disk, on which it may crash when full."""
    image = io.BytesIO()
    with h5py.File(image, "w", libver=LIBVER) as file:
        write_root(file, ())
        write_group(file, result)
    return image.getvalue()


def stored_result(content: bytes, key: Key) -> Result:
    """What a shard of this process's own making holds."""
    with h5py.File(io.BytesIO(content), "r") as file:
        return read_group(h5g.open(file.id, str(key).encode()), str(key))


def store_result(paths: RunPaths, result: Result) -> Path:
    """Make a result durable, and say where it is.

    Whoever stored the key first keeps the name: two honest computations have the same digest. A StorageError means that
    nothing has the final name; the same call can be made again.
    """
    path = paths.shard(result.key)
    content = shard_bytes(result)
    stored_result(content, result.key)  # what was made can be read, and fits its seal
    try:
        if path.exists():
            return path
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            sync_folder(path.parent.parent)
        replace_file(path, content, verify=True)
    except OSError as error:
        raise StorageError(f"{path}: cannot be stored ({error})") from error
    return path
