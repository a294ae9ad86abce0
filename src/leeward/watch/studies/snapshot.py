"""The snapshot of a study: targets × scenarios."""

import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from leeward.errors import InputError
from leeward.store import EvaluationKey, whole_lines
from leeward.watch.data import Kind, Progress
from leeward.watch.places import work_text
from leeward.watch.present import Present
from leeward.watch.read import Reading, progress_of

if TYPE_CHECKING:
    from leeward.study import Study

MOST_BLOCKS = 24  # blocks of scenarios in a summary
_ROUND: list[int] = [times * 10**power for power in range(9) for times in (1, 2, 5)]  # scenarios of a block
_NUMBER = rb"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_LINE = re.compile(  # lines of another form are parsed one by one
    rb'^\{"key": ?"(target\d{1,9}_scenario\d{1,9})", ?"aep": ?%s, ?"gross_aep_gwh": ?%s, ?"wake_loss": ?%s, ?'
    rb'"cases": ?"([a-z,]*)".*\}$' % (_NUMBER, _NUMBER, _NUMBER),
    re.MULTILINE,
)


@dataclass(frozen=True)
class Figures:
    """The numbers of an evaluation in the index. aep_gwh: in `case`. wake_loss: fraction. NaN: unknown."""

    aep_gwh: float
    gross_aep_gwh: float
    wake_loss: float
    case: str


@dataclass(frozen=True)
class TargetSeen:
    """The counts of one target, and the means over the scenarios that are done, by their weights.

    mean_wake_loss, least_wake_loss, largest_wake_loss: fractions of the gross yield. Unknown values are None.
    """

    target_idx: int
    name: str
    done: int
    expected: int | None
    failed: int = 0
    running: int = 0
    mean_aep_gwh: float | None = None
    mean_wake_loss: float | None = None
    least_wake_loss: float | None = None
    largest_wake_loss: float | None = None


@dataclass(frozen=True)
class BlockSeen:
    """The counts of one target in a block of scenarios, `first` to `last`."""

    target_idx: int
    first: int
    last: int
    done: int
    expected: int | None
    failed: int = 0
    running: int = 0


@dataclass(frozen=True, kw_only=True)
class StudySnapshot(Progress):
    """The state of a run directory or a lone file of evaluations; counted, not verified.

    targets: names by number. scenarios: their number, None if unknown. case: the case of AEP and
    losses. rows: by target. blocks: by target and by block of scenarios.
    """

    KIND: ClassVar[str] = "evaluations"
    NOUN: ClassVar[str] = "evaluation"

    targets: Mapping[int, str]
    scenarios: int | None
    case: str
    rows: tuple[TargetSeen, ...]
    blocks: tuple[BlockSeen, ...]

    def as_data(self) -> dict[str, Any]:
        return {"kind": self.KIND, **super().as_data()}


@dataclass(frozen=True, eq=False)
class StudyObservation:
    """A snapshot and the data that it was counted from. campaign: the study, None if unknown. keys: of all results."""

    snapshot: StudySnapshot
    campaign: "Study | None"
    present: Present
    keys: frozenset[EvaluationKey]

    @functools.cached_property
    def figures(self) -> Mapping[EvaluationKey, Figures]:
        """The numbers of the results in the index, by key."""
        return _figures_of(self.present, self.keys)


def study_of(path: Path) -> "Study | None":
    """Return the study of a run directory or a file of results; None if it has none."""
    found = work_text(path)
    return None if found is None else study_from(*found)


@lru_cache(maxsize=2)
def study_from(text: str, where: str) -> "Study":
    """Parse a study once, because every page needs it."""
    from leeward.study import Study  # late, because it loads h5py

    return Study.from_text(text, where)


def _observe(reading: Reading, selection: Collection[int] | None) -> StudyObservation:
    """Return the observation. selection: seeds, which a study does not have."""
    if selection:
        raise InputError("--seed selects layouts, but these are evaluations of a study, which have no seed")
    study: Study | None = reading.work
    keys = frozenset(map(_key, reading.present.names))
    done = {key for key in keys if study is None or key in study}
    failures = {key: failed for key, failed in reading.failures.items() if study is None or key in study}
    running = {key for key in reading.running_keys if study is None or key in study}
    targets = dict(study.targets) if study is not None else dict.fromkeys(sorted({key.target_idx for key in keys}), "")
    failed = {key for key, failure in failures.items() if failure.final}
    figures = _figures_of(reading.present, done)
    cases = Counter(one.case for one in figures.values())
    seen = StudySnapshot(
        **vars(
            progress_of(
                reading, None if study is None else study.n_tasks, len(done), len(keys - done), failures, len(running)
            )
        ),
        targets=targets,
        scenarios=None if study is None else len(study.scenarios),
        case=study.cases[0] if study is not None else (cases.most_common(1)[0][0] if cases else ""),
        rows=tuple(_rows(targets, study, done, failed, running, figures)),
        blocks=tuple(_blocks(targets, study, done, failed, running)),
    )
    return StudyObservation(seen, study, reading.present, keys)


