"""The wind rose."""

import math

from leeward.pages.charts.axes import figure, text
from leeward.pages.charts.colours import colour
from leeward.pages.html import Markup, join, tag
from leeward.wind import WindRose

SIDE, MIDDLE, RADIUS = 260.0, 130.0, 96.0


def rose_chart(rose: WindRose) -> Markup:
    """How often the wind blows from each sector, by speed: a wedge is as long as its share of the time."""
    totals = rose.frequency.sum(axis=1)
    most = float(totals.max(initial=0.0)) or 1.0
    count = len(totals)
    wedges, rings, shares = [], [], []
    for share in _rings(most):
        radius = RADIUS * share / most
        rings.append(tag("circle", {"cx": MIDDLE, "cy": MIDDLE, "r": round(radius, 2), "class": "ring"}))
        words = f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"
        shares.append(text(MIDDLE + 3, MIDDLE - radius - 2, words, kind="label on-top"))
    for sector, direction in enumerate(rose.directions.tolist()):
        inner = 0.0
        for level, share in enumerate(rose.frequency[sector].tolist()):
            if share <= 0:
                continue
            words = f"{direction:g}°, {_class_name(rose, level)}: {share:.2%} of the time"
            path = _wedge(direction, 0.42 * 360.0 / count, RADIUS * inner / most, RADIUS * (inner + share) / most)
            fill = colour(level / max(1, len(rose.speed_classes) - 1))
            wedges.append(tag("path", {"d": path, "fill": fill, "class": "wedge"}, tag("title", None, words)))
            inner += share
    names = [
        text(MIDDLE + (RADIUS + 16) * math.sin(a), MIDDLE - (RADIUS + 16) * math.cos(a) + 4, name, anchor="middle")
        for name, a in zip("NESW", (0, math.pi / 2, math.pi, 3 * math.pi / 2), strict=True)
    ]
    return figure(SIDE, SIDE, "wind rose", rings, wedges, shares, names, kind="rose")


def rose_key(rose: WindRose) -> Markup:
    """Which colour is which class of speed."""
    entries = []
    for level in range(len(rose.speed_classes)):
        fill = colour(level / max(1, len(rose.speed_classes) - 1))
        swatch = figure(10, 10, "", tag("rect", {"width": 10, "height": 10, "fill": fill}), kind="swatch")
        entries.append(tag("li", None, swatch, " ", _class_name(rose, level)))
    return tag("ul", {"class": "key-list"}, join(entries))


def _class_name(rose: WindRose, level: int) -> str:
    low = rose.speed_classes[level]
    if level + 1 == len(rose.speed_classes):
        return f"{low:g} m/s and more"
    return f"{low:g} to {rose.speed_classes[level + 1]:g} m/s"


def _wedge(direction: float, half: float, inner: float, outer: float) -> str:
    start, end = math.radians(direction - half), math.radians(direction + half)
    large = int(2 * half > 180)

    def point(radius: float, angle: float) -> str:
        return f"{MIDDLE + radius * math.sin(angle):.2f} {MIDDLE - radius * math.cos(angle):.2f}"

    return (
        f"M{point(inner, start)}L{point(outer, start)}A{outer:.2f} {outer:.2f} 0 {large} 1 {point(outer, end)}"
        f"L{point(inner, end)}A{inner:.2f} {inner:.2f} 0 {large} 0 {point(inner, start)}Z"
    )


def _rings(most: float) -> list[float]:
    """Two or three round shares up to the largest."""
    step = next(step for step in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if most / step < 4)
    return [step * number for number in range(1, int(most / step) + 1)]
