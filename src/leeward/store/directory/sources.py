"""What a person names, a file, a folder, a run directory, as the files that are to be read."""

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
    """One file, or a run directory with all its shards and packs; `run`: only of the latter."""

    path: Path
    run: RunPaths | None = None

    @property
    def files(self) -> Iterator[Path]:
        """One by one: a run directory may have a hundred thousand."""
        return iter([self.path]) if self.run is None else self.run.files()


def gather(paths: Iterable[Path]) -> list[Source]:
    """All sources that these paths name, each once.

    Of a folder: all files in it, however deep, that end in .h5 or .hdf5, and the run directories. What is being written
    is left out, and so is a quarantine, unless it is named itself. What else is named is taken as it is, whatever it
    may be: its verdict is for the reader.
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
    """An InputError for a file within a run directory: it holds what a run has put there, and nothing else."""
    for folder in Path(os.path.realpath(output)).parents:
        if is_run(folder):
            raise InputError(
                f"{output}: is in the run directory {folder}, where only `leeward run` writes; name a file elsewhere"
            )


def demand_possible(*paths: Path) -> None:
    """An InputError unless these can be names of files at all."""
    for path in paths:
        for name in (path, path.with_suffix(".run")) if path.suffix == ".h5" else (path,):
            try:
                os.lstat(name)
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:
                    raise InputError(f"{str(path)[:60]}…: the file name is too long") from error
