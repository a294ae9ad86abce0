"""Scales, colours, series and map rules shared by the charts of pages (SVG) and of plots (matplotlib)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import shapely

from leeward.wind import WindRose

Array = npt.NDArray[np.float64]
Bounds = tuple[float, float, float, float]  # left, low, right, high, m

SAME_SHARE = 1e-5  # fraction of an AEP or of 100 %; axes do not magnify smaller differences
FEW_POINTS = 20  # a curve with at most this many points is dashed
LABEL_GRID = 24  # candidate places for a label, per side of the area
NEAR = 0.35  # fraction of the longer side of a map; neighbours up to this far outside are shown
LEAST_LOSS_SPAN = 1e-4  # fraction; a colour scale over a smaller range would show rounding errors

# viridis at eleven points, from small to large values; S. van der Walt and N. Smith, 2015, public domain (CC0)
_STEPS = bytes.fromhex("fde725 bddf26 7ad151 44bf70 22a884 21908d 2a788e 355f8d 414487 482475 440154")
# Okabe and Ito's colours for colour-blind readers, without black, and without yellow, which is too pale on paper
_APART = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")

# --- scales and labels -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """A linear scale from numbers to pixels."""

    low: float
    high: float
    start: float
    end: float

    def share(self, value: float) -> float:
        """Return the position of a value on the scale, from 0 to 1."""
        span = self.high - self.low
        return (value - self.low) / span if span > 0 else 0.5

    def __call__(self, value: float) -> float:
        return round(self.start + self.share(value) * (self.end - self.start), 2)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round numbers within the scale."""
        span = self.high - self.low
        if not (span > 0 and math.isfinite(span)):
            return [self.low]
        step = 10.0 ** math.floor(math.log10(span / most))
        step *= next(times for times in (1, 2, 5, 10) if span / (step * times) <= most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def padded(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a scale over these values with a margin at both ends. It does not magnify rounding errors."""
    low, high = min(values), max(values)
    is_flat = high - low < SAME_SHARE * max(abs(high), 100.0)  # AEP in GWh, or per cent
    margin = 1e-3 * max(abs(high), 1.0) if is_flat else 0.06 * (high - low)
    return Scale(low - margin, high + margin, start, end)


def decimals(ticks: Sequence[float], most: int = 6) -> int:
    """Return the number of decimals, at most `most`, that show all ticks without rounding."""
    texts = [f"{tick:z.{most}f}" for tick in ticks]
    return most - min((len(text) - len(text.rstrip("0")) for text in texts), default=most)


def shortened(words: str, longest: int) -> str:
    """Return a text cut to this many characters."""
    return words if len(words) <= longest else f"{words[: max(longest - 1, 0)]}…"


# --- colours: even steps of lightness, safe for colour-blind readers -------------------------------------------------


def colour(share: float) -> str:
    """Return the colour of a value from 0 (light) to 1 (dark)."""
    place = min(max(share, 0.0), 1.0) * (len(_STEPS) // 3 - 1)
    below = min(int(place), len(_STEPS) // 3 - 2)
    ends = zip(_STEPS[3 * below :][:3], _STEPS[3 * below + 3 :][:3], strict=True)
    return "#" + "".join(f"{round(low + (place - below) * (high - low)):02x}" for low, high in ends)


def colours_apart(count: int) -> Sequence[str]:
    """Return `count` distinct colours: a fixed list of six, or steps of the scale if there are more."""
    return _APART[:count] if count <= len(_APART) else [colour(1.0 - 0.92 * i / (count - 1)) for i in range(count)]


def loss_range(losses: Iterable[Array | None]) -> tuple[float, float] | None:
    """Return the limits of the colour scale of these wake losses (fractions); None if all are unknown.

    The limits differ even if all wake losses are equal.
    """
    known = [loss for loss in losses if loss is not None and len(loss)]
    if not known:
        return None
    every = np.concatenate(known)
    low, high = float(every.min()), float(every.max())
    if high - low >= LEAST_LOSS_SPAN:
        return low, high
    low = max((low + high - LEAST_LOSS_SPAN) / 2.0, 0.0)
    return low, low + LEAST_LOSS_SPAN


# --- values over seeds, optimiser steps and wind directions ----------------------------------------------------------


class Quantity(NamedTuple):
    """A quantity to compare layouts by. order: its column in task tables. scale: factor from column to unit."""

    name: str
    unit: str
    order: Literal["aep_gwh", "capacity_factor"]
    scale: float


AEP = Quantity("AEP", "GWh", "aep_gwh", 1.0)
CAPACITY_FACTOR = Quantity("capacity factor", "%", "capacity_factor", 100.0)


# the loss that the difference between a case of a study and its case `all` is, by case
LOST = {"internal": "lost to neighbours", "external": "lost to the farm's own wakes"}
LOST_COLOURS = ("#E69F00", "#56B4E9")  # none of those of four cases


def lost_power(power_mw: Mapping[str, Array]) -> dict[str, Array]:
    """Return the power that wakes cost in each step, by the words of LOST. power_mw: farm power by case."""
    if "all" not in power_mw:
        return {}
    return {words: power_mw[case] - power_mw["all"] for case, words in LOST.items() if case in power_mw}


def above_median(values: Array) -> Array:
    """Return the deviation of the values from their median in per cent."""
    return np.asarray(100.0 * (values / np.median(values) - 1.0))


def is_curve(history: Array | None) -> bool:
    """Return whether a history, shape (2, steps), has at least two known points."""
    return history is not None and int(np.isfinite(history).all(axis=0).sum()) > 1


def class_name(speed_classes: Sequence[float], level: int, unit: str = "") -> str:
    """Return the name of a wind speed class."""
    low, *higher = speed_classes[level : level + 2]
    return f"{low:g} to {higher[0]:g}{unit}" if higher else f"{low:g}{unit} or more"


def uncovered(rose: WindRose) -> str:
    """Return a sentence on the fraction of time that a wind rose does not cover; "" if it covers all."""
    rest = 1.0 - float(rose.frequency.sum())
    return f"{100.0 * rest:.1f} % of the time is not covered by the site's conditions" if rest >= 5e-4 else ""


# --- maps ------------------------------------------------------------------------------------------------------------


def near(bounds: Bounds, x: Array, y: Array) -> tuple[Array, Array]:
    """Return the turbines at x, y that are within the bounds or close to them."""
    left, low, right, high = bounds
    reach = NEAR * max(right - left, high - low)
    is_near = (x >= left - reach) & (x <= right + reach) & (y >= low - reach) & (y <= high + reach)
    return x[is_near], y[is_near]


def label_place(shape: shapely.Geometry, x: npt.ArrayLike = (), y: npt.ArrayLike = ()) -> tuple[float, float]:
    """Return the point of an area, m, that is farthest from its border and from the turbines at x, y."""
    left, low, right, high = shape.bounds
    across, up = np.meshgrid(np.linspace(left, right, LABEL_GRID), np.linspace(low, high, LABEL_GRID))
    places = shapely.points(across.ravel(), up.ravel())
    border = shapely.boundary(shape)
    shapely.prepare([shape, border])
    room = np.where(shapely.contains(shape, places), shapely.distance(border, places), -1.0)
    if room.max() <= 0.0:  # the area is narrower than the spacing of the grid
        inside = shape.representative_point()
        return float(inside.x), float(inside.y)
    turbines = shapely.MultiPoint(np.column_stack([x, y]))
    if not turbines.is_empty:
        room = np.minimum(room, shapely.distance(turbines, places))
    best = int(np.argmax(room))
    return float(across.flat[best]), float(up.flat[best])


def apart(places: Sequence[tuple[float, float]], widths: Sequence[float], height: float) -> list[int]:
    """Return the indices of the labels, centred on these places, that do not overlap an earlier one."""
    x, y = np.array(places, dtype=np.float64).reshape(-1, 2).T
    wide = np.array(widths, dtype=np.float64)
    shown: list[int] = []
    for i in range(len(places)):
        is_over = (np.abs(x[shown] - x[i]) < (wide[shown] + wide[i]) / 2) & (np.abs(y[shown] - y[i]) < height)
        if not is_over.any():
            shown.append(i)
    return shown
