"""Turbine files: leeward's YAML, curves as CSV, WAsP, FLORIS and windIO. A new format is a module and an entry here."""

import importlib
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward.readers.document import Document

FILES = {".csv": "turbine_csv", ".txt": "turbine_csv", ".wtg": "wasp_wtg"}  # modules with a function `read`, by ending
DOCUMENTS = {"power_thrust_table": "floris_turbine", "performance": "windio_turbine"}  # YAML files, by a key they have
OPTIONS = {"power_unit": "turbine_csv", "mode": "wasp_wtg"}  # the only format that has each option
WHAT = "a turbine: a .csv file of its curves, a WAsP .wtg file, or a YAML file of leeward, windIO or FLORIS"


def unknown_extension(path: Path) -> str:
    """Return what is wrong with the name of a file."""
    return f"the extension {path.suffix} is not known" if path.suffix else "has no extension"


def read_turbine(
    path: Path, *, power_unit: str | None = None, mode: int | None = None, has_height: bool = False
) -> Document:
    """Return the turbine in a file as a document with the keys of a turbine in a campaign file.

    power_unit: W, kW or MW, for a CSV file that does not name it. mode: the number of a performance table, for a WAsP
    file with several. has_height: the user gives the hub height.
    """
    options = {"power_unit": power_unit, "mode": mode}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    document = None
    if path.suffix.lower() in FILES:
        module = FILES[path.suffix.lower()]
    elif path.suffix.lower() in (".yaml", ".yml"):
        document = Document.with_includes(path, WHAT)
        if not isinstance(document.data, dict):
            raise document.error((), "expected the keys of a turbine, such as rated_power_mw")
        module = next((name for key, name in DOCUMENTS.items() if key in document.data), "")
    else:
        raise InputError(f"{path}: {unknown_extension(path)}; expected {WHAT}")
    for name in given:
        if OPTIONS[name] != module:
            raise InputError(f"{path}: {name} does not apply to this file; remove it")
    if not module and document is not None:
        if "file" in document.data:
            raise document.error(("file",), "refers to another file; expected the values of a turbine")
        document.data = {"name": path.stem, **document.data}
        return document
    if module == "wasp_wtg":
        given["has_height"] = has_height
    read = importlib.import_module(f"leeward.readers.{module}").read
    values: dict[str, Any] = read(path, **given) if document is None else read(document)
    return Document(str(path), {"name": path.stem, **values})
