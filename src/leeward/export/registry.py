"""The formats that results are exported to. A new one is a module of this package, and an entry in `FORMATS`."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.export.write import Request


@dataclass(frozen=True)
class Format:
    """A format, and the endings of its files: the first format with an ending has it unless another one is asked for.

    what: in a few words. writer: module and name of the function that writes, of a file and a Request. on_request: the
    endings that it has only if it is asked for. needs_campaign: it cannot do without one. A writer of one layout takes
    `Request.plant`, which refuses several.
    """

    name: str
    endings: tuple[str, ...]
    what: str
    writer: str
    on_request: tuple[str, ...] = ()
    needs_campaign: bool = False

    def write(self, file: BinaryIO, request: "Request") -> None:
        """Write what the request names to a file."""
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
    """By the ending of the file, or the one that is asked for, which has to fit."""
    ending = output.suffix.lower()
    fitting = [form for form in FORMATS.values() if ending in form.endings]
    if not fitting:
        known = ", ".join(f"{'/'.join(form.endings)} ({form.name})" for form in FORMATS.values())
        found = f"ends in {ending}" if ending else "has no ending"
        raise InputError(f"{output}: {found}; the ending says what is written, expected one of {known}")
    if name is None:
        return next(form for form in fitting if ending not in form.on_request)
    if FORMATS[name] not in fitting:
        raise InputError(
            f"{output}: --format {name} is for files that end in {' or '.join(FORMATS[name].endings)}; expected such "
            f"a name, or --format {' or '.join(form.name for form in fitting)}"
        )
    return FORMATS[name]
