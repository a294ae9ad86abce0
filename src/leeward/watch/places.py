"""The run directory or file that a path names, and its campaign."""

import itertools
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.errors import BadSourceError, InputError, StorageError
from leeward.files import NotAFileError, open_regular, read_regular
from leeward.store import LONGEST_CAMPAIGN, RunPaths, demand_possible, is_pack, output_index

if TYPE_CHECKING:
    from leeward.store import Value

LAYOUTS, EVALUATIONS = "layouts", "evaluations"  # the names of the kinds
HEAD = 1024  # bytes at the start of a campaign file that state its kind
FEW_SHARDS = 20  # shards whose names are read to find their kind
_KIND = re.compile(rb"^kind:[ \t]*[\"']?evaluations[\"']?[ \t\r]*$", re.MULTILINE)
_KEY = re.compile(r"target\d{1,9}_scenario\d{1,9}", re.ASCII)


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


def kind_of(path: Path) -> str:
    """Return the kind of work of a run directory or a file of results: "layouts" or "evaluations".

    The campaign of the run directory states it; else the index beside the file or its attributes; else the names of
    shards. It is layouts if none of them does.
    """
    run = run_of(path)
    if run is None:
        return _kind_of_file(path) if path.is_file() else LAYOUTS
    head = _head(run.campaign)
    if head:
        return EVALUATIONS if is_study(head) else LAYOUTS
    names = [shard.name.removesuffix(".h5") for shard in itertools.islice(run.shards(), FEW_SHARDS)]
    if names:
        return EVALUATIONS if any(map(_KEY.fullmatch, names)) else LAYOUTS
    files = [file for file in (*run.pack_files()[:1], run.output) if file.is_file()]
    return _kind_of_file(files[0]) if files else LAYOUTS


def is_study(text: bytes) -> bool:
    """Return whether the start of a stored text says that it is a study, not a campaign."""
    return _KIND.search(text[:HEAD]) is not None


def _head(campaign: Path) -> bytes:
    """Return the start of a campaign file; nothing if it cannot be read."""
    try:
        handle = open_regular(campaign)
    except OSError:  # whoever reads the whole file reports the error
        return b""
    try:
        return os.read(handle, HEAD)
    except OSError:
        return b""
    finally:
        os.close(handle)


def _kind_of_file(path: Path) -> str:
    """Return the kind of results in a merged file or a pack. The index beside it is quicker to read than the file."""
    first = (output_index(path, is_pack=is_pack(path)) or b"").partition(b"\n")[0]
    if first:
        return EVALUATIONS if _KEY.search(first.decode("latin-1")) else LAYOUTS
    kinds = [attributes.get("kind") for _, attributes in file_attributes([path])]
    return EVALUATIONS if EVALUATIONS in kinds else LAYOUTS
