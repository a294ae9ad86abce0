"""Export any number of layouts as CSV, Parquet or GeoJSON, written as the results are read."""

import io
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leeward import __version__
from leeward.errors import InputError
from leeward.formats.geojson import collection
from leeward.formats.rows import Cell, Column, columns_of, rows_of, values_of
from leeward.formats.tabular import csv_lines

if TYPE_CHECKING:
    from leeward.export.write import Request

ROWS_AT_ONCE = 20_000
NEEDS_PYARROW = 'Parquet needs pyarrow, which is not installed: pip install "leeward[parquet]"'


def csv_pieces(request: "Request") -> Iterator[bytes]:
    """Yield CSV in UTF-8 with CR LF line ends (RFC 4180)."""
    yield from csv_bytes(columns_of(request.per), _rows(request))


def parquet_pieces(request: "Request") -> Iterator[bytes]:
    """Yield Parquet with units and meanings in the metadata of the columns; unknown values are null."""
    yield from parquet_bytes(columns_of(request.per), _rows(request), _facts(request))


def csv_bytes(columns: Sequence[Column], rows: Iterator[tuple[Cell, ...]]) -> Iterator[bytes]:
    """Yield rows as CSV, a header first."""
    yield csv_lines([[column.name for column in columns]]).encode()
    for some in _batches(rows):
        yield csv_lines(some).encode()


def parquet_bytes(
    columns: Sequence[Column], rows: Iterator[tuple[Cell, ...]], facts: Mapping[str, str]
) -> Iterator[bytes]:
    """Yield rows as Parquet. facts: metadata of the table."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(NEEDS_PYARROW) from error
    schema = pyarrow.schema([_field(pyarrow, column) for column in columns], metadata=dict(facts))
    buffer = _Buffer()
    with pyarrow.parquet.ParquetWriter(buffer, schema, compression="zstd") as writer:
        for some in _batches(rows):
            each = zip(*some, strict=True)
            arrays = [
                pyarrow.array(cells, type=known.type, from_pandas=True)
                for cells, known in zip(each, schema, strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
            yield buffer.take()
    yield buffer.take()


class _Buffer(io.BytesIO):
    """A stream that is emptied after each piece. Its position is still that in the whole file."""

    _taken = 0

    def take(self) -> bytes:
        """Return the contents and empty the stream."""
        piece = self.getvalue()
        self._taken += len(piece)
        self.seek(0)
        self.truncate()
        return piece

    def tell(self) -> int:
        return self._taken + super().tell()


def geojson_pieces(request: "Request") -> Iterator[bytes]:
    """Yield the area of every farm that has a layout, then the neighbours, then the turbines of all layouts."""
    layouts, campaign = request.layouts, request.campaign
    farms = sorted({key.farm_idx for key in layouts})
    for farm in farms:
        if farm not in campaign.farms:
            raise InputError(
                f"{layouts.path}: has layouts of farm {farm}, which is not in the campaign {campaign.name}; "
                "select other farms with --farm, or another campaign with --campaign"
            )
    for piece in collection(farms, layouts.results(), campaign):
        yield piece.encode()


def _rows(request: "Request") -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of all layouts."""
    for result in request.layouts.results():
        yield from rows_of(result, {**values_of(result, request.known_campaign), "crs": request.crs}, request.per)


def _batches(rows: Iterator[tuple[Cell, ...]]) -> Iterator[list[tuple[Cell, ...]]]:
    """Yield rows in batches."""
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
