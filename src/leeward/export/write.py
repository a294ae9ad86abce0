"""The export formats, and the function that writes results in one of them, atomically.

A new format is a module of this package and an entry in `FORMATS`.
"""

import importlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.errors import InputError, StorageError
from leeward.files import sync, sync_folder
from leeward.store import Temporary, demand_outside_runs, remove_left_overs_of
from leeward.wording import listed

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.export.plant import Plant
    from leeward.formats.rows import Per
    from leeward.store import Layouts


@dataclass(frozen=True)
class Format:
    """An export format. Of two formats with the same file extension, the first is the default.

    writer: module and name of a function that takes a Request and yields the bytes of the file. It raises
    InputError only before its first piece, when nothing is written yet. A writer of a single layout uses
    `Request.plant`.
    on_request: extensions that the format has only if it is named with --format.
    beside: a second writer, whose file is named by `beside`.
    """

    name: str
    endings: tuple[str, ...]
    writer: str
    on_request: tuple[str, ...] = ()
    needs_campaign: bool = False
    beside: str = ""

    def pieces(self, request: "Request") -> Iterator[bytes]:
        """Yield the bytes of the file, piece by piece."""
        return _pieces(self.writer, request)


def _pieces(writer: str, request: "Request") -> Iterator[bytes]:
    module, _, function = writer.partition(":")
    yield from getattr(importlib.import_module(f"leeward.export.{module}"), function)(request)


FORMATS = {
    form.name: form
    for form in (
        Format("netcdf", (".nc",), "netcdf:netcdf_pieces"),
        Format("parquet", (".parquet",), "tables:parquet_pieces"),
        Format("csv", (".csv",), "tables:csv_pieces"),
        Format("geojson", (".geojson", ".json"), "tables:geojson_pieces", on_request=(".json",), needs_campaign=True),
        Format("windio", (".yaml", ".yml"), "windio:windio_pieces", needs_campaign=True),
        Format("floris", (".yaml", ".yml"), "floris:floris_pieces", needs_campaign=True, beside="floris:wind_pieces"),
        Format("geopackage", (".gpkg",), "geopackage:geopackage_pieces", needs_campaign=True),
        Format("arrays", (".npz", ".json"), "arrays:array_pieces", needs_campaign=True),
    )
}


def format_of(output: Path, name: str | None) -> Format:
    """Return the format with this name, which must fit the file extension; without a name, by the extension alone."""
    ending = output.suffix.lower()
    fitting = [form for form in FORMATS.values() if ending in form.endings]
    if not fitting:
        known = ", ".join(f"{'/'.join(form.endings)} ({form.name})" for form in FORMATS.values())
        found = f"the extension {ending} is not known" if ending else "has no extension"
        raise InputError(f"{output}: {found}; the extension selects the format, expected one of {known}")
    if name is None:
        return next(form for form in fitting if ending not in form.on_request)
    if FORMATS[name] not in fitting:
        raise InputError(
            f"{output}: --format {name} needs the extension {' or '.join(FORMATS[name].endings)}; change the name, or "
            f"use --format {' or '.join(form.name for form in fitting)}"
        )
    return FORMATS[name]


@dataclass(frozen=True)
class Request:
    """The input of a writer. ending: file extension in lower case. per, by_seed: see `export_layouts`."""

    form: Format
    ending: str
    layouts: "Layouts"
    known_campaign: "Campaign | None" = None
    per: "Per" = "turbine"
    by_seed: bool = True

    @property
    def campaign(self) -> "Campaign":
        """Return the campaign, or raise InputError if there is none."""
        if self.known_campaign is None:
            where = self.layouts.path
            raise InputError(f"{where}: has no campaign, but {self.form.name} needs one; name it with --campaign")
        return self.known_campaign

    @cached_property
    def plant(self) -> "Plant":
        """Return the only layout, or raise InputError if there are several."""
        from leeward.export.plant import plant_of

        keys = list(self.layouts)
        if len(keys) > 1:
            raise InputError(
                f"{len(keys)} layouts selected ({listed(keys, 3)}), but {self.form.name} holds one: name it with "
                "--key, or select the best layout of one farm and turbine type with --farm, --type and --best"
            )
        return plant_of(self.layouts[keys[0]], self.campaign)

    @property
    def crs(self) -> str:
        """Return the name of the coordinate system, from the campaign or the file; "" if unknown."""
        if self.known_campaign is not None:
            return self.known_campaign.crs or ""
        return str(self.layouts.attributes.get("crs", ""))


def export_layouts(
    layouts: "Layouts",
    output: Path,
    campaign: "Campaign | None" = None,
    *,
    format_name: str | None = None,
    per: "Per" = "turbine",
    by_seed: bool = True,
) -> int:
    """Write results to a file atomically, and return the number of layouts written.

    The extension of `output` selects the format; format_name: one of `FORMATS`, if an extension has several.
    campaign: source of names and coordinate system. per: in tables, write one row per turbine or per layout. by_seed:
    in NetCDF, make seeds a dimension; False for one layout of each farm and type, with its seed as a variable.
    """
    form = format_of(output, format_name)
    check_output(output, [layouts.path])
    if not len(layouts):
        raise InputError(f"{layouts.path}: no results to export")
    request = Request(form, output.suffix.lower(), layouts, campaign, per, by_seed)
    pieces = form.pieces(request)
    if form.beside:
        check_output(beside(output), [layouts.path])
        first = next(pieces)  # raises InputError before anything is written
        write_pieces(beside(output), _pieces(form.beside, request))
        pieces = itertools.chain([first], pieces)
    write_pieces(output, pieces)
    return len(layouts)


def beside(output: Path) -> Path:
    """Return the name of the second file of a format that has one: the wind rose of FLORIS."""
    return output.with_name(f"{output.stem}_wind_rose.csv")


def write_pieces(output: Path, pieces: Iterator[bytes]) -> None:
    """Write a file atomically. The first piece may raise InputError, before anything is written."""
    first = next(pieces)
    target = Path(os.path.realpath(output))
    try:
        remove_left_overs_of(target)  # temporary files of a killed export
        with Temporary(target) as temporary:
            with os.fdopen(os.dup(temporary.handle), "wb") as file:
                file.write(first)
                file.writelines(pieces)
            sync(temporary.handle)
            temporary.put_in_place()
        sync_folder(target.parent)
    except OSError as error:
        raise StorageError(f"{output}: cannot be written ({error}); no partial file is left") from error


def check_output(output: Path, sources: Sequence[Path]) -> None:
    """Raise InputError if the output is one of the sources or lies in a run directory."""
    place = Path(os.path.realpath(output))
    for source in sources:
        if place == Path(os.path.realpath(source)):
            raise InputError(f"{output}: is also the input; write to another file")
    demand_outside_runs(output)
