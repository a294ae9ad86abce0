"""The preview of a run: short at its start, complete for `leeward run --dry-run`."""

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.campaign import Campaign, Execution, remarks
from leeward.campaign.estimate import Estimate, available_memory, estimate
from leeward.campaign.execution import with_user_defaults
from leeward.campaign.selection import chosen_among, duplicate_names, task_counts
from leeward.campaign.work import LayoutWork
from leeward.cli.output import check_files, exit_code, first_of, picked, table
from leeward.cli.run_summary import capacity_lines
from leeward.errors import InputError, LeewardError
from leeward.layout.starts import Room, room_for
from leeward.processes import usable_cores
from leeward.runs.context import Options as RunSettings
from leeward.runs.preflight import preflight
from leeward.store import Key
from leeward.wind import Site, wind_rose
from leeward.wording import count, duration, json_text, size

if TYPE_CHECKING:
    from leeward.cli.run import RunOptions

MOST_FARMS = 12  # lines of farms in the short preview
MOST_TIGHT = 10
BARS = "▁▂▃▄▅▆▇█"
HOURS = 8760
SUM_SLACK = 1e-6  # rounding error of a sum of probabilities

Tasks = Mapping[tuple[int, int], int]  # number of tasks by farm and type
Selection = str | Collection[Key] | None  # None selects all tasks


@dataclass(frozen=True)
class Preview:
    """Facts about a campaign before any layout is computed.

    tight: farms and types whose turbines do not fit in a quick packing. impossible: the number of farms and types that
    raise an error in the run.
    """

    campaign: Campaign
    tasks: Tasks
    places: Sequence[remarks.FarmPlace]
    tight: Mapping[tuple[int, int], Room]
    impossible: int
    warnings: Sequence[str]

    def lines(self, *, is_short: bool) -> Iterator[str]:
        """Yield the lines of the preview. is_short: only those for the start of a run."""
        yield from self._farm_lines(MOST_FARMS if is_short else len(self.places))
        yield from capacity_lines(self.campaign)
        yield from wind_lines(self.campaign.physics.site, with_rose=not is_short)
        if not (self.tight or self.impossible or is_short):
            yield "room: all turbines fit (tested with a quick packing)"
        yield from self.warning_lines()

    def warning_lines(self) -> Iterator[str]:
        """Yield warnings about turbines that do not fit, coordinates, names and probabilities."""
        campaign = self.campaign
        lines = (
            f"warning: farm {farm} {campaign.farms[farm]}, t{kind} {campaign.types[kind]}: "
            f"{campaign.physics.n_turbines(farm, kind)} turbines do not fit; a quick packing places {room.packed}. Use "
            "fewer turbines, a smaller spacing or a larger area; --retry-failed does not help"
            for (farm, kind), room in self.tight.items()
        )
        yield from first_of(lines, " farms and types whose turbines do not fit", MOST_TIGHT)
        yield from (f"warning: {warning}" for warning in self.warnings)

    def _farm_lines(self, most: int) -> Iterator[str]:
        yield f"farms, in {remarks.projection(self.campaign)}:"
        rows = (
            [f"{place.farm_idx} {place.name}", place.centre(), f"{place.area_km2:.1f} km²"] for place in self.places
        )
        areas = [place.area_km2 for place in self.places]
        sizes = f"areas from {min(areas):.1f} to {max(areas):.1f} km²"
        yield table(rows, right=(2,), most=most, rest=f" (--dry-run lists all); {sizes}")


def header(campaign: Campaign, tasks: Tasks) -> str:
    """Return a line with the number of layouts and the settings of the optimiser."""
    product = (
        f"{count(len(campaign.farms), 'farm')} × {count(len(campaign.types), 'turbine type')} × "
        f"{len(campaign.seeds):,} seed{'' if len(campaign.seeds) == 1 else 's'}"
    )
    asked = sum(tasks.values())
    chosen = "" if asked == campaign.n_tasks else f", {asked:,} of them selected"
    return f"{campaign.name}: {product} = {campaign.n_tasks:,} layouts{chosen}; {remarks.optimiser_words(campaign)}"