EVALUATIONS = Kind(
    parse=EvaluationKey.parse,
    pattern=r"target(?!0\d)\d{1,9}_scenario(?!0\d)\d{1,9}",
    figure="aep",
    work_of=study_of,
    show=_observe,
)


@lru_cache(maxsize=200_000)  # a dashboard parses the same ones at every update
def _key(name: str) -> EvaluationKey:
    return EvaluationKey.parse(name)


Keys = Collection[EvaluationKey]


def _rows(
    targets: Mapping[int, str],
    study: "Study | None",
    done: Keys,
    failed: Keys,
    running: Keys,
    figures: Mapping[EvaluationKey, Figures],
) -> Iterable[TargetSeen]:
    """Yield the row of each target."""
    counts = [Counter(key.target_idx for key in keys) for keys in (done, failed, running)]
    weights = {} if study is None else study.weights
    known: dict[int, list[tuple[float, Figures]]] = defaultdict(list)
    for key, one in figures.items():
        if math.isfinite(one.aep_gwh) and math.isfinite(one.wake_loss):
            known[key.target_idx].append((weights.get(key.scenario_idx, 1.0), one))
    expected = None if study is None else len(study.scenarios)
    for target, name in targets.items():
        n_done, n_failed, n_running = (count[target] for count in counts)
        of = known[target]
        total = sum(weight for weight, _ in of)
        means: tuple[float | None, ...] = (None, None)
        if total > 0:
            means = (sum(w * one.aep_gwh for w, one in of) / total, sum(w * one.wake_loss for w, one in of) / total)
        ends = (min(one.wake_loss for _, one in of), max(one.wake_loss for _, one in of)) if of else (None, None)
        yield TargetSeen(target, name, n_done, expected, n_failed, n_running, *means, *ends)


def _blocks(
    targets: Mapping[int, str], study: "Study | None", done: Keys, failed: Keys, running: Keys
) -> Iterable[BlockSeen]:
    """Yield the counts of each target in each block of scenarios."""
    scenarios = sorted(study.scenarios if study is not None else {key.scenario_idx for key in done})
    if not scenarios:
        return
    size = block_size(scenarios)
    expected = Counter(scenario // size for scenario in scenarios)
    counts = [Counter((key.target_idx, key.scenario_idx // size) for key in keys) for keys in (done, failed, running)]
    ends = {block: (block * size, block * size + size - 1) for block in expected}
    for target in targets:
        for block in sorted(expected):
            n_done, n_failed, n_running = (count[target, block] for count in counts)
            first, last = max(ends[block][0], scenarios[0]), min(ends[block][1], scenarios[-1])
            n_expected = None if study is None else expected[block]
            yield BlockSeen(target, first, last, n_done, n_expected, n_failed, n_running)


def block_size(scenarios: Sequence[int]) -> int:
    """Return a round number of scenarios, so that at most MOST_BLOCKS blocks cover them. scenarios: sorted numbers."""
    return next(size for size in _ROUND if scenarios[-1] // size - scenarios[0] // size < MOST_BLOCKS)


def _figures_of(present: Present, keys: Keys) -> dict[EvaluationKey, Figures]:
    """Return the numbers of these results, as far as the index has them."""
    found: dict[str, Figures] = {}
    for content in reversed(present.contents):
        found |= _figures(content)
    return {key: found[name] for key in keys if (name := str(key)) in found}


@lru_cache(maxsize=8)
def _figures(content: bytes) -> dict[str, Figures]:
    """Return the numbers in index lines, by the text of the key."""
    lines = _LINE.findall(content)
    if len(lines) == content.count(b"\n"):
        return {
            name.decode(): Figures(float(aep), float(gross), float(loss), cases.decode().partition(",")[0])
            for name, aep, gross, loss, cases in lines
        }
    return {
        str(line["key"]): Figures(
            _number(line.get("aep")),
            _number(line.get("gross_aep_gwh")),
            _number(line.get("wake_loss")),
            str(line.get("cases", "")).partition(",")[0],
        )
        for line in whole_lines(content)
    }


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
