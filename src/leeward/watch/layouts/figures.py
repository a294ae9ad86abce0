"""Figures of results other than AEP, as columns, from the indexes; known lines are not read again."""

import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from leeward.errors import StorageError
from leeward.files import NotAFileError, open_regular
from leeward.store import Key, is_pack, output_index, output_index_path, whole_lines
from leeward.watch.layouts.cells import key_of
from leeward.watch.places import identity, run_of
from leeward.watch.present import lines_of

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
FIGURES = ("n_turbines", "wake_loss", "min_spacing_m", "seconds")

# a single turbine has no spacing; older indexes say Infinity
_NUMBER = rb"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|null|NaN|-?Infinity)"
_LINE = re.compile(  # lines of another form are parsed one by one
    rb'^\{"key":"farm(\d{1,9})_t(\d{1,9})_s(\d{1,10})","aep":[^,"\n]*,"n_turbines":(\d{1,9}),"diameter":[^,"\n]*,'
    rb'"status":"[\w-]*","origin":"[\w-]*","fingerprint":"\w*"'
    rb'(?:,"wake_loss":%s)?(?:,"min_spacing_m":%s)?(?:,"seconds":%s)?(?:,"[^\n]*)?\}$' % (_NUMBER, _NUMBER, _NUMBER),
    re.MULTILINE,
)


@dataclass(frozen=True, eq=False)
class Lines:
    """Index lines as columns. keys: farm, type, seed, shape (3, lines). figures: as FIGURES, shape (4, lines)."""

    keys: Integers
    figures: Floats

    @classmethod
    def of(cls, content: bytes) -> "Lines":
        """Parse whole lines, in their order."""
        found = _LINE.findall(content)
        if len(found) == content.count(b"\n"):
            columns = list(zip(*found, strict=True)) or [()] * 7
            keys = np.array([[int(text) for text in column] for column in columns[:3]], dtype=np.int64)
            figures = np.array([[_number_in(text) for text in column] for column in columns[3:]])
        else:
            rows = list(_rows(whole_lines(content)))
            keys = np.array([key for key, _ in rows], dtype=np.int64).reshape(-1, 3).T
            figures = np.array([numbers for _, numbers in rows], dtype=np.float64).reshape(-1, len(FIGURES)).T
        figures[~np.isfinite(figures)] = np.nan
        return cls(keys, figures)


class Figures:
    """The figures of all results of a run directory or file, from its indexes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._whole: dict[Path, tuple[object, Lines]] = {}
        self._growing = _Growing()

    def refresh(self) -> None:
        """Read new lines."""
        try:
            run = run_of(self._path)
            files = [self._path] if run is None else [run.output, *run.pack_files()]
            self._whole = {file: self._lines_of(file, is_lone=run is None) for file in files}
            self._growing.read(None if run is None else run.index)
        except OSError as error:
            raise StorageError(f"{self._path}: cannot be read ({error})") from error

    def parts(self) -> Iterator[Lines]:
        """Yield the lines, newest last: the index of a run is newer than its merged file."""
        yield from (lines for _, lines in self._whole.values())
        yield from self._growing.parts

    def _lines_of(self, file: Path, *, is_lone: bool) -> tuple[object, Lines]:
        which = identity(file), identity(output_index_path(file))
        known = self._whole.get(file)
        if known is not None and known[0] == which:
            return known
        content = lines_of(file)[0] if is_lone else output_index(file, is_pack=is_pack(file))
        return which, Lines.of(content or b"")


@dataclass
class _Growing:
    """The growing index of a run. end: bytes read so far; last: the line before that."""

    parts: list[Lines] = field(default_factory=list)
    end: int = 0
    last: bytes = b""

    def read(self, index: Path | None) -> None:
        """Read the lines added since; all lines if the file was replaced. The last line may be incomplete."""
        try:
            if index is None:
                raise FileNotFoundError
            with os.fdopen(open_regular(index), "rb") as file:
                content = self._new(file)
        except (FileNotFoundError, NotAFileError):
            self.parts, self.end, self.last = [], 0, b""
            return
        content = content[: content.rfind(b"\n") + 1]
        if content:
            self.end += len(content)
            self.last = content[content[:-1].rfind(b"\n") + 1 :]
            self.parts.append(Lines.of(content))
        if len(self.parts) > 100:
            keys, figures = ([getattr(lines, name) for lines in self.parts] for name in ("keys", "figures"))
            self.parts = [Lines(np.concatenate(keys, axis=1), np.concatenate(figures, axis=1))]

    def _new(self, file: BinaryIO) -> bytes:
        file.seek(self.end - len(self.last))
        content = file.read()
        if content.startswith(self.last):
            return content[len(self.last) :]
        self.parts, self.end, self.last = [], 0, b""
        file.seek(0)
        return file.read()


def _rows(lines: Iterable[dict[str, Any]]) -> Iterator[tuple[Key, list[float]]]:
    for line in lines:
        key = key_of(str(line["key"]))
        if key is not None:
            yield key, [_number(line.get(name)) for name in FIGURES]


def _number_in(text: bytes) -> float:
    return math.nan if text in (b"", b"null") else float(text)


def _number(value: object) -> float:
    """Return a value as float; NaN if it is not a number or too large."""
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan
