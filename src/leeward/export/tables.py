"""Export a table with a row per turbine or per layout, CSV or Parquet, written as the results are read."""

import dataclasses
import itertools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from leeward import __version__
from leeward.errors import InputError
from leeward.formats.rows import Cell, Column, columns_of, description, rows_of
from leeward.formats.tabular import csv_lines

if TYPE_CHECKING:
    from leeward.export.write import Request

ROWS_AT_ONCE = 20_000
NEEDS_PYARROW = 'Parquet needs pyarrow, which is not installed: pip install "leeward[parquet]"'


def write_csv(file: BinaryIO, request: "Request") -> None:
    """Write CSV in UTF-8 with CR LF line ends (RFC 4180)."""
    file.write(csv_lines([[column.name for column in columns_of(request.per)]]).encode())
    for rows in _pieces(request):
        file.write(csv_lines(rows).encode())


def write_parquet(file: BinaryIO, request: "Request") -> None:
    """Write Parquet with units and meanings in the metadata of the columns; unknown values are null."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(NEEDS_PYARROW) from error
    schema = pyarrow.schema([_field(pyarrow, column) for column in columns_of(request.per)], metadata=_facts(request))
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in _pieces(request):
            each = zip(*rows, strict=True)
            arrays = [
                pyarrow.array(cells, type=known.type, from_pandas=True)
                for cells, known in zip(each, schema, strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def _pieces(request: "Request") -> Iterator[list[tuple[Cell, ...]]]:
    """Yield the rows of all layouts in batches."""
    rows = (
        row
        for result in request.layouts.results()
        for row in rows_of(
            result, dataclasses.replace(description(result, request.known_campaign), crs=request.crs), request.per
        )
    )
    while piece := list(itertools.islice(rows, ROWS_AT_ONCE)):
        yield piece


def _field(pyarrow: Any, column: Column) -> Any:
    types = {"text": pyarrow.string(), "whole": pyarrow.int64(), "number": pyarrow.float64()}
    metadata = {"description": column.meaning} | ({"unit": column.unit} if column.unit else {})
    return pyarrow.field(column.name, types[column.kind], metadata=metadata)


def _facts(request: "Request") -> dict[str, str]:
    facts = {"source": f"leeward {__version__}", "crs": request.crs}
    campaign = request.known_campaign
    if campaign is not None:
        facts["campaign"] = campaign.name
        facts["farms"] = json.dumps(dict(campaign.farms), ensure_ascii=False)
        facts["turbine_types"] = json.dumps(dict(campaign.types), ensure_ascii=False)
    return {name: value for name, value in facts.items() if value}
