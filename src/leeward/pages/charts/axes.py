"""Scales and axes of the small charts."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leeward.pages.html import Attribute, Child, Markup, tag


@dataclass(frozen=True)
class Scale:
    """From numbers to pixels, in a straight line."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span > 0 else 0.5
        return round(self.start + share * (self.end - self.start), 2)

    def ticks(self, most: int = 5) -> list[float]:
        """Round numbers within the scale."""
        span = self.high - self.low
        if not (span > 0 and math.isfinite(span)):
            return [self.low]
        step = 10.0 ** math.floor(math.log10(span / most))
        step *= next(times for times in (1, 2, 5, 10) if span / (step * times) <= most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def padded(values: Sequence[float], start: float, end: float) -> Scale:
    """A scale over these values, with some room at both ends; it does not magnify rounding errors."""
    low, high = min(values), max(values)
    is_flat = high - low < 1e-5 * max(abs(high), 100.0)  # of an AEP in GWh, or of per cent
    room = 1e-3 * max(abs(high), 1.0) if is_flat else 0.06 * (high - low)
    return Scale(low - room, high + room, start, end)


def figure(width: float, height: float, title: str, *children: Child, kind: str = "chart", role: str = "img") -> Markup:
    """A drawing of so many pixels, smaller where there is no room; the title is read out by screen readers.

    role: "group" where the drawing holds links to be reached by keyboard: of an "img" nothing else is read out.
    """
    size: dict[str, Attribute] = {"viewBox": f"0 0 {width:g} {height:g}", "width": width, "height": height}
    return tag("svg", {**size, "class": kind, "role": role, "aria-label": title}, *children)


def horizontal_grid(scale: Scale, left: float, right: float, unit: str) -> Iterator[Markup]:
    """Lines across, with their numbers at the left, and the unit above them."""
    ticks = scale.ticks()
    digits = decimals(ticks)
    for value in ticks:
        y = scale(value)
        yield tag("line", {"x1": left, "x2": right, "y1": y, "y2": y, "class": "grid"})
        yield text(left - 6, y + 3.5, f"{value:.{digits}f}", anchor="end")
    yield text(2, min(scale.start, scale.end) - 8, unit)


def text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "label") -> Markup:
    """Words in a chart."""
    return tag("text", {"x": round(x, 2), "y": round(y, 2), "text-anchor": anchor, "class": kind}, words)


def decimals(ticks: Sequence[float]) -> int:
    """As many as it takes to tell neighbours apart."""
    step = min((b - a for a, b in itertools.pairwise(ticks)), default=1.0)
    return 0 if step >= 1 else min(6, -math.floor(math.log10(step)))
