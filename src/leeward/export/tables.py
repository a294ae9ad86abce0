"""Tables with a row for each turbine, or for each layout: CSV and Parquet, written as the results are read."""

import dataclasses
import itertools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from leeward import __version__
from leeward.errors import InputError
from leeward.formats.rows import Cell, Column, Per, columns_of, description, rows_of
from leeward.formats.tabular import csv_lines

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.store import Layouts

ROWS_AT_ONCE = 20_000
NEEDS_PYARROW = 'Parquet needs pyarrow, which is not installed: pip install "leeward[parquet]"'

Rows = Iterator[tuple[Cell, ...]]


def write_csv(file: BinaryIO, layouts: "Layouts", campaign: "Campaign | None", per: Per) -> None:
    """UTF-8, lines end in CR LF, as RFC 4180 has it."""
    file.write(csv_lines([[column.name for column in columns_of(per)]]).encode())
    for rows in _in_pieces(_rows(layouts, campaign, per)):
        file.write(csv_lines(rows).encode())


def write_parquet(file: BinaryIO, layouts: "Layouts", campaign: "Campaign | None", per: Per) -> None:
    """Units and meanings are in the metadata of the columns; what is not known is null."""
    pyarrow, parquet = _pyarrow()
    columns = columns_of(per)
    schema = pyarrow.schema([_field(pyarrow, column) for column in columns], metadata=_facts(layouts, campaign))
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in _in_pieces(_rows(layouts, campaign, per)):
            each = zip(*rows, strict=True)
            arrays = [
                pyarrow.array(cells, type=known.type, from_pandas=True)
                for cells, known in zip(each, schema, strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def crs_of(layouts: "Layouts", campaign: "Campaign | None") -> str:
    """The name of the coordinate system, from the campaign or the file; "" if nobody knows it."""
    return (campaign.crs or "") if campaign is not None else str(layouts.attributes.get("crs", ""))


def demand_pyarrow() -> None:
    """An InputError if it is not installed, before any work is done."""
    _pyarrow()


def _rows(layouts: "Layouts", campaign: "Campaign | None", per: Per) -> Rows:
    crs = crs_of(layouts, campaign)
    for result in layouts.results():
        about = dataclasses.replace(description(result, campaign), crs=crs)
        yield from rows_of(result, about, per)


def _in_pieces(rows: Rows) -> Iterator[list[tuple[Cell, ...]]]:
    while piece := list(itertools.islice(rows, ROWS_AT_ONCE)):
        yield piece


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(NEEDS_PYARROW) from error
    return pyarrow, pyarrow.parquet


def _field(pyarrow: Any, column: Column) -> Any:
    types = {"text": pyarrow.string(), "whole": pyarrow.int64(), "number": pyarrow.float64()}
    metadata = {"description": column.meaning} | ({"unit": column.unit} if column.unit else {})
    return pyarrow.field(column.name, types[column.kind], metadata=metadata)


def _facts(layouts: "Layouts", campaign: "Campaign | None") -> dict[str, str]:
    facts = {"source": f"leeward {__version__}", "crs": crs_of(layouts, campaign)}
    if campaign is not None:
        facts["campaign"] = campaign.name
        facts["farms"] = json.dumps(dict(campaign.farms), ensure_ascii=False)
        facts["turbine_types"] = json.dumps(dict(campaign.types), ensure_ascii=False)
    return {name: value for name, value in facts.items() if value}
