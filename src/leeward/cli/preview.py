"""The preview of a run: short at its start, complete for `leeward run --dry-run`."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.cli.output import picked, table
from leeward.cli.run_summary import capacity_lines
from leeward.wording import count, duration, size

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.campaign.estimate import Estimate
    from leeward.campaign.execution import Execution
    from leeward.campaign.remarks import FarmPlace
    from leeward.errors import LeewardError
    from leeward.layout.starts import Room
    from leeward.runs.context import Options
    from leeward.wind import Site

MOST_FARMS = 12  # in the short form
MOST_TIGHT = 10
BARS = "▁▂▃▄▅▆▇█"
HOURS = 8760
SUM_SLACK = 1e-6  # rounding error of a sum of probabilities

Tasks = Mapping[tuple[int, int], int]  # number of tasks by farm and type


@dataclass(frozen=True)
class Preview:
    """Facts about a campaign before any layout is computed.

    tight: farms and types whose turbines do not fit, by a quick packing. impossible: number of those that raise an
    error in the run.
    """

    campaign: "Campaign"
    tasks: Tasks
    places: "Sequence[FarmPlace]"
    tight: "Mapping[tuple[int, int], Room]"
    impossible: int
    warnings: Sequence[str]

    def lines(self, *, is_short: bool) -> Iterator[str]:
        """Yield the text. is_short: for the start of a run."""
        yield from self._farm_lines(MOST_FARMS if is_short else len(self.places))
        yield from capacity_lines(self.campaign)
        yield from wind_lines(self.campaign.physics.site, with_rose=not is_short)
        if not (self.tight or self.impossible or is_short):
            yield "room: all turbines fit, by a quick packing"
        yield from self.warning_lines()

    def warning_lines(self) -> Iterator[str]:
        """Yield warnings about turbines that do not fit, coordinates, names and probabilities."""
        for (farm, kind), room in list(self.tight.items())[:MOST_TIGHT]:
            turbines = self.campaign.physics.n_turbines(farm, kind)
            yield (
                f"warning: farm {farm} {self.campaign.farms[farm]}, t{kind} {self.campaign.types[kind]}: {turbines} "
                f"turbines do not fit; a quick packing places {room.packed}. Use fewer turbines, a smaller spacing or "
                "a larger area; --retry-failed does not help"
            )
        if len(self.tight) > MOST_TIGHT:
            yield f"warning: and {len(self.tight) - MOST_TIGHT} more farms and types whose turbines do not fit"
        yield from (f"warning: {warning}" for warning in self.warnings)

    def _farm_lines(self, most: int) -> Iterator[str]:
        from leeward.campaign.remarks import projection

        yield f"farms, in {projection(self.campaign)}:"
        rows = [
            [f"  {place.farm_idx} {place.name}", place.centre(), f"{place.area_km2:.1f} km²"]
            for place in self.places[:most]
        ]
        yield table(rows, right=(2,))
        if len(self.places) > most:
            areas = [place.area_km2 for place in self.places]
            sizes = f"areas from {min(areas):.1f} to {max(areas):.1f} km²"
            yield f"  and {len(self.places) - most} more (--dry-run lists all); {sizes}"


def header(campaign: "Campaign", tasks: Tasks) -> str:
    """Return a line with the number of layouts and the settings of the optimiser."""
    from leeward.campaign.remarks import optimiser_words

    product = (
        f"{count(len(campaign.farms), 'farm')} × {count(len(campaign.types), 'turbine type')} × "
        f"{len(campaign.seeds):,} seed{'' if len(campaign.seeds) == 1 else 's'}"
    )
    asked = sum(tasks.values())
    chosen = "" if asked == campaign.n_tasks else f", of which {asked:,} are selected"
    return f"{campaign.name}: {product} = {campaign.n_tasks:,} layouts{chosen}; {optimiser_words(campaign)}"


def preview(campaign: "Campaign", tasks: Tasks) -> Preview:
    """Examine the farms and pack turbines into the selected ones."""
    from leeward.campaign.remarks import farm_places, place_remarks, wind_remarks
    from leeward.campaign.selection import duplicate_names
    from leeward.errors import InputError
    from leeward.layout.starts import room_for

    places = farm_places(campaign)
    warnings = [*campaign.remarks, *place_remarks(campaign, places), *duplicate_names(campaign)]
    warnings += wind_remarks(campaign)
    tight, impossible = {}, 0
    for pair in tasks:
        try:
            room = room_for(campaign.physics.constraints(*pair))
        except InputError:  # the run reports it
            impossible += 1
            continue
        if not room.fits:
            tight[pair] = room
    return Preview(campaign, tasks, places, tight, impossible, warnings)


def wind_lines(site: "Site", *, with_rose: bool) -> Iterator[str]:
    """Yield the kind of wind, its mean speed and the hours it covers."""
    covered = site.covered_hours
    yield f"wind: {site.describe()}; mean speed {site.mean_speed_m_s:.2f} m/s, {covered:.0f} of {HOURS} hours covered"
    missing = HOURS - covered
    if missing > SUM_SLACK * HOURS and "kind" in site.settings():
        yield f"  the probabilities add up to {covered / HOURS:.6g}: {missing:.0f} hours a year yield nothing"
    if with_rose:
        yield f"  {rose_line(site)}"


def rose_line(site: "Site") -> str:
    """Return a wind rose in one line: a bar for each sector, clockwise from north."""
    from leeward.wind import wind_rose

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
    """Errors, time and memory that a run would have.

    done: number of layouts that exist. measured: None if the time is not known.
    """

    done: int
    measured: "Estimate | None"
    workers: int
    errors: "Sequence[LeewardError]"


def forecast(shown: Preview, execution: "Execution", output: Path, options: "Options") -> Forecast:
    """Look for errors; if there are none, measure the speed of the optimiser on this machine."""
    from leeward.campaign.estimate import estimate
    from leeward.campaign.selection import chosen_among
    from leeward.campaign.work import LayoutWork
    from leeward.processes import usable_cores
    from leeward.runs.preflight import preflight

    asked = sum(shown.tasks.values())
    found = preflight(LayoutWork(shown.campaign), output, options, asked, usable_cores())
    done = Counter((key.farm_idx, key.type_idx) for key in chosen_among(shown.campaign, options.only, found.done))
    workers = 1
    if execution.engine == "local":
        workers = max(1, min(execution.workers or usable_cores(), asked))
    measured = None
    if not found.errors:
        left = {pair: number - done[pair] for pair, number in shown.tasks.items() if number > done[pair]}
        measured = estimate(shown.campaign, left)
    return Forecast(done.total(), measured, workers, found.errors)


def forecast_lines(shown: Preview, ahead: Forecast, output: Path) -> Iterator[str]:
    """Yield how many layouts exist, the time for the rest, and every error."""
    asked = sum(shown.tasks.values())
    if ahead.done:
        yield f"{output}: {ahead.done} layouts exist, {max(asked - ahead.done, 0):,} are to be computed"
    if not ahead.errors:
        if ahead.done < asked:
            yield from estimate_lines(ahead.measured, ahead.workers)
        yield "no errors; nothing was computed or written"
        return
    yield from (f"error: {error}" for error in ahead.errors)
    yield "the run would stop with an error; nothing was computed or written"


def estimate_lines(measured: "Estimate | None", workers: int) -> Iterator[str]:
    """Yield the time and the memory that the run will take."""
    from leeward.campaign.estimate import available_memory

    if measured is None:
        yield "time: not known; the recipe is a custom function, or the turbines do not fit"
        return
    each = f"{measured.task_s:.1f} s" if measured.task_s < 120 else duration(measured.task_s)
    rough = ", roughly: placing the turbines took all of the measurement" if measured.is_rough else ""
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
                "wanted_mw": campaign.physics.capacity_wanted_mw(farm),
                "fits": (farm, kind) not in shown.tight,
            }
            for farm, kind in shown.tasks
        ],
        "wind": {
            "kind": site.settings().get("kind", "weibull"),
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
