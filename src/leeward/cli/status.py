"""`leeward status`: show the progress of a campaign."""

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from typer import Exit, Option

from leeward import watch
from leeward.capacity import yield_words
from leeward.cli.options import PLACE, Options
from leeward.cli.output import EXIT_INCOMPLETE, EXIT_INTERRUPTED, MOST_LISTED, counted, is_terminal, send_control, table
from leeward.cli.sources import given_place
from leeward.wording import command, count, duration, json_text, run_command

WATCH_EVERY_S = 2.0
WIDTH_ELSEWHERE = 120  # without a terminal


class StatusOptions(Options):
    """Show the progress of a campaign or a study and what to do next.

    Prints totals, a table of farms and turbine types (of a study: of targets, with the mean AEP and the losses so far)
    with done / expected, failed tasks with the last line of their traceback, live workers with their task and the age
    of their heartbeat, workers that look hung, the rate and the time left.

    The command only reads and takes no lock. It works during a run, and from another machine that sees the same disk.
    It counts results without verifying them; `leeward check` verifies them. The names in the JSON are stable.

    Exit codes: 0 complete, or still running; 3 not running, and results are missing or failed; 1 PATH cannot be read;
    2 usage error; 4 the storage is unavailable.
    """

    path: Path | None = PLACE
    seed: list[int] | None = Option(None, help="Count only tasks of this seed. Repeatable. Default: all.")
    watch: bool = Option(False, "--watch", "-w", help="Repeat every 2 s until Ctrl-C or the end of the run.")
    as_json: bool = Option(False, "--json", help="Print the snapshot as JSON.")


def status(options: StatusOptions) -> None:
    """Print a snapshot of a campaign."""
    place = given_place(options.path)
    code = EXIT_INTERRUPTED
    try:
        while True:
            seen = watch.snapshot(place, seeds=options.seed)
            is_well = seen.is_running or not (seen.missing or seen.failed)
            code = 0 if is_well else EXIT_INCOMPLETE  # set the code before printing, because Ctrl-C may interrupt it
            _print(seen, options)
            if not (options.watch and seen.is_running):
                break
            time.sleep(WATCH_EVERY_S)
    except KeyboardInterrupt:
        pass  # Ctrl-C is the usual end of --watch
    raise Exit(code)


def _print(seen: "watch.Progress", options: StatusOptions) -> None:
    if options.as_json:
        print(json_text(seen.as_data()), flush=True)
        return
    if options.watch and is_terminal(sys.stdout):
        send_control(sys.stdout, "\x1b[H\x1b[2J")
    elif options.watch:
        print(time.strftime("--- %Y-%m-%d %H:%M:%S"))
    print("\n".join(lines(seen)), flush=True)


def lines(seen: "watch.Progress") -> Iterator[str]:
    """Yield the snapshot as text."""
    unknown = "study not known" if isinstance(seen, watch.StudySnapshot) else "campaign not known"
    yield f"{seen.campaign or unknown}: {seen.run or seen.output}"
    yield f"  {_totals(seen)}"
    yield f"  {_activity(seen)}"
    if isinstance(seen, watch.StudySnapshot):
        yield from _targets(seen)
    elif isinstance(seen, watch.Snapshot):
        yield from _farms(seen)
    yield from _workers(seen)
    yield from _failures(seen)
    odd = counted(
        (seen.quarantined, "file", f"in quarantine: {Path(str(seen.run)) / 'quarantine'}"),
        (seen.unreadable_lines, "line", "of the index cannot be read; the next run repairs it"),
    )
    notes = [f"note: {text}" for text in (*seen.notes, *odd)]
    yield from ["", *notes] if notes else []
    yield ""
    yield from _next(seen)