def preview(campaign: Campaign, tasks: Tasks) -> Preview:
    """Return the preview: examine the farms, and pack turbines into the selected ones."""
    places = remarks.farm_places(campaign)
    warnings = [*campaign.remarks, *remarks.place_remarks(campaign, places), *duplicate_names(campaign)]
    warnings += remarks.wind_remarks(campaign)
    tight, impossible = {}, 0
    for pair in tasks:
        try:
            room = room_for(campaign.physics.constraints(*pair))
        except InputError:  # the run reports this error
            impossible += 1
            continue
        if not room.fits:
            tight[pair] = room
    return Preview(campaign, tasks, places, tight, impossible, warnings)


def _wind_kind(site: Site) -> str:
    """Return the form of the wind data: "weibull", or that of a table, list or series."""
    return site.settings().get("kind", "weibull") if site.field is None else site.field.data.kind


def wind_lines(site: Site, *, with_rose: bool) -> Iterator[str]:
    """Yield the kind of wind, its mean speed and the hours it covers."""
    covered = site.covered_hours
    before = " before speed-up and shear" if site.field is not None and site.field.scales_speed else ""
    speed = f"mean speed {site.mean_speed_m_s:.2f} m/s{before}"
    yield f"wind: {site.describe()}; {speed}, {covered:.0f} of {HOURS} hours covered"
    missing = HOURS - covered
    if missing > SUM_SLACK * HOURS and _wind_kind(site) != "weibull":
        yield f"  the probabilities add up to {covered / HOURS:.6g}: {missing:.0f} hours a year yield nothing"
    if with_rose:
        yield f"  {rose_line(site)}"


def rose_line(site: Site) -> str:
    """Return a wind rose in one line: a bar for each sector, clockwise from north."""
    rose = wind_rose(site)
    share = rose.frequency.sum(axis=1)
    largest = int(share.argmax())
    bars = "".join(BARS[min(int(len(BARS) * value / share[largest]), len(BARS) - 1)] for value in share)
    return (
        f"{len(share)} sectors from north clockwise: {bars}  most from {rose.directions[largest]:g}°, "
        f"{share[largest]:.1%} of the time"
    )


@dataclass(frozen=True)
class Forecast:
    """The errors, time and memory of a run before it starts.

    done: number of layouts that exist. measured: None if the time is not known.
    """

    done: int
    measured: Estimate | None
    workers: int
    errors: Sequence[LeewardError]


def forecast(shown: Preview, execution: Execution, output: Path, options: RunSettings) -> Forecast:
    """Return the forecast: look for errors and, without any, measure the speed of the optimiser on this machine."""
    asked = sum(shown.tasks.values())
    found = preflight(LayoutWork(shown.campaign), output, options, asked, usable_cores())
    done = Counter((key.farm_idx, key.type_idx) for key in chosen_among(shown.campaign, options.only, found.done))
    workers = 1
    if execution.engine == "local":
        workers = max(1, min(execution.workers or usable_cores(), asked))
    measured = None
    if not found.errors and shown.campaign.device is None:  # the speed of this machine's cores says nothing about a GPU
        left = {pair: number - done[pair] for pair, number in shown.tasks.items() if number > done[pair]}
        measured = estimate(shown.campaign, left)
    return Forecast(done.total(), measured, workers, found.errors)


def forecast_lines(shown: Preview, ahead: Forecast, output: Path) -> Iterator[str]:
    """Yield the number of layouts that exist, the time for the rest, and every error."""
    asked = sum(shown.tasks.values())
    if ahead.done:
        yield f"{output}: {ahead.done} layouts exist, {max(asked - ahead.done, 0):,} are to be computed"
    if not ahead.errors:
        if ahead.done < asked:
            if shown.campaign.device is None:
                yield from estimate_lines(ahead.measured, ahead.workers)
            else:
                yield "time: not known; only the cores of this machine can be measured, not its GPUs"
        yield "no errors; nothing was computed or written"
        return
    yield from (f"error: {error}" for error in ahead.errors)
    yield "the run would stop with an error; nothing was computed or written"


