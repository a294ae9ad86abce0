"""How commands say things: aligned tables, and what they end with."""

from collections.abc import Iterable, Sequence
from typing import TextIO

EXIT_INCOMPLETE = 3  # results are missing, failed or invalid
MOST_LISTED = 20  # lines of one kind, where the rest is to be had elsewhere


def table(rows: Iterable[Sequence[object]], right: Sequence[int] = (), indent: str = "  ") -> str:
    """Columns as wide as what is in them, never wrapped; `right`: those that stand to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = []
    for row in texts:
        cells = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def is_terminal(stream: TextIO | None) -> bool:
    """None: the stream was closed before Python started."""
    return stream is not None and stream.isatty()
