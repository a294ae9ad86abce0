"""Which results are there: by the names of files, and by what the indexes say of them.

Made for a hundred thousand results in a fraction of a second: names and lines are taken apart by one regular expression
each, in one go, and only lines of another form are read one by one.
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
from leeward.store import RunPaths, encode_line, entries, index_line, is_pack, output_index
from leeward.watch.data import Kind

_CREATED = re.compile(r'"created": ?"([^"]{1,40})"')


@dataclass
class Present:
    """What is there, and what is known of it.

    names: the texts of the keys of all results. figures: by such a text, the number that results of the kind are
    compared by; as far as it is known, and of results that are gone too. created: when results were made, as text.
    unreadable: lines. odd: files among the shards that are none. output_results: None if not known.
    """

    names: set[str] = field(default_factory=set)
    figures: dict[str, float] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    unreadable: int = 0
    odd: int = 0
    output_results: int | None = None

    def __contains__(self, key: object) -> bool:
        return str(key) in self.names

    def add(self, other: "Present") -> None:
        """What another place has; what is known already stays."""
        self.names |= other.names
        for name, figure in other.figures.items():
            self.figures.setdefault(name, figure)


class _Forms(NamedTuple):
    """Of the names of shards, and of lines as leeward writes them: the keys, and keys with their figures."""

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
    """Return the results in shards, packs, and those that only the output has; and what is wrong with these files.

    Without an index that fits, the output itself is read; but not if is_busy: it may be being made.
    """
    present = _in_shards(run, kind)
    problems: list[str] = []
    for pack in run.pack_files():
        content, bad = lines_of(pack)
        problems += bad
        _add_lines(present, content, kind)
    merged = output_index(run.output)
    if merged is None and run.output.is_file() and not (is_busy and present.names):
        merged, bad = lines_of(run.output)
        problems += bad
    if merged is not None:
        present.output_results = merged.count(b"\n")
        _add_lines(present, merged, kind)
    return present, problems


def _add_lines(present: Present, content: bytes, kind: Kind) -> None:
    """Add the results that lines are about. Where all figures are known, only the keys are read: that is quicker."""
    keys = _forms(kind).key.findall(_text(content))
    if len(keys) == content.count(b"\n") and present.figures.keys() >= set(keys):
        present.names.update(keys)
    else:
        present.add(in_lines(content, kind))


def _in_shards(run: RunPaths, kind: Kind) -> Present:
    """Results by the names of their files, with what the index says of them."""
    files = [name for folder in _names_in(run.results) for name in _names_in(run.results / folder)]
    try:
        content = read_regular(run.index)
    except (FileNotFoundError, NotAFileError):
        content = b""
    found = in_lines(content[: content.rfind(b"\n") + 1], kind)  # the last line may be in the making
    found.names = set(_forms(kind).shard.findall("\n".join(files)))
    found.odd = len(files) - len(found.names)
    return found


def present_in_file(path: Path, kind: Kind) -> tuple[Present, list[str]]:
    """Return the results of a lone file, and what is wrong with it; BadSourceError if nothing can be read."""
    content, problems = lines_of(path)
    present = in_lines(content, kind)
    if problems and not present.names:
        raise BadSourceError(f"{problems[0]}; `leeward check {path}` says more")
    return present, problems


def in_lines(content: bytes, kind: Kind) -> Present:
    """Results by the lines about them."""
    text = _text(content)
    form = _forms(kind).line
    lines = form.findall(text)
    figures = {name: float(figure) for name, figure in lines}
    found = Present(set(figures), figures, _CREATED.findall(text))
    if len(lines) < text.count("\n"):
        _add_others(found, filter(None, form.sub("", text).split("\n")), kind)
    return found


def _add_others(found: Present, lines: Iterable[str], kind: Kind) -> None:
    """Add what lines of another form say: without a figure, torn, or written by somebody else."""
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


def lines_of(file: Path) -> tuple[bytes, list[str]]:
    """Return the lines about the results of a merged file or a pack, and what is wrong with it.

    They come from the index beside it. Without one that fits, another process reads the file itself.
    """
    content = output_index(file, is_pack=is_pack(file))
    if content is not None:
        return content, []
    from leeward.store import FoundResult, read_files  # only now: with them comes h5py

    lines, problems = [], []
    for found in read_files([file]):
        if isinstance(found, FoundResult):
            if found.is_valid:
                lines.append(encode_line(index_line(found)))
        elif not found.is_valid:
            reason = f"{found.verdict}, {found.reason}" if found.reason else f"{found.bad} damaged result(s)"
            problems.append(f"{found.path}: {reason}")
    return b"".join(lines), problems


def _text(content: bytes) -> str:
    """Return lines as text. Only keys and numbers are read from it, which are ASCII."""
    return content.decode("latin-1")


def names_in(folder: Path) -> list[str]:
    """Of what is in a folder and not just being written; none if it is not there."""
    return sorted(_names_in(folder))


def _names_in(folder: Path) -> list[str]:
    return [entry.name for entry in entries(folder) if entry.name[0] != "."]
