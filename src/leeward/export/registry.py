"""The export formats. A new one is a module of this package and an entry in `FORMATS`."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.export.write import Request


@dataclass(frozen=True)
class Format:
    """An export format. Of two formats with the same file extension, the first is the default.

    what: a short description. writer: module and name of a function of a file and a Request. on_request: extensions
    that it has only if named with --format. A writer of a single layout uses `Request.plant`, which rejects several.
    """

    name: str
    endings: tuple[str, ...]
    what: str
    writer: str
    on_request: tuple[str, ...] = ()
    needs_campaign: bool = False

    def write(self, file: BinaryIO, request: "Request") -> None:
        module, _, function = self.writer.partition(":")
        getattr(importlib.import_module(f"leeward.export.{module}"), function)(file, request)


FORMATS = {
    form.name: form
    for form in (
        Format("netcdf", (".nc",), "all layouts, by farm, type and seed", "netcdf:write_netcdf"),
        Format("parquet", (".parquet",), "a table", "tables:write_parquet"),
        Format("csv", (".csv",), "a table", "tables:write_csv"),
        Format(
            "geojson",
            (".geojson", ".json"),
            "areas and turbines in WGS84",
            "maps:write_geojson",
            on_request=(".json",),
            needs_campaign=True,
        ),
        Format("windio", (".yaml", ".yml"), "a windIO plant", "windio:write_windio", needs_campaign=True),
        Format("floris", (".yaml", ".yml"), "a FLORIS input", "floris:write_floris", needs_campaign=True),
        Format("arrays", (".npz", ".json"), "arrays for PyWake and FLORIS", "arrays:write_arrays", needs_campaign=True),
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
