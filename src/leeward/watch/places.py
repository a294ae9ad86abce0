"""The run directory or file that a path names, and its campaign."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.errors import BadSourceError, InputError, StorageError
from leeward.files import NotAFileError, read_regular
from leeward.store import LONGEST_CAMPAIGN, RunPaths, demand_possible

if TYPE_CHECKING:
    from leeward.store import Value


def paths_of(path: Path) -> RunPaths | None:
    """Return the paths of a run directory, or of a file that may have one beside it; None for anything else."""
    if not path.suffix and path.is_dir():
        path = path.resolve()  # it may be the current folder
    return RunPaths.of(path) if path.suffix in (".run", ".h5") else None


def run_of(path: Path) -> RunPaths | None:
    """Return the run of a run directory or of the file beside one; None if there is no run directory."""
    paths = paths_of(path)
    return paths if paths is not None and paths.root.is_dir() else None


def demand_place(path: Path) -> None:
    """Raise InputError if neither the path nor its run directory exists."""
    demand_possible(path)
    if not path.exists() and run_of(path) is None:
        raise InputError(f"{path}: no such file or folder; expected a run directory (layouts.run) or a layouts.h5")


def work_text(path: Path) -> tuple[str, str] | None:
    """Return the text of the campaign of this path, and where it was found; None if there is none."""
    run = run_of(path)
    if run is not None:
        try:
            return read_regular(run.campaign, LONGEST_CAMPAIGN).decode(), str(run.campaign)
        except FileNotFoundError:
            pass  # the run has just begun; or it was deleted, and the output has a copy
        except NotAFileError as error:
            raise BadSourceError(f"{run.campaign}: {error.strerror}, expected the campaign of the run") from error
        except UnicodeDecodeError as error:
            raise BadSourceError(f"{run.campaign}: is damaged, not a text ({error})") from error
        except OSError as error:
            raise StorageError(f"{run.campaign}: cannot be read ({error})") from error
        path = run.output
    if not path.is_file():
        return None
    text = "".join(str(attributes.get("campaign", "")) for _, attributes in file_attributes([path]))
    return (text, f"the campaign in {path}") if text else None


def file_attributes(paths: Collection[Path]) -> Iterator[tuple[Path, Mapping[str, "Value"]]]:
    """Yield the attributes of each of these files, which a child process reads."""
    from leeward.store import FoundFile, read_files

    for found in read_files(paths, keys={path: [] for path in paths}) if paths else ():
        if isinstance(found, FoundFile):
            yield found.path, found.attributes
