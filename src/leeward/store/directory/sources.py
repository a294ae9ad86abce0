"""Find the files to read in the files, folders and run directories that a user names."""

import errno
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from leeward.errors import InputError
from leeward.files import TEMPORARY, is_there
from leeward.store.paths import RunPaths, is_run

ENDINGS = (".h5", ".hdf5")
QUARANTINED = re.compile(r"\.h5\.[0-9a-f]{8}$")


@dataclass(frozen=True)
class Source:
    """One file, or a run directory with all its shards and packs. run: None for a file."""

    path: Path
    run: RunPaths | None = None

    @property
    def files(self) -> Iterator[Path]:
        """Iterate over the files: a run directory may have a hundred thousand."""
        return iter([self.path]) if self.run is None else self.run.files()


def gather(paths: Iterable[Path]) -> list[Source]:
    """Return the sources that these paths name, each once.

    A folder means all .h5 and .hdf5 files and all run directories below it, without temporary files and quarantine
    folders, unless a quarantine folder itself is named. Any other path is a single file, which the reader checks.
    """
    sources: dict[str, Source] = {}
    for path in paths:
        demand_possible(path)
        if not is_there(path):
            raise InputError(f"{path}: no such file or folder")
        for source in _sources(path):
            sources.setdefault(os.path.realpath(source.path), source)
    return list(sources.values())


def _sources(path: Path) -> Iterator[Source]:
    if not path.is_dir():
        yield Source(path)
    elif is_run(path):
        yield Source(path, RunPaths.of(path))
    else:
        yield from _inside(path)


def _inside(folder: Path) -> Iterator[Source]:
    def fail(error: OSError) -> None:
        raise InputError(f"{error.filename}: the folder cannot be listed ({error.strerror})") from error

    for root, folders, files in os.walk(folder, onerror=fail):
        here = Path(root)
        runs = sorted(name for name in folders if is_run(here / name))
        folders[:] = sorted(name for name in folders if name not in runs and name != "quarantine")
        yield from (Source(here / name, RunPaths.of(here / name)) for name in runs)
        names = sorted(name for name in files if _is_source(name, in_quarantine=here.name == "quarantine"))
        yield from (Source(here / name) for name in names)


def _is_source(name: str, *, in_quarantine: bool) -> bool:
    if in_quarantine and QUARANTINED.search(name):
        return True
    return name.endswith(ENDINGS) and not name.endswith(TEMPORARY)


def demand_outside_runs(output: Path) -> None:
    """Raise InputError for a file inside a run directory, where only a run may write."""
    for folder in Path(os.path.realpath(output)).parents:
        if is_run(folder):
            raise InputError(
                f"{output}: is in the run directory {folder}, where only `leeward run` writes; choose another output"
            )


def demand_possible(*paths: Path) -> None:
    """Raise InputError if a path cannot be the name of a file."""
    for path in paths:
        for name in (path, path.with_suffix(".run")) if path.suffix == ".h5" else (path,):
            try:
                os.lstat(name)
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:
                    raise InputError(f"{str(path)[:60]}…: the file name is too long; choose a shorter one") from error
