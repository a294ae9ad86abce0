"""The file that is written: its format, where it may lie, and how it appears whole or not at all."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from leeward.errors import InputError, StorageError
from leeward.files import sync, sync_folder
from leeward.store import Temporary, demand_outside_runs, remove_left_overs_of


@dataclass(frozen=True)
class Format:
    """endings: of the files that have it; the first format with an ending has it unless another one is asked for.

    what: in a few words. single: of one layout, with its site and turbine. needs_campaign: it cannot do without one.
    """

    name: str
    endings: tuple[str, ...]
    what: str
    single: bool = False
    needs_campaign: bool = False


FORMATS = {
    form.name: form
    for form in (
        Format("netcdf", (".nc",), "all layouts, by farm, type and seed"),
        Format("parquet", (".parquet",), "a table"),
        Format("csv", (".csv",), "a table"),
        Format("geojson", (".geojson", ".json"), "areas and turbines in WGS84", needs_campaign=True),
        Format("windio", (".yaml", ".yml"), "a windIO plant", single=True, needs_campaign=True),
        Format("floris", (".yaml", ".yml"), "a FLORIS input", single=True, needs_campaign=True),
        Format("arrays", (".npz", ".json"), "arrays for PyWake and FLORIS", single=True, needs_campaign=True),
    )
}
BY_ENDING = {".json": "arrays"}  # the shorter name of GeoJSON has to be asked for


def format_of(output: Path, name: str | None) -> Format:
    """By the ending of the file, or the one that is asked for, which has to fit."""
    ending = output.suffix.lower()
    fitting = [form.name for form in FORMATS.values() if ending in form.endings]
    if not fitting:
        known = ", ".join(f"{'/'.join(form.endings)} ({form.name})" for form in FORMATS.values())
        found = f"ends in {ending}" if ending else "has no ending"
        raise InputError(f"{output}: {found}; the ending says what is written, expected one of {known}")
    if name is None:
        return FORMATS[BY_ENDING.get(ending, fitting[0])]
    if name not in fitting:
        raise InputError(
            f"{output}: --format {name} is for files that end in {' or '.join(FORMATS[name].endings)}; expected such "
            f"a name, or --format {' or '.join(fitting)}"
        )
    return FORMATS[name]


def check_output(output: Path, sources: list[Path]) -> None:
    """Refuse what must not be overwritten, and a run directory, in which only `leeward run` writes."""
    place = Path(os.path.realpath(output))
    for source in sources:
        if place == Path(os.path.realpath(source)):
            raise InputError(f"{output}: is what is read; expected another file to write to")
    demand_outside_runs(output)


def write_whole(output: Path, write: Callable[[BinaryIO], None]) -> None:
    """Have `write` fill a file that gets its name when all of it is on the disk."""
    target = Path(os.path.realpath(output))
    try:
        remove_left_overs_of(target)  # of an export that was killed
        with Temporary(target) as temporary:
            with os.fdopen(os.dup(temporary.handle), "wb") as file:
                write(file)
            sync(temporary.handle)
            temporary.put_in_place()
        sync_folder(target.parent)
    except OSError as error:
        raise StorageError(f"{output}: cannot be written ({error}); nothing half-written is left") from error
