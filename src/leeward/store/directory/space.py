"""Is the run directory fit to take what is to come? Found out before anything is computed."""

import os
import secrets
import shutil

from leeward.errors import StorageError
from leeward.files import TEMPORARY, replace_file, sync_folder
from leeward.store.paths import PACK_SIZE, RunPaths
from leeward.wording import size

BLOCK = 4096
OVERHEAD = 7000  # bytes that a result takes besides its coordinates, in a file of its own or in the merged one


def prepare_folders(paths: RunPaths) -> None:
    """All folders of the run directory, durably. An InputError where something else stands in the place of one."""
    try:
        paths.demand_own_places()
        for folder in (paths.root, *paths.folders()):
            folder.mkdir(exist_ok=True)
        sync_folder(paths.root.parent)
        sync_folder(paths.root)
    except OSError as error:
        raise StorageError(f"{paths.root}: cannot be created ({error})") from error


def probe(paths: RunPaths) -> None:
    """Write, read back, rename and remove a file: what storing a result will do."""
    place = paths.results / f".probe-{secrets.token_hex(4)}{TEMPORARY}"
    try:
        content = os.urandom(BLOCK)
        replace_file(place, content, check=lambda handle: os.read(handle, 2 * BLOCK) == content)
        place.unlink()
    except OSError as error:
        raise StorageError(f"{paths.root}: a probe file could not be written there ({error})") from error


def check_space(paths: RunPaths, to_do: int, stored: int, turbines: int, loose: int) -> None:
    """Refuse a disk that is too full for the results to come and for the merged file. A quota cannot be foreseen.

    loose: how many results may lie in files of their own; of more, a thousand each share a file and its index.
    """
    place = paths.root if paths.root.exists() else paths.output.absolute().parent
    each = OVERHEAD + 16 * turbines
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
