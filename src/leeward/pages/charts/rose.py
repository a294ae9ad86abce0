"""The wind rose."""

import math

from leeward.charts import Scale, class_name, colour, uncovered
from leeward.pages.charts.axes import figure, text
from leeward.pages.html import Markup, tag
from leeward.pages.parts import figure_with
from leeward.wind import WindRose

SIDE, MIDDLE, RADIUS = 260.0, 130.0, 96.0


def rose_chart(rose: WindRose) -> Markup:
    """Return a wind rose with its key; the length of a wedge is the frequency of its sector and speed class."""
    totals = rose.frequency.sum(axis=1)
    most = float(totals.max(initial=0.0)) or 1.0
    out = Scale(0.0, most, 0.0, RADIUS)
    wedges, rings, shares = [], [], []
    for share in out.ticks(4)[1:]:
        rings.append(tag("circle", {"cx": MIDDLE, "cy": MIDDLE, "r": out(share), "class": "ring"}))
        words = f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"
        shares.append(text(MIDDLE + 3, MIDDLE - RADIUS * share / most - 2, words, kind="label on-top"))
    for sector, direction in enumerate(rose.directions.tolist()):
        inner = 0.0
        for level, share in enumerate(rose.frequency[sector].tolist()):
            if share <= 0:
                continue
            words = f"{direction:g}°, {class_name(rose.speed_classes, level, ' m/s')}: {share:.2%} of the time"
            shape = _wedge(
                direction, 0.42 * 360.0 / len(totals), RADIUS * inner / most, RADIUS * (inner + share) / most
            )
            style = {"d": shape, "fill": _fill(rose, level), "class": "wedge"}
            wedges.append(tag("path", style, tag("title", None, words)))
            inner += share
    names = [text(*_place(RADIUS + 16, 90.0 * i, down=4), name, anchor="middle") for i, name in enumerate("NESW")]
    picture = figure(SIDE, SIDE, "wind rose", rings, wedges, shares, names, kind="rose")
    words = " ".join(f"{part}." for part in ("Frequency by direction and wind speed", uncovered(rose)) if part)
    return figure_with(picture, _key(rose), tag("p", None, words))


def _key(rose: WindRose) -> Markup:
    """Return the key of the speed classes."""
    entries = []
    for level in range(len(rose.speed_classes)):
        square = tag("rect", {"width": 10, "height": 10, "fill": _fill(rose, level)})
        swatch = figure(10, 10, "", square, kind="swatch")
        entries.append(tag("li", None, swatch, " ", class_name(rose.speed_classes, level, " m/s")))
    return tag("ul", {"class": "key-list"}, *entries)


def _fill(rose: WindRose, level: int) -> str:
    return colour(level / max(1, len(rose.speed_classes) - 1))


def _wedge(direction: float, half: float, inner: float, outer: float) -> str:
    corners = ((inner, -half), (outer, -half), (outer, half), (inner, half))
    a, b, c, d = ("{:.2f} {:.2f}".format(*_place(radius, direction + turn)) for radius, turn in corners)
    large = int(2 * half > 180)
    return f"M{a}L{b}A{outer:.2f} {outer:.2f} 0 {large} 1 {c}L{d}A{inner:.2f} {inner:.2f} 0 {large} 0 {a}Z"


def _place(radius: float, direction: float, down: float = 0.0) -> tuple[float, float]:
    """Return pixels from the left and from the top. direction: degrees clockwise from north."""
    angle = math.radians(direction)
    return MIDDLE + radius * math.sin(angle), MIDDLE - radius * math.cos(angle) + down