def _totals(seen: "watch.Progress") -> str:
    if seen.expected is None:
        return f"{count(seen.done, seen.NOUN)}; the expected number is not known"
    parts = [f"{seen.done} of {count(seen.expected, seen.NOUN)} done"]
    if seen.missing:
        more = [f"{number} {what}" for number, what in ((seen.failed, "failed"), (seen.running, "running")) if number]
        parts.append(f"{seen.missing} missing" + (f" ({', '.join(more)})" if more else ""))
    if seen.beyond:
        parts.append(f"{seen.beyond} more outside the {'study' if seen.KIND == 'evaluations' else 'campaign'}")
    return ", ".join(parts)


def _activity(seen: "watch.Progress") -> str:
    if seen.owner is None or seen.owner.state != "alive":
        return seen.activity
    rate = seen.rate_per_hour
    pace = "" if rate is None else f"; {rate:{'.1f' if rate < 1000 else '.0f'}} {seen.NOUN}s an hour"
    if not seen.missing:
        return f"{seen.activity}{pace}"
    left = "; time left not known yet" if seen.seconds_left is None else f", {duration(seen.seconds_left)} left"
    return f"{seen.activity}{pace}{left}"


def _farms(seen: "watch.Snapshot") -> Iterator[str]:
    """Yield the optimiser, and the table of farms and types."""
    if seen.optimiser:
        yield f"  {seen.optimiser}"
    if seen.cells:
        yield ""
        yield from _grid(seen)


def _targets(seen: "watch.StudySnapshot") -> Iterator[str]:
    """Yield a table of targets with done / expected, and the AEP and losses of what is done."""
    if not seen.rows:
        return
    yield ""
    header = ["target", "", "done", "mean GWh", "mean loss", "least", "largest"]
    rows = (_target_row(row) for row in seen.rows)
    more = f" targets: {command('status', seen.path, '--json')}"
    yield table(rows, header=header, right=range(2, len(header)), most=MOST_LISTED, rest=more)
    if seen.case and any(row.mean_wake_loss is not None for row in seen.rows):
        yield f"  of the case {seen.case}, over the scenarios that are done, by their weights"
    if seen.failed:
        yield "  (n!): n tasks failed"


def _target_row(row: "watch.TargetSeen") -> list[object]:
    aep = "-" if row.mean_aep_gwh is None else f"{row.mean_aep_gwh:.2f}"
    losses = (
        "-" if loss is None else f"{loss:z.2%}"
        for loss in (row.mean_wake_loss, row.least_wake_loss, row.largest_wake_loss)
    )
    return [row.target_idx, row.name, _cell_text(row), aep, *losses]


