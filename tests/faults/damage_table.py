"""What came of the damaged files, in figures."""

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from leeward.campaign import Campaign
from leeward.store.format.layout_result import NO_AEP, Result

if TYPE_CHECKING:
    from damage import Outcome

GROUPS = ("shard", "merged", "foreign")
RIGHT = "right"
UNKNOWN_AEP = "the layout is right, its AEP not known any more"


class Errors:
    """Of foreign results, which have no digest, in damaged files of one kind.

    stored: results in these files. hit: those with a changed byte, or in a file with one in what all share. passed:
    those that were called valid, by how far they are off. caught, unmerged: what of these the campaign objects to, as
    `check --deep` asks it, and as `merge` does, for which only the AEP counts.
    """

    def __init__(self) -> None:
        self.files = self.stored = self.hit = 0
        self.passed: Counter[str] = Counter()
        self.caught: Counter[str] = Counter()
        self.unmerged: Counter[str] = Counter()

    @property
    def wrong(self) -> int:
        return self.passed.total() - self.passed[RIGHT] - self.passed[UNKNOWN_AEP]

    def add(self, stored: Result | None, found: Result, campaign: Campaign) -> str:
        """What the campaign did wrong: content with an AEP that is not that of the layout, or worse; "" if nothing."""
        error = _error(stored, found)
        self.passed[error] += 1
        if error in (RIGHT, UNKNOWN_AEP):
            return ""
        has_objected = campaign.judge(found) is not None
        is_left_out, problem = judged_aside(found, campaign)
        self.caught[error] += has_objected
        self.unmerged[error] += is_left_out
        if not problem and _has_other_aep(found, campaign) and not (has_objected and is_left_out):
            problem = "the AEP is not that of the layout, and the campaign is content"
        return problem

    def __iadd__(self, other: "Errors") -> "Errors":
        self.files, self.stored, self.hit = self.files + other.files, self.stored + other.stored, self.hit + other.hit
        self.passed += other.passed
        self.caught += other.caught
        self.unmerged += other.unmerged
        return self


def _error(stored: Result | None, found: Result) -> str:
    """The gravest, in words."""
    if stored is None:
        return "a key that was not there"
    if stored.layout.shape != found.layout.shape:
        return "another number of turbines"
    metres = float(np.abs(stored.layout - found.layout).max())
    if metres > 0:
        return f"a turbine off by {_class(metres, ((1e-3, '< 1 mm'), (1.0, '1 mm to 1 m')), '> 1 m')}"
    if found.status == NO_AEP:
        return UNKNOWN_AEP
    part = abs(found.aep_gwh - stored.aep_gwh) / stored.aep_gwh
    if part > 0:
        return f"AEP off by {_class(part, ((1e-9, '< 1e-9 of it'), (1e-3, '1e-9 to 1e-3 of it')), '> 1e-3 of it')}"
    if found.rotor_diameter_m != stored.rotor_diameter_m:
        return "another rotor diameter" if math.isfinite(found.rotor_diameter_m) else "no rotor diameter"
    if any(found.details.get(name) != value for name, value in stored.details.items()) or (
        found.details.keys() - stored.details.keys() - {"source", "evidence"}
    ):
        return "only in its notes"
    return RIGHT


def _is_wild(found: Result) -> bool:
    """Farther off than the earth is large."""
    return bool(np.abs(found.layout).max() > 1e8)


def judged_aside(found: Result, campaign: Campaign) -> tuple[bool, str]:
    """Whether a merge leaves the result out for its AEP, and what went wrong: in a copy of this process if it may."""
    if not _is_wild(found):
        return campaign.judge.aep(found) is not None, ""
    child = os.fork()
    if child == 0:
        code = 9
        try:
            reason = campaign.judge.aep(found)
            code = 0 if reason is None else 2 if "nan GWh" in reason else 1
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in (0, 1):
        return code == 1, ""
    how = "was computed with what is no number" if code == 2 else f"ended the process with {code}"
    return False, f"the AEP of a layout with a coordinate of {np.abs(found.layout).max():.2g} m {how}"


def _has_other_aep(found: Result, campaign: Campaign) -> bool:
    """Clearly: by a hundred millionth."""
    key = found.key
    if (
        key not in campaign
        or found.n_turbines != campaign.physics.n_turbines(key.farm_idx, key.type_idx)
        or _is_wild(found)
    ):
        return False
    aep = campaign.problem(key.farm_idx, key.type_idx).farm.aep(found.x, found.y)
    return abs(found.aep_gwh - aep) > 1e-8 * aep


