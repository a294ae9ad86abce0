"""Tables as CSV (RFC 4180), safe to open in a spreadsheet."""

import csv
import io
import math
from collections.abc import Iterable, Sequence

LINE_END = "\r\n"  # as the RFC requires
# A spreadsheet treats text that starts with these as a formula, and a formula can leak data. The last four are the
# full-width forms of the first four, which some programs treat in the same way.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
GUARD = "'"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]], *, line_end: str = LINE_END) -> str:
    """Return a table with its header. None and non-finite numbers become empty cells."""
    return csv_lines([header], line_end=line_end) + csv_lines(rows, line_end=line_end)


def csv_lines(rows: Iterable[Sequence[object]], *, line_end: str = LINE_END) -> str:
    """Return rows without a header, for tables that are written piece by piece."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=line_end).writerows(map(_cell, row) for row in rows)
    return text.getvalue()


def guarded(text: str) -> str:
    """Return a text with an apostrophe before it if a spreadsheet would treat it as a formula."""
    return GUARD + text if text.lstrip(" ").startswith(FORMULA_STARTS) else text


def _cell(value: object) -> object:
    if isinstance(value, str):
        return guarded(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
