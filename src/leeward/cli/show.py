"""`leeward show`: one layout."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli.sources import CampaignFile, Names, given_place
from leeward.cli.tables import check_files, table_text, write_table
from leeward.cli.wording import table
from leeward.wording import duration, work_done

if TYPE_CHECKING:
    from leeward.store.schema import Result

COLUMNS = ["turbine", "x_m", "y_m"]


def show(
    key: Annotated[
        str,
        typer.Argument(
            help='Which one: farm0_t5_s3, "0 5 3" or 0,5,3 (farm, type, seed), or with names "farm name/type name/3".'
        ),
    ],
    path: Annotated[
        Path | None,
        typer.Argument(help="Run directory, layouts.h5, or a folder. Default: the only run in the current folder."),
    ] = None,
    csv_file: Annotated[
        str | None, typer.Option("--csv", metavar="FILE", help="Write the coordinates to a CSV file; - for the screen.")
    ] = None,
    campaign: CampaignFile = None,
) -> None:
    """Show one layout: its coordinates, what it yields and what made it.

    What it yields: AEP, wake loss, closest spacing, and the phases of the optimisation. `leeward plot layout` draws it.

    Exit codes: 0 shown; 1 it is not there, or damaged; 2 wrong use; 4 the storage is unavailable, or FILE cannot be
    written.
    """
    target = None if csv_file in (None, "-") else Path(str(csv_file))
    check_files(target, None)
    from leeward.watch.single import find_result

    place = given_place(path)
    seen = find_result(place, Names(campaign, place).keys([key])[0])
    positions = list(enumerate(seen.result.layout.T.tolist()))
    rows: list[list[object]] = [[turbine, x, y] for turbine, (x, y) in positions]
    if target is not None:
        write_table(target, COLUMNS, rows)
    if csv_file == "-":
        print(table_text(COLUMNS, rows), end="")
        return
    if target is None:
        shown = ([turbine, f"{x:.2f}", f"{y:.2f}"] for turbine, (x, y) in positions)
        print(table([COLUMNS, *shown], right=(0, 1, 2)))
        print()
    print(f"{seen.result.key}  in {seen.file}")
    print(table(_facts(seen.result)))
    if target is not None:
        print(f"written: {target}")


def _facts(result: "Result") -> Iterator[tuple[str, str]]:
    from leeward.watch.rise import phases_of

    details = dict(result.details)
    unknown = "not known" if math.isnan(result.aep) else f"{result.aep:.4f} GWh"
    yield "AEP", unknown
    for name, text in (("wake_loss", "{:z.2%}"), ("min_spacing_m", "{:.1f} m"), ("violation_m", "{:.3g} m")):
        value = details.pop(name, None)
        if isinstance(value, float) and math.isfinite(value):
            yield name.removesuffix("_m").replace("_", " ").replace("min ", "closest "), text.format(value)
    yield "turbines", f"{result.n_turbines}, rotor {result.diameter:g} m"
    yield from ((f"after {phase}", f"{aep:.4f} GWh") for phase, aep in phases_of(result).items())
    for name in ("phases", "aep_by_phase"):
        details.pop(name, None)
    yield "stopped", f"{result.stop_reason or 'not known'}, after {result.steps} steps"
    seconds = details.pop("seconds", None)
    if isinstance(seconds, float) and math.isfinite(seconds):
        yield "took", duration(seconds) if seconds >= 10 else f"{seconds:.2f} s"
    work = details.pop("work", None)
    if isinstance(work, int) and work:  # none is known of somebody's own recipe
        yield "work", work_done(work)
    yield "status", result.status
    yield "origin", result.origin
    yield "fingerprint", result.fingerprint or "none"
    yield "digest", result.digest
    for name, value in sorted(details.items()):
        yield name.replace("_", " "), f"{value:.6g}" if isinstance(value, float) else str(value)
