"""Check, before anything is computed, that the run directory can store the results."""

import os
import secrets
import shutil

from leeward.errors import StorageError
from leeward.files import TEMPORARY, replace_file, storage_errors, sync_folder
from leeward.store.paths import PACK_SIZE, RunPaths
from leeward.wording import size

BLOCK = 4096
OVERHEAD = 7000  # bytes that a result needs besides its numbers, in a shard or in the merged file


def prepare_folders(paths: RunPaths) -> None:
    """Create the folders of the run directory durably. Raise InputError if something else has such a name."""
    with storage_errors(paths.root, "cannot be created"):
        paths.check_own_places()
        for folder in (paths.root, *paths.folders()):
            folder.mkdir(exist_ok=True)
        sync_folder(paths.root.parent)
        sync_folder(paths.root)


def probe(paths: RunPaths) -> None:
    """Write, read back, rename and remove a file, to test the steps that store a result."""
    place = paths.results / f".probe-{secrets.token_hex(4)}{TEMPORARY}"
    with storage_errors(paths.root, "a probe file cannot be written there"):
        content = os.urandom(BLOCK)
        replace_file(place, content, check=lambda handle: os.read(handle, 2 * BLOCK) == content)
        place.unlink()


def check_space(paths: RunPaths, to_do: int, stored: int, *, result_bytes: int, loose: int) -> None:
    """Raise StorageError if the disk has no room for the results and the merged file. Quotas are not checked.

    to_do, stored: number of results. result_bytes: size of the numbers in one result. loose: number of results that may
    stay in shards; beyond it, each thousand share a pack and its index.
    """
    place = paths.root if paths.root.exists() else paths.output.absolute().parent
    each = OVERHEAD + result_bytes
    shard = -(-each // BLOCK) * BLOCK
    needed = to_do * shard + (to_do + stored) * each
    free = shutil.disk_usage(place).free
    if free < needed:
        raise StorageError(
            f"{paths.root}: {size(free)} are free, but {to_do} results and the merged file need about "
            f"{size(needed)}; free some space, or choose another output with -o"
        )
    files = os.statvfs(place).f_favail
    most = min(to_do, loose + PACK_SIZE + 2 * to_do // PACK_SIZE)
    if 0 < files < most:  # 0: the file system does not count them
        raise StorageError(
            f"{paths.root}: room for {files} more files, but {most} are needed; remove some files, or choose another "
            "output with -o"
        )
