"""How commands say things: aligned tables, and what they end with."""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from leeward.wording import printable

EXIT_INCOMPLETE = 3  # results are missing, failed or invalid
RESET = "\x1b[0m"  # of colours: harmless
MOST_LISTED = 20  # lines of one kind, where the rest is to be had elsewhere


def table(rows: Iterable[Sequence[object]], right: Sequence[int] = (), indent: str = "  ") -> str:
    """Columns as wide as what is in them, never wrapped; `right`: those that stand to the right."""
    texts = [[printable(str(cell)).replace("\n", "\\n") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = []
    for row in texts:
        cells = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


class Printable:
    """A text stream that escapes what a terminal would obey: names may come from anywhere.

    Rich knows `rich_proxied_file` and writes there, past this; what it is given has to be escaped before.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        # colorama, which numba uses if it is there, sends the reset at the end of a process that has compiled
        self.rich_proxied_file.write(text if text == RESET else printable(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Let all that is printed pass through `Printable`."""
    streams = sys.stdout, sys.stderr
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # for terminals that are not UTF-8
    try:
        sys.stdout, sys.stderr = (None if stream is None else Printable(stream) for stream in streams)
        yield
    finally:
        sys.stdout, sys.stderr = streams


def send_control(stream: TextIO, sequence: str) -> None:
    """Send a control sequence of our own to a terminal."""
    getattr(stream, "rich_proxied_file", stream).write(sequence)


def is_terminal(stream: TextIO | None) -> bool:
    """None: the stream was closed before Python started."""
    return stream is not None and stream.isatty()
