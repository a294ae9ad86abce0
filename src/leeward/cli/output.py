"""Output of commands: aligned tables, CSV files, streams without control sequences, and exit codes.

docs/commands.md lists the exit codes.
"""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from leeward.errors import InputError, StorageError, is_storage_error, write_error
from leeward.files import replace_file
from leeward.formats.tabular import csv_text
from leeward.store import demand_outside_runs, demand_possible
from leeward.wording import count, printable

EXIT_ERROR = 1
EXIT_WRONG_USE = 2
EXIT_INCOMPLETE = 3  # results are missing, failed or invalid
EXIT_STORAGE = 4
EXIT_INTERRUPTED = 130  # the code that shells return after Ctrl-C
RESET = "\x1b[0m"  # control sequence that resets colours
MOST_LISTED = 20  # largest number of similar lines; another command or the log lists the rest
COMPILING = "compiling the wake engine (once on this machine)"


def exit_code(error: Exception) -> int:
    """Return the exit code of a command that ends with this error."""
    if isinstance(error, InputError):
        return EXIT_WRONG_USE
    if isinstance(error, StorageError) or (isinstance(error, OSError) and is_storage_error(error)):
        return EXIT_STORAGE
    return EXIT_ERROR


def note(text: str) -> None:
    """Print a note on standard error."""
    print(f"leeward: note: {text}", file=sys.stderr)


def log(text: str) -> None:
    """Print a line with the time on standard error."""
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", file=sys.stderr, flush=True)


def picked(source: object, *names: str) -> dict[str, Any]:
    """Return a dict with these attributes of an object, for JSON."""
    return {name: getattr(source, name) for name in names}


def counted(*facts: tuple[int, str, str], indent: str = "") -> Iterator[str]:
    """Yield a line for each fact whose count is not 0. facts: count, noun and the rest of the line."""
    yield from (f"{indent}{count(number, noun)} {text}" for number, noun, text in facts if number)


def first_of(lines: Iterable[str], rest: str = "", most: int = MOST_LISTED) -> Iterator[str]:
    """Yield the first lines, and a line with the number of the others. rest: the end of that line."""
    lines = list(lines)
    yield from lines[:most]
    if len(lines) > most:
        yield f"  and {len(lines) - most} more{rest}"


def table(
    rows: Iterable[Sequence[object]],
    *,
    header: Sequence[str] = (),
    right: Sequence[int] = (),
    indent: str = "  ",
    most: int | None = None,
    rest: str = "",
) -> str:
    """Return aligned columns, never wrapped. right: numbers of the right-aligned columns.

    most: the number of rows to show; a last line counts the others. rest: the end of that line.
    """
    rows = list(rows)
    shown = [*([header] if header else []), *rows[:most]]
    texts = [[printable(str(cell)).replace("\n", "\\n") for cell in row] for row in shown]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = []
    for row in texts:
        cells = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    if most is not None and len(rows) > most:
        lines.append(f"{indent}and {len(rows) - most} more{rest}")
    return "\n".join(lines)


def csv_target(csv_file: str | None, as_json: bool = False) -> Path | None:
    """Return the file that --csv names, after checking that it can be written; None without --csv and for "-"."""
    if as_json and csv_file is not None:
        raise InputError("--csv and --json are both given; give one or the other, not both")
    target = None if csv_file in (None, "-") else Path(str(csv_file))
    check_files(target)
    return target


def csv_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV with Unix line ends."""
    return csv_text(header, rows, line_end="\n")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert an OSError to an error that names the file."""
    try:
        yield
    except OSError as error:
        raise write_error(path, error) from error


def write_file(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    with writing(path):
        replace_file(path, text.encode())


def check_files(output: Path | None, picture: Path | None = None, *, is_folder: bool = False) -> None:
    """Raise an error if a file cannot be written. Call this before any work is done. is_folder: output may be a folder.

    The error is an InputError for an invalid name, and a StorageError for a full or read-only disk.
    """
    if picture is not None:
        from leeward.plots import check_picture_path

        check_picture_path(picture)
        if output is not None and output.resolve() == picture.resolve():
            raise InputError(f"{output}: is both --output and --picture; give two different files")
    for path in filter(None, (output, picture)):
        demand_possible(path)
        demand_outside_runs(path)
        if path.is_dir() and not is_folder:
            raise InputError(f"{path}: is a folder; expected the name of a file")
        with writing(path), tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass


class Printable:
    """A text stream that escapes control sequences, which names in files may contain.

    Rich writes to `rich_proxied_file` directly, so its callers must escape their text.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        # do not escape the reset: colorama, which numba may use, sends it when a process that has compiled ends
        self.rich_proxied_file.write(text if text == RESET else printable(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Send everything that is printed through `Printable`."""
    streams = sys.stdout, sys.stderr
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # for terminals that are not UTF-8
    try:
        sys.stdout, sys.stderr = (None if stream is None else Printable(stream) for stream in streams)
        yield
    finally:
        sys.stdout, sys.stderr = streams


def discard_output() -> None:
    """Send the rest of standard output to /dev/null. Call this after a write has failed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def send_control(stream: TextIO, sequence: str) -> None:
    """Send a control sequence to a terminal, without escaping it."""
    getattr(stream, "rich_proxied_file", stream).write(sequence)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether the stream is a terminal. It is None if it was closed before Python started."""
    return stream is not None and stream.isatty()


def compiled_text(seconds: float) -> str:
    """Return the line to print when all kernels are compiled."""
    return f"compiled the wake engine (once on this machine) in {seconds:.0f} s"


def progress_text(done: int, total: int) -> str:
    """Return the counts as text. total: 0 if not known."""
    return f"{done} of {total}" if total else str(done)
