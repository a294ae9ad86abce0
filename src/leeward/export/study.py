"""Export the evaluations of a study: NetCDF, Zarr, Parquet, CSV, and the feature table."""

import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward import __version__
from leeward.errors import InputError
from leeward.export.study_arrays import netcdf_pieces, write_zarr
from leeward.export.tables import NEEDS_PYARROW, csv_bytes, parquet_bytes
from leeward.export.write import FORMATS, check_output, write_pieces
from leeward.formats.rows import Cell, Column
from leeward.formats.tabular import csv_lines

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

    from leeward.store import Evaluations

STUDY_FORMATS = {"netcdf": ".nc", "parquet": ".parquet", "csv": ".csv", "zarr": ".zarr"}  # format and extension
FEATURE_ENDINGS = (".csv", ".parquet")

COLUMNS = (
    Column("key", "text", "", "name of the result"),
    Column("target_idx", "whole", "", "number of the target layout"),
    Column("scenario_idx", "whole", "", "number of the scenario"),
    Column("target", "text", "", "name of the target layout"),
    Column("scenario", "text", "", "name of the scenario"),
    Column("case", "text", "", "wakes that count: all, external, internal or none"),
    Column("weight", "number", "", "weight of the scenario"),
    Column("n_turbines", "whole", "", "number of turbines of the target"),
    Column("n_neighbours", "whole", "", "number of turbines of all neighbours in the scenario"),
    Column("installed_mw", "number", "MW", "installed power of the target"),
    Column("aep_gwh", "number", "GWh", "annual energy production"),
    Column("gross_aep_gwh", "number", "GWh", "annual energy production without wakes"),
    Column("wake_loss", "number", "1", "share of the gross yield that wakes cost"),
    Column("capacity_factor", "number", "1", "AEP as a fraction of rated output all year (8760 h)"),
)


def study_format(output: Path, name: str | None = None) -> str:
    """Return the format of a study for this file extension. name: the format that the user asks for, or None."""
    ending = output.suffix.lower()
    known = ", ".join(f"{one} ({form})" for form, one in STUDY_FORMATS.items())
    form = next((form for form, one in STUDY_FORMATS.items() if one == ending), None)
    by_ending = next((one for one in FORMATS.values() if ending in one.endings), None)
    only_layouts = by_ending if name is None else FORMATS.get(name)
    if form is None or (name is not None and name not in STUDY_FORMATS):
        what = (
            f"{only_layouts.name} holds layouts" if only_layouts else f"the extension {ending or '(none)'} is not known"
        )
        raise InputError(f"{output}: {what}; a study is written as one of {known}")
    if name is not None and name != form:
        raise InputError(f"{output}: --format {name} needs the extension {STUDY_FORMATS[name]}; change the name")
    return form


def export_study(evaluations: "Evaluations", output: Path, *, format_name: str | None = None) -> int:
    """Write the results of a study to a file atomically, and return the number of results.

    The extension of `output` selects the format: .nc, .parquet, .csv, or .zarr (a folder). NetCDF and Zarr hold what
    `Evaluations.to_xarray` returns. Tables have one row per target, scenario and case.
    """
    form = study_format(output, format_name)
    check_output(output, [evaluations.path])
    if not len(evaluations):
        raise InputError(f"{evaluations.path}: no results to export")
    if form == "zarr":
        write_zarr(evaluations, output)
        return len(evaluations)
    writers: dict[str, Callable[[Evaluations], Iterator[bytes]]]
    writers = {"netcdf": netcdf_pieces, "csv": _csv_pieces, "parquet": _parquet_pieces}
    write_pieces(output, writers[form](evaluations))
    return len(evaluations)


def export_features(evaluations: "Evaluations", output: Path) -> int:
    """Write the feature table of a study to a .csv or .parquet file atomically, and return the number of rows."""
    ending = output.suffix.lower()
    if ending not in FEATURE_ENDINGS:
        raise InputError(f"{output}: the feature table needs the extension {' or '.join(FEATURE_ENDINGS)}")
    check_output(output, [evaluations.path])
    if not len(evaluations):
        raise InputError(f"{evaluations.path}: no results to export")
    table = evaluations.features()
    write_pieces(output, _features_csv(table) if ending == ".csv" else _features_parquet(table))
    return len(table)


def columns_of(evaluations: "Evaluations") -> list[Column]:
    """Return the columns of a table of these results."""
    known = {column.name: column for column in COLUMNS}
    return [known.get(name) or Column(name, "number", "MW", _window(name)) for name in evaluations.columns()]


def _window(name: str) -> str:
    return f"mean farm power in the window {name.removesuffix('_power_mw')}"


def _rows(evaluations: "Evaluations") -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of all results as they are read."""
    from leeward.store import Numbers

    names = evaluations.columns()
    for result in evaluations.results():
        numbers = Numbers(result.aep_gwh, result.gross_aep_gwh, result.window_power_mw)
        for row in evaluations.rows(result.key, numbers):
            yield tuple(row.get(name, math.nan) for name in names)


def _csv_pieces(evaluations: "Evaluations") -> Iterator[bytes]:
    return csv_bytes(columns_of(evaluations), _rows(evaluations))


def _parquet_pieces(evaluations: "Evaluations") -> Iterator[bytes]:
    facts = {"source": f"leeward {__version__}", "study": str(evaluations.attributes.get("campaign_name", ""))}
    return parquet_bytes(columns_of(evaluations), _rows(evaluations), facts)


def _features_csv(table: "pandas.DataFrame") -> Iterator[bytes]:
    yield csv_lines([list(table.columns)]).encode()
    yield csv_lines(table.itertuples(index=False, name=None)).encode()


def _features_parquet(table: "pandas.DataFrame") -> Iterator[bytes]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(NEEDS_PYARROW) from error
    columns: dict[str, Any] = {}
    for name in table.columns:
        cells = [None if cell != cell else cell for cell in table[name].tolist()]  # NaN differs from itself
        is_text = any(isinstance(cell, str) for cell in cells)
        known = pyarrow.string() if is_text else None if set(cells) - {None} else pyarrow.float64()
        columns[name] = pyarrow.array([str(cell) if is_text and cell is not None else cell for cell in cells], known)
    content = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), content, compression="zstd")
    yield content.getvalue()
