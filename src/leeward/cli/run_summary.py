"""What `leeward run` prints at its end."""

import math
import signal
import statistics
from typing import TYPE_CHECKING

from leeward.wording import duration

if TYPE_CHECKING:
    from leeward.engine.run import RunReport
    from leeward.store.index import Brief

MOST_LISTED = 10


def print_summary(report: "RunReport", command: str) -> None:
    """What there is now, and what to do about the rest."""
    if report.results:
        _print_table(report)
    wanted = len(report.wanted)
    missing = len(report.missing)
    print(f"{report.done} of {wanted} layouts are there, {report.computed} computed now, in {duration(report.seconds)}")
    if report.quarantined:
        print(f"{report.quarantined} file(s) did not verify: moved to {report.paths.quarantine}, with the reasons")
    if report.merged is not None and report.merged.count:
        print(f"{report.paths.output}: {report.merged.count} results, each verified after writing")
    others = len(report.results) - report.done
    if others:
        print(f"{others} more result(s), of tasks that were not asked for now, are kept with them")
    print(f"{report.paths.root}: the run directory; results, failures, logs, audit.jsonl")
    _print_failures(report)
    if report.signal is not None and not report.is_complete:
        merged = "" if report.merged is not None else "; the next run merges"
        name = signal.Signals(report.signal).name
        print(f"interrupted by {name}: {missing} layout(s) are missing{merged}. To go on: {command}")
    elif report.engine_lost:
        print(f"{report.engine_lost}: {missing} layout(s) are missing; what is there is stored. To go on: {command}")
    elif missing > len(report.failed):
        print(f"{missing - len(report.failed)} layout(s) are missing. To go on: {command}")
    if report.failed:
        print(f"To try failed ones again: {command} --retry-failed")


def _print_table(report: "RunReport") -> None:
    """Per farm and type: done, failed, best and median AEP, wake loss of the best."""
    cells: dict[tuple[int, int], list[Brief]] = {}
    expected: dict[tuple[int, int], list[int]] = {}
    for key in report.wanted:
        if key in report.results:
            cells.setdefault((key.farm_idx, key.type_idx), []).append(report.results[key])
        counts = expected.setdefault((key.farm_idx, key.type_idx), [0, 0])
        counts[0] += 1
        counts[1] += key in report.failures and key not in report.results
    print(f"{'farm':>5} {'type':>5} {'done':>11} {'failed':>7} {'best GWh':>10} {'median GWh':>11} {'wake loss':>10}")
    for pair in sorted(expected):
        known = [brief for brief in cells.get(pair, []) if not math.isnan(brief.aep)]
        count, failed = expected[pair]
        done = f"{len(cells.get(pair, []))}/{count}"
        if not known:
            print(f"{pair[0]:>5} {pair[1]:>5} {done:>11} {failed:>7} {'-':>10} {'-':>11} {'-':>10}")
            continue
        best = max(known)
        median = statistics.median(brief.aep for brief in known)
        loss = "-" if math.isnan(best.wake_loss) else f"{best.wake_loss:z.2%}"
        print(f"{pair[0]:>5} {pair[1]:>5} {done:>11} {failed:>7} {best.aep:>10.2f} {median:>11.2f} {loss:>10}")


def _print_failures(report: "RunReport") -> None:
    failed = report.failed
    if not failed:
        return
    print(f"{len(failed)} task(s) failed; tracebacks are in {report.paths.failures}:")
    for key in failed[:MOST_LISTED]:
        failure = report.failures[key].failure
        print(f"  {key}: {failure.message if failure else 'cut off too often with its coordinator'}")
    if len(failed) > MOST_LISTED:
        print(f"  and {len(failed) - MOST_LISTED} more: leeward status {report.paths.root}")