def _class(value: float, classes: Iterable[tuple[float, str]], last: str) -> str:
    return next((name for limit, name in classes if value < limit), last)


def tables(outcome: "Outcome") -> str:
    """All figures."""
    total = outcome.variants.total()
    parts = [
        f"{total} damaged files in {outcome.seconds:.0f} s, {outcome.merges} merges, seed {outcome.seed}: "
        f"{len(outcome.problems)} problems",
        _variants(outcome),
        _verdicts(outcome),
        _foreign(outcome),
        _flips(outcome),
        f"slowest: {outcome.slowest[0]:.1f} s, {outcome.slowest[1]}\n"
        f"peak memory: {outcome.parent_mb:.0f} MB here ({outcome.growth_mb:.0f} MB more than before the first damaged "
        f"file), {outcome.child_mb:.0f} MB in the largest reading process",
        *outcome.notes,
    ]
    return "\n\n".join(parts)


def counts_of(outcome: "Outcome") -> dict[str, float]:
    """Return the figures, so that those of several parts can be added up."""
    counts: Counter[str] = Counter({"merges": outcome.merges, "problems": len(outcome.problems)})
    for (_, group), count in outcome.variants.items():
        counts["files"] += count
        counts[f"files: {group}"] += count
    for verdicts in outcome.files.values():
        counts.update({f"verdict on a file: {verdict}": count for verdict, count in verdicts.items()})
    for verdicts in outcome.results.values():
        counts.update({f"verdict on a result: {verdict}": count for verdict, count in verdicts.items()})
    for kind, errors in outcome.errors.items():
        names = ("files", "results", "hit", "passed on wrong", "caught with a campaign")
        figures = (errors.files, errors.stored, errors.hit, errors.wrong, errors.caught.total())
        counts.update({f"foreign, {kind}: {name}": count for name, count in zip(names, figures, strict=True)})
        if kind.startswith("flipped"):
            for error, count in errors.passed.items():
                counts[f"foreign, off: {error}: passed on"] += count
                counts[f"foreign, off: {error}: caught by check"] += errors.caught[error]
                counts[f"foreign, off: {error}: caught by merge"] += errors.unmerged[error]
    most = {"seconds for a file": outcome.slowest[0], "MB in a reader": outcome.child_mb}
    return dict(counts) | {f"most {name}": round(value, 1) for name, value in most.items()}


def _kinds(outcome: "Outcome") -> list[str]:
    return list(dict.fromkeys(kind for kind, _ in sorted(outcome.variants)))


def _variants(outcome: "Outcome") -> str:
    rows = [["damaged files", *GROUPS, "file verdicts"]]
    for kind in _kinds(outcome):
        counts = [str(outcome.variants[kind, group]) for group in GROUPS]
        rows.append([kind, *counts, _listed(outcome.files[kind])])
    rows.append(["all", *(str(sum(outcome.variants[kind, group] for kind in _kinds(outcome))) for group in GROUPS), ""])
    return _table(rows)


def _verdicts(outcome: "Outcome") -> str:
    rows = [["results in them", "of", "verdicts"]]
    rows += [[kind, group, _listed(verdicts)] for (group, kind), verdicts in sorted(outcome.results.items())]
    return _table(rows)


def _foreign(outcome: "Outcome") -> str:
    rows = [
        [
            "foreign, no digests",
            "files",
            "results",
            "hit",
            "passed",
            "wrong",
            "share of all",
            "of hit",
            "caught",
            "not merged",
        ]
    ]
    for kind, errors in sorted(outcome.errors.items()):
        rows.append([kind, *_figures(errors)])
    return _table(rows)


def _figures(errors: Errors) -> list[str]:
    counts = (errors.files, errors.stored, errors.hit, errors.passed.total(), errors.wrong)
    shares = (errors.wrong / max(errors.stored, 1), errors.wrong / max(errors.hit, 1))
    return [
        *map(str, counts),
        *(f"{share:.1%}" for share in shares),
        str(errors.caught.total()),
        str(errors.unmerged.total()),
    ]


def _flips(outcome: "Outcome") -> str:
    """How far off, and what the campaign's judge says."""
    rows = [["foreign, flipped bits", "passed on", "caught: check --deep --campaign", "merge --campaign"]]
    flips = Errors()
    for kind, errors in outcome.errors.items():
        if kind.startswith("flipped"):
            flips += errors
    for error, count in sorted(flips.passed.items()):
        is_right = error in (RIGHT, UNKNOWN_AEP)
        caught = ["", ""] if is_right else [str(flips.caught[error]), str(flips.unmerged[error])]
        rows.append([error, str(count), *caught])
    return _table(rows)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)
