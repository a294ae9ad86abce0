"""Tables as CSV (RFC 4180), safe to open in a spreadsheet."""

import csv
import io
import math
from collections.abc import Iterable, Sequence

LINE_END = "\r\n"  # what the RFC asks for
# A spreadsheet takes a text that starts so for a formula, and a formula can send data away. The last four are the wide
# forms of the first four, which some programs take for the same.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
GUARD = "'"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]], *, line_end: str = LINE_END) -> str:
    """A table with its header. Numbers stay as they are; an empty cell for None and what is no finite number."""
    return csv_lines([header], line_end=line_end) + csv_lines(rows, line_end=line_end)


def csv_lines(rows: Iterable[Sequence[object]], *, line_end: str = LINE_END) -> str:
    """Rows without a header, for tables that are written piece by piece."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=line_end).writerows(map(_cell, row) for row in rows)
    return text.getvalue()


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe goes before one that looks like it."""
    return GUARD + text if text.lstrip(" ").startswith(FORMULA_STARTS) else text


def _cell(value: object) -> object:
    if isinstance(value, str):
        return guarded(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
