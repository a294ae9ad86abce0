"""`leeward doctor`: show what leeward finds on this machine."""

import importlib.metadata
import os
import platform
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from typer import Option

from leeward import __version__, store
from leeward.cli.options import Options
from leeward.cli.output import table
from leeward.errors import HeldError, InputError, StorageError
from leeward.files import storage_errors
from leeward.processes import usable_cores
from leeward.runs.filesystem import mount_of, remark
from leeward.wording import count, json_text, size

PACKAGES = ("numpy", "numba", "h5py", "numba-cuda")


class DoctorOptions(Options):
    """Show versions, cores, memory, GPUs, the cache of compiled kernels, and whether a run can use the current folder.

    To test the current folder, the command makes a temporary run directory in it, takes the lock there, and removes it.
    If there is no usable GPU, a line says why and what to do. Paste the output into a bug report. The names in the JSON
    are stable.

    Exit codes: 0 a run can use the current folder, with or without a GPU; 1 other errors; 2 usage error; 4 the current
    folder cannot be written, or its locks do not work.
    """

    as_json: bool = Option(False, "--json", help="Print the same as JSON.")


def doctor(options: DoctorOptions) -> None:
    """Print what leeward finds on this machine."""
    folder = Path.cwd()
    found = {**_machine(), **_gpus(), "cache": _cache(), "folder": _folder(folder)}
    print(json_text(found, indent=1) if options.as_json else table(_rows(found)))
    if found["folder"]["problem"]:
        raise StorageError(found["folder"]["problem"])


def _machine() -> dict[str, Any]:
    """Return versions, cores and memory."""
    from leeward.campaign.estimate import available_memory

    has_size = "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ())
    return {
        "leeward": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "cores": {"usable": usable_cores(), "all": os.cpu_count()},
        "memory": {
            "available_bytes": available_memory(),
            "all_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if has_size else None,
        },
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _gpus() -> dict[str, Any]:
    """Return the GPUs, or the reason why none can be used."""
    from leeward.wind.gpu import device

    try:
        return {"gpus": [asdict(gpu) for gpu in device.gpus()], "gpu_problem": None}
    except (InputError, ImportError) as error:  # ImportError: numba itself does not work
        return {"gpus": [], "gpu_problem": str(error)}


def _cache() -> dict[str, Any]:
    """Return the folder of compiled kernels, its size, and why it cannot be used."""
    from leeward.wind import cache

    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        folder = cache.cache_folder()
        if folder is not None:
            probe = folder / f"doctor-{secrets.token_hex(4)}"
            cache.store(probe, b"")
            probe.unlink(missing_ok=True)
    problem = str(raised[0].message).removeprefix("leeward: ") if raised else None
    sizes = [] if folder is None else list(_sizes(folder))
    return {"path": folder and str(folder), "files": len(sizes), "bytes": sum(sizes), "problem": problem}


def _sizes(folder: Path) -> Iterator[int]:
    """Yield the sizes of all files in a folder; another process may be removing some."""
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue


def _folder(folder: Path) -> dict[str, Any]:
    """Return the file system of a folder, and why a run cannot use it."""
    mount = mount_of(folder)
    found: dict[str, Any] = {
        "path": str(folder),
        "file_system": mount and mount.kind,
        "free_bytes": shutil.disk_usage(folder).free,
        "is_writable": False,
        "locks_work": False,
        "problem": None,
        "note": remark(folder) or None,
    }
    try:
        with (
            storage_errors(folder, "cannot be written"),
            tempfile.TemporaryDirectory(dir=folder, prefix=".leeward-doctor-") as place,
        ):
            paths = store.RunPaths(Path(place, "layouts.h5"))
            store.prepare_folders(paths)
            store.probe(paths)
            found["is_writable"] = True
            _try_lock(paths.lock)
            found["locks_work"] = True
    except (StorageError, HeldError) as error:
        found["problem"] = str(error)
    return found


def _try_lock(path: Path) -> None:
    """Take and release a lock. Raise an error if that fails, or if the lock can be taken twice."""
    lock = store.Lock.take(path)
    try:
        lock.check()
        try:
            store.Lock.take(path).release()
        except HeldError:
            return
    finally:
        lock.release()
    raise StorageError(f"{path.parent}: locks do not work on this file system; choose another folder")


def _rows(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a name and a text for each line."""
    yield "leeward", found["leeward"]
    yield "Python", f"{found['python']} on {found['system']}"
    yield "packages", ", ".join(f"{name} {version or 'not installed'}" for name, version in found["packages"].items())
    yield "cores", f"{found['cores']['usable']} usable of {found['cores']['all']}"
    memory = found["memory"]
    yield "memory", f"{_size(memory['available_bytes'])} available of {_size(memory['all_bytes'])}"
    yield from (("GPU", _gpu(gpu)) for gpu in found["gpus"])
    if found["gpu_problem"]:
        yield "GPU", f"none: {found['gpu_problem']}"
    cache = found["cache"]
    if cache["path"] is None:
        yield "kernel cache", f"none: {cache['problem']}"
    else:
        yield "kernel cache", f"{cache['path']}: {count(cache['files'], 'file')}, {_size(cache['bytes'])}"
        yield "", cache["problem"] or "writable"
    yield from _folder_rows(found["folder"])


def _gpu(gpu: dict[str, Any]) -> str:
    major, minor = gpu["compute_capability"]
    driver = f", driver {gpu['driver'] or 'unknown'} (CUDA {gpu['cuda']}), compute capability {major}.{minor}"
    memory = f"{_size(gpu['free_bytes'])} free of {_size(gpu['total_bytes'])}"
    return f"{gpu['name']}: {memory}{driver if gpu['cuda'] else ''}"


def _folder_rows(folder: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kind = folder["file_system"] or "unknown file system"
    yield "folder", f"{folder['path']}: {kind}, {_size(folder['free_bytes'])} free"
    writable = "writable" if folder["is_writable"] else "NOT WRITABLE"
    locks = "locks work" if folder["locks_work"] else "LOCKS DO NOT WORK"
    yield "", f"{writable}, {locks}" if folder["is_writable"] else writable
    if folder["note"]:
        yield "", f"note: {folder['note']}"


def _size(number: int | None) -> str:
    return "an unknown size" if number is None else size(number)
