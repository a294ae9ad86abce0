"""Which results are there: by the names of files, and by what the indexes say of them.

Made for a hundred thousand results in a fraction of a second: names and lines are taken apart by one regular expression
each, in one go, and only lines of another form are read one by one.
"""

import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from leeward.errors import InputError
from leeward.files import NotAFileError, read_regular
from leeward.store import Key, RunPaths, entries, output_index

Pair = tuple[int, int]  # farm_idx and type_idx

_NUMBER = r"(?:0|[1-9]\d{0,9})"
_NAME = re.compile(rf"^(farm{_NUMBER}_t{_NUMBER})_s({_NUMBER})\.h5$", re.MULTILINE | re.ASCII)
_LINE = re.compile(
    rb'^\{"key": ?"(farm\d{1,9}_t\d{1,9})_s(\d{1,10})", ?"aep": ?(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?),.*\}$', re.MULTILINE
)
_PACKED = re.compile(rb'\{"key":"(farm\d{1,9}_t\d{1,9})_s(\d{1,10})"')  # as leeward writes them
_KEY = re.compile(rb'\{"key": ?"(\w{1,60})"')
_CREATED = re.compile(rb'"created": ?"([^"]{1,40})"')


@dataclass
class Present:
    """What is there, and what is known of it.

    seeds: of all results, by farm and turbine type. aeps: GWh, by seed, as far as they are known. created: when results
    were made, as text. unreadable: lines. odd: files among the shards that are none. output_results: None if not known.
    """

    seeds: dict[Pair, set[int]] = field(default_factory=lambda: defaultdict(set))
    aeps: dict[Pair, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    created: list[bytes] = field(default_factory=list)
    unreadable: int = 0
    odd: int = 0
    output_results: int | None = None

    def __contains__(self, key: object) -> bool:
        return isinstance(key, Key) and key.seed in self.seeds.get(key[:2], ())

    @property
    def count(self) -> int:
        return sum(map(len, self.seeds.values()))

    @property
    def known_aeps(self) -> int:
        """Of how many results the AEP is known."""
        return sum(len(aeps.keys() & self.seeds[pair]) for pair, aeps in self.aeps.items())

    def add(self, other: "Present") -> None:
        """What another place has; what is known already stays."""
        for pair, seeds in other.seeds.items():
            self.seeds[pair] |= seeds
        for pair, aeps in other.aeps.items():
            self.aeps[pair] = aeps | self.aeps[pair]


def in_shards(paths: RunPaths) -> Present:
    """Results by the names of their files, with what the index says of them."""
    found = Present()
    names = shard_names(paths)
    seeds = defaultdict(list)
    for prefix, seed in _NAME.findall("\n".join(names)):
        seeds[prefix].append(seed)
    for prefix, texts in seeds.items():
        found.seeds[_pair(prefix)] = set(map(int, texts))
    found.odd = len(names) - found.count
    try:
        content = read_regular(paths.index)
    except (FileNotFoundError, NotAFileError):
        return found
    lines = in_lines(content[: content.rfind(b"\n") + 1])  # the last line may be in the making
    found.aeps, found.created, found.unreadable = lines.aeps, lines.created, lines.unreadable
    return found


def add_packed(present: Present, paths: RunPaths) -> list[Path]:
    """What packs hold, by the indexes beside them, one at a time; which packs have none that fits."""
    untold = []
    for pack in paths.pack_files():
        content = output_index(pack, is_pack=True)
        if content is None:
            untold.append(pack)
        elif not _add_keys(present, content):
            present.add(in_lines(content))
    return untold


def _add_keys(present: Present, content: bytes) -> bool:
    """The keys of lines; whether the AEP of each of them is known already."""
    texts = defaultdict(list)
    for prefix, seed in _PACKED.findall(content):
        texts[prefix].append(seed)
    is_known = True
    for prefix, numbers in texts.items():
        pair, seeds = _pair(prefix.decode()), set(map(int, numbers))
        present.seeds[pair] |= seeds
        is_known = is_known and seeds <= present.aeps[pair].keys()
    return is_known


def in_output(output: Path) -> Present | None:
    """Results by the index beside a merged file; None if there is none that fits it."""
    content = output_index(output)
    return None if content is None else in_lines(content)


def tells_of_more(content: bytes, known: Present) -> bool:
    """Whether lines tell of anything that is not known already: quicker than taking them apart."""
    names = {b"farm%d_t%d_s%d" % (*pair, seed) for pair, seeds in known.seeds.items() for seed in seeds}
    return known.known_aeps < known.count or not names.issuperset(_KEY.findall(content))


def in_lines(content: bytes) -> Present:
    """Results by the lines about them."""
    found = Present(created=_CREATED.findall(content))
    aeps = defaultdict(list)
    lines = _LINE.findall(content)
    for prefix, seed, aep in lines:
        aeps[prefix].append((int(seed), float(aep)))
    for prefix, known in aeps.items():
        pair = _pair(prefix.decode())
        found.aeps[pair] = dict(known)
        found.seeds[pair] = {seed for seed, _ in known}
    if len(lines) < content.count(b"\n"):
        for line in _LINE.sub(b"", content).split(b"\n"):
            if line:
                _add_line(found, line)
    found.output_results = found.count
    return found


def _add_line(found: Present, text: bytes) -> None:
    """A line of another form: without an AEP, torn, or written by somebody else."""
    try:
        line = json.loads(text)
        key = Key.parse(line["key"])
        aep = line.get("aep")
        energy = float(aep) if isinstance(aep, float | int) else math.nan
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        found.unreadable += 1  # an InputError is a ValueError
        return
    found.seeds[key[:2]].add(key.seed)
    if math.isfinite(energy):
        found.aeps[key[:2]][key.seed] = energy


@lru_cache(maxsize=200_000)  # a dashboard meets the same ones at every look
def _pair(prefix: str) -> Pair:
    farm, _, kind = prefix.removeprefix("farm").partition("_t")
    return int(farm), int(kind)


def shard_names(paths: RunPaths) -> list[str]:
    """Of all files that look like shards; what vanishes in between is left out."""
    names: list[str] = []
    for folder in _names_in(paths.results):
        names += _names_in(paths.results / folder)
    return names


def names_in(folder: Path) -> list[str]:
    """Of what is in a folder and not just being written; none if it is not there."""
    return sorted(_names_in(folder))


def _names_in(folder: Path) -> list[str]:
    return [entry.name for entry in entries(folder) if entry.name[0] != "."]


def key_of(name: str) -> Key | None:
    """The key that a name tells, if any."""
    try:
        return Key.parse(name)
    except InputError:
        return None
