"""The wind of a study: time series from files, and sites."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward.campaign.fingerprint import canonical, site_settings
from leeward.campaign.physics import site_of
from leeward.campaign.resolve import complete_site
from leeward.campaign.site_spec import SiteSpec
from leeward.errors import InputError
from leeward.readers.tables import Table, read_table
from leeward.study.spec import CALENDAR, WindSpec

if TYPE_CHECKING:
    import numpy.typing as npt

    from leeward.wind import Site

COLUMNS = ("time", "wind_direction_deg", "wind_speed_m_s", "turbulence_intensity")
DEFAULT_TURBULENCE = 0.1


@dataclass(frozen=True)
class Series:
    """A time series of wind: direction (degrees), speed (m/s) and turbulence intensity of each step.

    site: the series at any place, if it varies over the site; the other values are then means over the grid.
    """

    direction: "npt.NDArray[np.float64]"
    speed: "npt.NDArray[np.float64]"
    turbulence_intensity: "npt.NDArray[np.float64]"
    hours_per_step: float
    start: str = ""  # ISO time of the first step, "" without dates
    site: SiteSpec | None = None

    def __len__(self) -> int:
        return len(self.speed)

    @property
    def times(self) -> list[str]:
        """Return the ISO time of each step; empty without dates."""
        if not self.start:
            return []
        first, step = datetime.fromisoformat(self.start), timedelta(hours=self.hours_per_step)
        try:
            times = [first + number * step for number in range(len(self))]
        except OverflowError as error:
            raise InputError(
                f"{len(self)} steps of {self.hours_per_step:g} h from {self.start} end after 9999"
            ) from error
        is_daily = self.hours_per_step % 24.0 == 0.0 and first.time() == datetime.min.time()
        return [time.date().isoformat() if is_daily else time.isoformat() for time in times]


Wind = Series | SiteSpec


def site_with(wind: Wind, turbulence_intensity: float | None) -> "Site":
    """Return the wind as a site. turbulence_intensity: replaces that of the wind, if given."""
    from leeward.wind import Site

    if isinstance(wind, Series) and wind.site is not None:
        return site_with(wind.site, turbulence_intensity)
    if isinstance(wind, Series):
        intensity = wind.turbulence_intensity if turbulence_intensity is None else turbulence_intensity
        return Site.from_time_series(wind.direction, wind.speed, intensity)
    if turbulence_intensity is None:
        return site_of(wind)
    if wind.field is not None:
        return site_of(wind).with_turbulence(turbulence_intensity)
    data = wind.model_dump(exclude_none=True)
    for form in ("weibull", "table", "time_series"):
        if form in data:
            data[form]["turbulence_intensity"] = turbulence_intensity
    return site_of(SiteSpec.model_validate(data))


def wind_differences(new: Mapping[str, Wind], old: Mapping[str, Wind]) -> list[str]:
    """Return a phrase for each wind whose series differ."""
    found = []
    for name in new:
        now, then = new[name], old.get(name)
        if isinstance(now, Series) and isinstance(then, Series):
            parts = ("direction", "speed", "turbulence_intensity", "hours_per_step")
            other = [part for part in parts if not np.array_equal(getattr(now, part), getattr(then, part))]
            other += ["values on the grid"] if not _same_site(now.site, then.site) else []
            found += [f"other {' and '.join(other)} of {name} ({len(now)} steps, was {len(then)})"] if other else []
        elif isinstance(now, Series) or isinstance(then, Series) or not _same_site(now, then):
            found.append(f"another {name}")
    return found


def _same_site(now: SiteSpec | None, then: SiteSpec | None) -> bool:
    """Return whether two sites have the same wind, whatever the names of their files."""
    if now is None or then is None:
        return now is then
    return canonical(site_settings(now)) == canonical(site_settings(then))


def site_wind(spec: WindSpec, folder: Path | None, remarks: list[str] | None = None) -> Wind:
    """Return the wind of a study that names a site, as a series if the site is a time series on a grid.

    remarks: gets notes on how a file was read.
    """
    if spec.site is None:
        raise TypeError("the wind has no site")
    site = complete_site(spec.site, folder, remarks)
    if site.field is None or site.field.kind != "series":
        if spec.hours_per_step or spec.start:
            raise InputError("has a site that is no time series, so hours_per_step and start do not apply; remove them")
        return site
    if spec.hours_per_step is None:
        raise InputError("is a time series on a grid; give hours_per_step, such as 1 for hourly wind")
    conditions = site_of(site).conditions
    if np.ptp(conditions.weight) > 1e-9 * conditions.weight.max():
        raise InputError(
            "has weights of time steps (weight or P), but in a study every step counts the same; remove the weights"
        )
    start = "" if spec.start is None else parse_time(spec.start, "start").isoformat()
    means = (conditions.speed[:, 0], conditions.turbulence_intensity[:, 0])
    return Series(conditions.direction, *means, float(spec.hours_per_step), start, site)


def read_wind(spec: WindSpec, folder: Path | None) -> Series:
    """Return the series of a study file. folder: base of relative paths."""
    if spec.file is None:
        count = len(spec.wind_speed_m_s or ())
        if len(spec.wind_direction_deg or ()) != count:
            raise InputError(
                f"has {count} speeds and {len(spec.wind_direction_deg or ())} directions; expected as many"
            )
        direction, speed = np.array(spec.wind_direction_deg), np.array(spec.wind_speed_m_s)
        intensity = np.full(count, spec.turbulence_intensity or DEFAULT_TURBULENCE)
        start = "" if spec.start is None else parse_time(spec.start, "start").isoformat()
        return _plausible(Series(direction, speed, intensity, float(spec.hours_per_step or 1.0), start), None, spec)
    names: dict[str, str] = {name: spec.columns.get(name, name) for name in COLUMNS}  # type: ignore[call-overload]
    table = read_table((folder or Path()) / spec.file, "a time series of wind", lambda name: name in names.values())
    direction, speed = (np.array(table.numbers(names[name])) for name in ("wind_direction_deg", "wind_speed_m_s"))
    intensity = _turbulence(spec, table)
    series = Series(direction, speed, intensity, float(spec.hours_per_step or 1.0), _start(spec, table))
    return _plausible(series, table, spec)


def _turbulence(spec: WindSpec, table: Table) -> "npt.NDArray[np.float64]":
    name = spec.columns.get("turbulence_intensity", "turbulence_intensity")
    if name in table.columns and spec.turbulence_intensity is not None:
        raise InputError(f"{table.path} has a column {name}, and the study sets turbulence_intensity; remove one")
    if name in table.columns or "turbulence_intensity" in spec.columns:
        return np.array(table.numbers(name))
    return np.full(len(table), spec.turbulence_intensity or DEFAULT_TURBULENCE)


def _start(spec: WindSpec, table: Table) -> str:
    """Return the time of the first row, "" without times. Raise InputError if the steps are not even."""
    name = spec.columns.get("time", "time")
    if name not in table.columns and "time" not in spec.columns:
        return ""
    step, before = timedelta(hours=float(spec.hours_per_step or 1.0)), None
    for row, cell in enumerate(table.column(name)):
        time = parse_time(cell, table.at(row, name))
        if before is not None and time - before != step:
            hours = (time - before).total_seconds() / 3600.0
            raise InputError(
                f"{table.at(row, name)}: is {time.isoformat()}, {hours:g} h after the row before; expected "
                f"{spec.hours_per_step:g} h (hours_per_step): the series has a gap, or its rows are not in order"
            )
        before = time
    return parse_time(table.column(name)[0], table.at(0, name)).isoformat()


def parse_time(value: Any, where: str) -> datetime:
    """Return a time from ISO text. where: its place, for errors."""
    try:
        return datetime.fromisoformat(str(value)).replace(tzinfo=None)
    except ValueError as error:
        raise InputError(f"{where}: is {value!r:.60}; expected a date such as 2012-01-31") from error


def _plausible(series: Series, table: Table | None, spec: WindSpec) -> Series:
    """Return the series; raise InputError with the row of a value that cannot be wind."""
    direction, speed, intensity = series.direction, series.speed, series.turbulence_intensity
    tests = {
        "wind_direction_deg": (direction, (direction >= -360.0) & (direction <= 720.0), "-360 to 720"),
        "wind_speed_m_s": (speed, (speed >= 0.0) & (speed <= 100.0), "0 to 100"),
        "turbulence_intensity": (intensity, (intensity >= 0.0) & (intensity < 1.0), "a fraction, below 1"),
    }
    for name, (values, is_good, expected) in tests.items():
        bad = np.flatnonzero(~is_good)
        if len(bad):
            column = spec.columns.get(name, name)  # type: ignore[call-overload]
            where = f"step {bad[0]}: {name}" if table is None else table.at(int(bad[0]), str(column))
            raise InputError(f"{where}: is {values[bad[0]]:g}; expected {expected}")
    _ = series.times  # raises InputError if the dates cannot be counted
    return series


def windows_of(named: dict[str, str], n_steps: int, times: list[str]) -> list[tuple[str, int, int]]:
    """Return name, first step and end of each window; end: the step after the last."""
    found: list[tuple[str, int, int]] = []
    for name, text in named.items():
        if text in CALENDAR:
            if not times:
                raise InputError(f"windows.{name} is {text}, but the wind has no dates; give the column `time`")
            found += _calendar(times, 7 if text == "months" else 4)
            continue
        first, _, end = text.partition(":")
        window = (name, int(first or 0), int(end or n_steps))
        if not 0 <= window[1] < window[2] <= n_steps:
            raise InputError(f"windows.{name} is {text}; expected steps within the series, 0:{n_steps}")
        found.append(window)
    names = [name for name, _, _ in found]
    if len(set(names)) < len(names):
        raise InputError(f"windows: the name {max(names, key=names.count)} is given twice")
    return found


def _calendar(times: list[str], length: int) -> list[tuple[str, int, int]]:
    """Return a window for each run of steps whose times share their first characters."""
    labels = np.array([time[:length] for time in times])
    starts = np.r_[0, np.flatnonzero(labels[1:] != labels[:-1]) + 1]
    return [(str(labels[a]), int(a), int(b)) for a, b in zip(starts, [*starts[1:], len(labels)], strict=True)]
