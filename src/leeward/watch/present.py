"""List the existing results from file names and indexes.

To list a hundred thousand results in a fraction of a second, one regular expression parses all names and another all
lines; only lines of an unexpected form are parsed one by one.
"""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from leeward.errors import BadSourceError
from leeward.files import NotAFileError, read_regular
from leeward.store import RunPaths, encode_line, entries, is_pack, output_index
from leeward.watch.data import Kind

_CREATED = re.compile(r'"created": ?"([^"]{1,40})"')


@dataclass
class Present:
    """The existing results.

    names: the texts of their keys. figures: by such a text, the number by which results are compared, if known; also of
    results that are gone. created: times of creation, as text. contents: the index lines of these results, the newest
    file first. unreadable: number of unreadable lines. odd: number of files among the shards that are not shards.
    output_results: number of results in the output; None if unknown.
    """

    names: set[str] = field(default_factory=set)
    figures: dict[str, float] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    unreadable: int = 0
    odd: int = 0
    output_results: int | None = None

    def __contains__(self, key: object) -> bool:
        return str(key) in self.names


class _Forms(NamedTuple):
    """Regular expressions of shard names, and of index lines with a key, and with a key and a figure."""

    shard: re.Pattern[str]
    key: re.Pattern[str]
    line: re.Pattern[str]


@lru_cache
def _forms(kind: Kind) -> _Forms:
    number = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
    flags = re.MULTILINE | re.ASCII
    return _Forms(
        re.compile(rf"^({kind.pattern})\.h5$", flags),
        re.compile(rf'\{{"key": ?"({kind.pattern})"', flags),
        re.compile(rf'^\{{"key": ?"({kind.pattern})", ?"{kind.figure}": ?({number}),.*\}}$', flags),
    )


def present_in_run(run: RunPaths, kind: Kind, *, is_busy: bool) -> tuple[Present, list[str]]:
    """Return the results in shards, packs and the output, and the problems of these files.

    Without a valid index the output itself is read, unless is_busy: a run may be writing it.
    """
    present = _results_in_shards(run, kind)
    problems: list[str] = []
    for pack in run.pack_files():
        content, bad = _index_lines(pack)
        problems += bad
        _add_lines(present, content, kind)
    merged = output_index(run.output)
    if merged is None and run.output.is_file() and not (is_busy and present.names):
        merged, bad = _index_lines(run.output)
        problems += bad
    if merged is not None:
        present.output_results = merged.count(b"\n")
        _add_lines(present, merged, kind)
    return present, problems


def _add_lines(present: Present, content: bytes, kind: Kind) -> None:
    """Add the results of index lines; known figures stay. If all are known, only the keys are read, to be quicker."""
    keys = _forms(kind).key.findall(_text(content))
    if len(keys) == content.count(b"\n") and present.figures.keys() >= set(keys):
        present.names.update(keys)
    else:
        other = _results_in_lines(content, kind)
        present.names |= other.names
        present.figures = other.figures | present.figures
        present.contents.append(content)


def _results_in_shards(run: RunPaths, kind: Kind) -> Present:
    """Return the results of the shards by file name, with their index lines."""
    files = [name for folder in names_in(run.results) for name in names_in(run.results / folder)]
    try:
        content = read_regular(run.index)
    except (FileNotFoundError, NotAFileError):
        content = b""
    found = _results_in_lines(content[: content.rfind(b"\n") + 1], kind)  # the last line may be incomplete
    found.names = set(_forms(kind).shard.findall("\n".join(files)))
    found.odd = len(files) - len(found.names)
    return found


def present_in_file(path: Path, kind: Kind) -> tuple[Present, list[str]]:
    """Return the results of a lone file, and its problems; raise BadSourceError if nothing can be read."""
    content, problems = _index_lines(path)
    present = _results_in_lines(content, kind)
    if problems and not present.names:
        raise BadSourceError(f"{problems[0]}; run `leeward check {path}` for details")
    return present, problems


def _results_in_lines(content: bytes, kind: Kind) -> Present:
    """Return the results of index lines."""
    text = _text(content)
    form = _forms(kind).line
    lines = form.findall(text)
    figures = {name: float(figure) for name, figure in lines}
    found = Present(set(figures), figures, _CREATED.findall(text), [content])
    if len(lines) < text.count("\n"):
        _add_others(found, filter(None, form.sub("", text).split("\n")), kind)
    return found


def _add_others(found: Present, lines: Iterable[str], kind: Kind) -> None:
    """Add lines of an unexpected form: without a figure, truncated, or not written by leeward."""
    for text in lines:
        try:
            line = json.loads(text)
            name = str(kind.parse(line["key"]))
            value = line.get(kind.figure)
            figure = float(value) if isinstance(value, float | int) else math.nan
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            found.unreadable += 1  # an InputError is a ValueError
            continue
        found.names.add(name)
        if math.isfinite(figure):
            found.figures[name] = figure


def _index_lines(file: Path) -> tuple[bytes, list[str]]:
    """Return the index lines of a merged file or a pack, and its problems.

    They come from the index beside it. Without a valid index, a child process reads the file itself.
    """
    content = output_index(file, is_pack=is_pack(file))
    if content is not None:
        return content, []
    from leeward.store import FoundResult, read_files  # late, because it loads h5py

    lines, problems = [], []
    for found in read_files([file]):
        if isinstance(found, FoundResult):
            if found.is_valid:
                lines.append(encode_line(found.index_line()))
        elif not found.is_valid:
            reason = f"{found.verdict}, {found.reason}" if found.reason else f"{found.bad} damaged result(s)"
            problems.append(f"{found.path}: {reason}")
    return b"".join(lines), problems


def _text(content: bytes) -> str:
    """Return lines as text. Only keys and numbers are read from it, and they are ASCII."""
    return content.decode("latin-1")


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, in any order, without temporary files; none if it does not exist."""
    return [entry.name for entry in entries(folder) if entry.name[0] != "."]