def estimate_lines(measured: Estimate | None, workers: int) -> Iterator[str]:
    """Yield the time and the memory that the run will take."""
    if measured is None:
        yield "time: not known; the recipe is a custom function, or the turbines do not fit"
        return
    each = f"{measured.task_s:.1f} s" if measured.task_s < 120 else duration(measured.task_s)
    rough = "; a rough estimate, because only placing was measured" if measured.is_rough else ""
    wall = max(measured.core_s / workers, measured.task_s)
    yield (
        f"time: about {duration(wall)} with {count(workers, 'worker')} on free cores, up to {each} a layout, "
        f"{duration(measured.core_s)} of CPU time in all{rough}"
    )
    needed, free = measured.memory_bytes * workers, available_memory()
    known = "" if free is None else f"; {size(free)} are available"
    yield f"memory: about {size(measured.memory_bytes)} a worker, {size(needed)} in all{known}"
    if free is not None and needed > free:
        yield "warning: that is more than the available memory; use fewer workers"


def preview_data(shown: Preview, ahead: Forecast | None = None) -> dict[str, Any]:
    """Return the preview as plain data, for --json. ahead: the forecast of a dry run."""
    campaign, site = shown.campaign, shown.campaign.physics.site
    data: dict[str, Any] = {
        "event": "preview",
        "campaign": campaign.name,
        "tasks": sum(shown.tasks.values()),
        "crs": campaign.crs,
        "farms": [picked(place, "farm_idx", "name", "area_km2", "longitude", "latitude") for place in shown.places],
        "types": [
            {
                "farm_idx": farm,
                "type_idx": kind,
                "name": campaign.types[kind],
                "n_turbines": campaign.physics.n_turbines(farm, kind),
                "installed_mw": campaign.physics.installed_mw(farm, kind),
                "capacity_wanted_mw": campaign.physics.capacity_wanted_mw(farm),
                "fits": (farm, kind) not in shown.tight,
            }
            for farm, kind in shown.tasks
        ],
        "wind": {
            "kind": _wind_kind(site),
            "description": site.describe(),
            **picked(site, "mean_speed_m_s", "covered_hours"),
        },
        "warnings": list(shown.warnings),
    }
    if ahead is not None:
        measured = ahead.measured
        data |= {
            "event": "dry-run",
            "cpu_seconds": None if measured is None else measured.core_s,
            "worker_memory_bytes": None if measured is None else measured.memory_bytes,
            **picked(ahead, "done", "workers"),
            "errors": [str(error) for error in ahead.errors],
        }
    return data


def introduce(chosen: Campaign, selection: Selection, options: "RunOptions") -> None:
    """Print the preview at the start of a run: farms, turbines, wind and warnings. --quiet: only warnings."""
    tasks = task_counts(chosen, selection)
    if options.as_json:
        print(json_text(preview_data(preview(chosen, tasks))), flush=True)
    elif sys.stderr is not None:
        if not options.quiet:
            print(header(chosen, tasks), file=sys.stderr, flush=True)
        shown = preview(chosen, tasks)
        for line in shown.warning_lines() if options.quiet else shown.lines(is_short=True):
            print(line, file=sys.stderr, flush=True)


def dry_run(chosen: Campaign, selection: Selection, options: "RunOptions") -> int:
    """Print the complete preview, and return the exit code: that of the first error of the run, or 0."""
    as_json, picture = options.as_json, options.picture
    check_files(None, picture)
    tasks = task_counts(chosen, selection)
    if not as_json:
        print(header(chosen, tasks), flush=True)
    shown = preview(chosen, tasks)
    if not as_json:
        print("\n".join(shown.lines(is_short=False)), flush=True)
    wanted = RunSettings(selection, adopt=tuple(options.adopt or ()), new=options.new, take_over=options.take_over)
    ahead = forecast(shown, with_user_defaults(chosen.execution), options.output, wanted)
    if as_json:
        print(json_text(preview_data(shown, ahead)))
    else:
        print("\n".join(forecast_lines(shown, ahead, options.output)))
    if picture is not None:
        from leeward.cli.figures import save
        from leeward.plots import wind_rose_figure

        save(wind_rose_figure(chosen.physics.site, title=f"wind of {chosen.name}"), picture)
    return exit_code(ahead.errors[0]) if ahead.errors else 0