def _grid(seen: "watch.Snapshot") -> Iterator[str]:
    """Yield a table of farms x types with done / expected, as many types side by side as the width allows."""
    cells = {(cell.farm_idx, cell.type_idx): cell for cell in seen.cells}
    types = list(seen.types)
    room = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else WIDTH_ELSEWHERE
    widest = max(len(_cell_text(cell)) for cell in seen.cells)
    names = max(len(f"{farm} {name}") for farm, name in seen.farms.items())
    across = max(1, (room - names - 60) // (widest + 2))
    for start in range(0, len(types), across):
        shown = types[start : start + across]
        yield table(_grid_rows(seen, cells, shown), right=range(1, len(shown) + 4))
    if any(seen.types.values()):
        yield "  types: " + "; ".join(f"t{number} {name}" for number, name in seen.types.items())
    yield from (f"  {remark}" for remark in seen.remarks)
    if seen.failed:
        yield "  (n!): n tasks failed"


def _grid_rows(
    seen: "watch.Snapshot", cells: dict[tuple[int, int], "watch.Cell"], types: Sequence[int]
) -> Iterator[list[str]]:
    yield ["farm", *(f"t{number}" for number in types), "best GWh", "MW", "capacity factor", ""]
    for farm, name in seen.farms.items():
        row = [cells[farm, kind] for kind in types]
        words = ["-", "-", "-", ""]
        best = watch.best_cell(row, farm in seen.by_capacity_factor)
        if best is not None:
            power = "-" if best.installed_mw is None else f"{best.installed_mw:.6g}"
            factor = "-" if best.capacity_factor is None else f"{best.capacity_factor:.2%}"
            words = [f"{best.best_aep_gwh:.2f}", power, factor, str(best.best_key)]
        yield [f"{farm} {name}", *map(_cell_text, row), *words]


def _cell_text(cell: "watch.Cell | watch.TargetSeen") -> str:
    expected = "" if cell.expected is None else f"/{cell.expected}"
    return f"{cell.done}{expected}" + (f" ({cell.failed}!)" if cell.failed else "")


def _workers(seen: "watch.Progress") -> Iterator[str]:
    """Yield workers by host if there are several, then the first ones by name, hung ones first."""
    if not seen.workers:
        return
    hosts = seen.hosts
    yield ""
    yield f"{count(len(seen.workers), 'live worker')}{f' on {len(hosts)} hosts' if len(hosts) > 1 else ''}:"
    if len(hosts) > 1:
        yield table(
            [
                *(host.host, count(host.workers, "worker"), f"{host.busy} with a task"),
                f"{host.hung} LOOK HUNG" if host.hung else "",
            ]
            for host in hosts
        )
        yield ""
    order = sorted(seen.workers, key=lambda worker: (not worker.looks_hung, worker.host, worker.name))
    rows = (_worker_row(worker, seen) for worker in order)
    yield table(rows, most=MOST_LISTED, rest=f": {command('status', seen.path, '--json')}")


def _worker_row(worker: "watch.WorkerSeen", seen: "watch.Progress") -> list[str]:
    best = ""
    if worker.best_aep_gwh is not None and isinstance(seen, watch.Snapshot):
        key = watch.key_of(worker.task or "")
        power = "" if key is None else yield_words(worker.best_aep_gwh, seen.installed_mw(*key[:2]))
        best = f", {worker.best_aep_gwh:.2f} GWh so far" + (f" ({power})" if power else "")
    doing = f"{worker.phase or worker.state}, step {worker.step}{best}" if worker.task else worker.state
    since = "" if worker.task_s is None else f"for {duration(worker.task_s)}"
    hung = "LOOKS HUNG: " if worker.looks_hung else ""
    return [worker.name, worker.task or "-", doing, since, f"{hung}last heartbeat {duration(worker.age_s)} ago"]


def _failures(seen: "watch.Progress") -> Iterator[str]:
    for final, title in ((True, "failed"), (False, "failed and will be retried")):
        failures = [failed for failed in seen.failures if failed.final is final]
        if not failures:
            continue
        yield ""
        yield f"{count(len(failures), 'task')} {title}:"
        rows = ([failed.key, f"{failed.kind}, attempt {failed.attempts}", failed.message] for failed in failures)
        yield table(rows, most=MOST_LISTED, rest=f": {command('missing', seen.path, '--failed')}")
        if final:
            yield f"  tracebacks: {Path(str(seen.run)) / 'failures'}"


def _next(seen: "watch.Progress") -> Iterator[str]:
    if seen.run and seen.output_exists and seen.output_results is not None:
        yield f"{seen.output}: {count(seen.output_results, 'result')}, as of the last merge"
    resume = run_command(seen.output, kind=seen.KIND)
    if seen.run and not seen.is_running:
        if (seen.missing or 0) > seen.failed:
            yield f"To resume: {command(*resume)}"
        elif not seen.output_exists and seen.done:
            yield f"The results are not merged yet. To merge them into {seen.output}: {command(*resume)}"
        out_of_room = sum(failed.final and watch.is_out_of_room(failed.message) for failed in seen.failures)
        yield from counted((out_of_room, "task", f"without room for the turbines. {watch.MAKE_ROOM}"))
        if seen.failed > out_of_room:
            yield f"To retry failed tasks: {command(*resume, '--retry-failed')}"
    elif seen.missing and not seen.run:
        yield f"To list the missing tasks: {command('missing', seen.path)}"
    places = [seen.run] if seen.run else []
    places += [seen.output] if seen.output_exists else []
    yield f"The results are counted, not verified. To verify them: {command('check', *places)}"
