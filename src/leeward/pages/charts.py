"""Charts as SVG text, without scripts or fonts; the style sheet sets the colours."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from leeward.charts import (
    AEP,
    FEW_POINTS,
    Array,
    Quantity,
    Scale,
    above_median,
    class_name,
    colour,
    decimals,
    is_curve,
    padded,
    shortened,
    uncovered,
)
from leeward.pages.html import Attribute, Child, Markup, join, tag
from leeward.pages.parts import Links, captioned
from leeward.store import Key
from leeward.wind import WindRose

WIDTH, HEIGHT = 640.0, 250.0  # size of a chart, pixels
LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 30.0, 34.0  # margins, pixels
MOST_DOTS = 400  # most dots per chart; more are drawn as a line
BAR = 120.0, 8.0  # width and height of `share_bar`, pixels, before the browser stretches it
SIDE, MIDDLE, RADIUS = 260.0, 130.0, 96.0  # sizes of a wind rose, pixels


def figure(width: float, height: float, title: str, *children: Child, kind: str = "chart", role: str = "img") -> Markup:
    """Return a drawing of at most this size in pixels. title: for screen readers.

    role: "group" if the drawing has links, because screen readers ignore the content of an "img".
    """
    size: dict[str, Attribute] = {"viewBox": f"0 0 {width:g} {height:g}", "width": width, "height": height}
    return tag("svg", {**size, "class": kind, "role": role, "aria-label": title}, *children)


def horizontal_grid(scale: Scale, left: float, right: float, unit: str) -> Iterator[Markup]:
    """Yield horizontal grid lines, their numbers on the left, and the unit above."""
    ticks = scale.ticks()
    digits = decimals(ticks)
    for value in ticks:
        y = scale(value)
        yield tag("line", {"x1": left, "x2": right, "y1": y, "y2": y, "class": "grid"})
        yield text(left - 6, y + 3.5, f"{value:.{digits}f}", anchor="end")
    yield text(2, min(scale.start, scale.end) - 8, unit)


def text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "label") -> Markup:
    return tag("text", {"x": round(x, 2), "y": round(y, 2), "text-anchor": anchor, "class": kind}, words)


def path(d: str, kind: str, title: str | None = None) -> Markup:
    """Return a line or an outline. title: a tooltip."""
    return tag("path", {"d": d, "class": kind}, None if title is None else tag("title", None, title))


def path_through(points: Iterable[tuple[float, float]]) -> str:
    """Return the path of a line through these points."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def share_bar(counts: Mapping[str, int], total: int, label: str) -> Markup:
    """Return a bar with one part for each state. counts: tasks by state, in the order of the parts."""
    across, height = BAR
    left, parts = 0.0, [tag("rect", {"width": across, "height": height, "class": "fill-missing"})]
    for state, count in counts.items():
        width = across * count / total if total else 0.0
        place: dict[str, Attribute] = {"x": round(left, 2), "y": 0, "width": round(width, 2), "height": height}
        parts += [tag("rect", {**place, "class": f"fill-{state}"})] if count else []
        left += width
    stretched = {"viewBox": f"0 0 {across:g} {height:g}", "preserveAspectRatio": "none", "class": "bar"}
    return tag("svg", {**stretched, "role": "img", "aria-label": label}, *parts)


# --- AEP over seeds --------------------------------------------------------------------------------------------------


def rank_chart(keys: Sequence[Key], aeps: Array, links: Links) -> Markup:
    """Return a chart of AEP over rank, for all seeds of a farm and turbine type. keys, aeps: from best to worst."""
    across = Scale(1, max(len(aeps), 2), LEFT + 10, WIDTH - RIGHT - 10)
    up = padded(aeps.tolist(), HEIGHT - BOTTOM, TOP)
    lower, middle, upper = np.quantile(aeps, (0.25, 0.5, 0.75)).tolist()
    median = f"median {middle:.2f} GWh"
    ranks = [1, *(int(tick) for tick in across.ticks() if 1 < tick < len(aeps) and tick == int(tick)), len(aeps)]
    return figure(
        WIDTH,
        HEIGHT,
        f"AEP of {len(aeps)} seeds, from {aeps.max():.2f} to {aeps.min():.2f} GWh, median {middle:.2f}",
        _band(LEFT, WIDTH - RIGHT - LEFT, up(lower), up(upper), f"quartiles: {lower:.2f} to {upper:.2f} GWh"),
        horizontal_grid(up, LEFT, WIDTH - RIGHT, "AEP, GWh"),
        path(f"M{LEFT:g} {up(middle):g}H{WIDTH - RIGHT:g}", "median", median),
        text(WIDTH - RIGHT, up(middle) - 4, median, anchor="end"),
        _ranked(keys, aeps, across, up, links),
        text(across(1), up(float(aeps[0])) - 9, f"seed {keys[0].seed}"),
        [text(across(rank), HEIGHT - 16, str(rank), anchor="middle") for rank in dict.fromkeys(ranks)],
        text((LEFT + WIDTH) / 2, HEIGHT - 2, "rank of the layout (1 = best)", anchor="middle"),
    )


def strip_chart(
    columns: Mapping[str, tuple[Sequence[Key], Array]],
    links: Links,
    width: float = WIDTH,
    *,
    relative: bool = False,
    of: Quantity = AEP,
) -> Markup:
    """Return a chart of the values of all seeds in named columns, with the best seed of each column marked.

    width: pixels. relative: plot per cent above the median of each column. of: the quantity.
    """
    shown = {name: column for name, column in columns.items() if len(column[1])}
    every = np.concatenate([aeps for _, aeps in shown.values()])
    heights = [above_median(aeps) if relative else aeps for _, aeps in shown.values()]
    up = padded(np.concatenate(heights).tolist(), HEIGHT - BOTTOM, TOP)
    each = (width - LEFT - RIGHT) / len(shown)
    strips, names = [], []
    room = max(3, int(each / 6.2))  # characters
    for place, (name, (keys, aeps)) in enumerate(shown.items()):
        x = LEFT + (place + 0.5) * each
        titles = [f"{key}: {aep:.2f} {of.unit}" for key, aep in zip(keys, aeps.tolist(), strict=True)]
        strips.append(_strip(x, min(0.3 * each, 26.0), keys, heights[place], titles, up, links))
        for line, words in enumerate(name.split(" ", 1)):
            names.append(text(x, HEIGHT - 18 + 14 * line, shortened(words, room), anchor="middle"))
    words = f"{of.name} of {len(every)} layouts, in {len(shown)} groups, "
    words += f"from {every.min():.2f} to {every.max():.2f} {of.unit}"
    words += ", as per cent above the median of each group" if relative else ""
    grid = horizontal_grid(up, LEFT, width - RIGHT, "% above median" if relative else f"{of.name}, {of.unit}")
    return figure(width, HEIGHT, words, grid, strips, names)


def convergence(by_phase: Mapping[str, float], history: Array | None) -> Markup:
    """Return a chart of AEP (GWh) by phase, and over the steps if the history, shape (2, n), is known."""
    curve = history if is_curve(history) else None
    values = np.array([*by_phase.values(), *([] if curve is None else curve[1])])
    up = padded(values[np.isfinite(values)].tolist(), HEIGHT - BOTTOM, TOP)
    digits = decimals(up.ticks()) + 1
    half = LEFT + (WIDTH - LEFT - RIGHT) * (0.42 if curve is not None else 1.0)
    width = (half - LEFT) / max(len(by_phase), 1)
    phases = []
    for place, (name, aep) in enumerate(by_phase.items()):
        x, y = LEFT + (place + 0.5) * width, up(aep)
        phases += [
            path(f"M{x:g} {HEIGHT - BOTTOM:g}V{y:g}", "stem"),
            tag("circle", {"cx": x, "cy": y, "r": 4, "class": "dot"}, tag("title", None, f"{name}: {aep:.4f} GWh")),
            text(x, y - 8, f"{aep:.{digits}f}", anchor="middle"),
            text(x, HEIGHT - 16, name, anchor="middle"),
        ]
    drawn = [] if curve is None else _history(curve, half + 26, up)
    steps = ", ".join(f"{name} {aep:.2f} GWh" for name, aep in by_phase.items())
    grid = horizontal_grid(up, LEFT, WIDTH - RIGHT, "AEP, GWh")
    return figure(WIDTH, HEIGHT, f"AEP by phase: {steps or 'not known'}", grid, phases, drawn)


def _history(curve: Array, left: float, up: Scale) -> list[Markup]:
    steps, aeps = curve[:, np.isfinite(curve).all(axis=0)]
    across = Scale(float(steps[0]), float(steps[-1]), left, WIDTH - RIGHT)
    points = list(zip(map(across, steps.tolist()), map(up, aeps.tolist()), strict=True))
    return [
        path(path_through(points), "line sparse" if len(points) <= FEW_POINTS else "line"),
        *(tag("circle", {"cx": x, "cy": y, "r": 2, "class": "dot"}) for x, y in points if len(points) <= 60),
        text(points[0][0], HEIGHT - 16, f"{steps[0]:.0f}"),
        text(points[-1][0], HEIGHT - 16, f"{steps[-1]:.0f}", anchor="end"),
        text((left + WIDTH - RIGHT) / 2, HEIGHT - 2, "step of the optimiser", anchor="middle"),
    ]


def _ranked(keys: Sequence[Key], aeps: Array, across: Scale, up: Scale, links: Links) -> Markup:
    """Return a dot for each seed, or a line if there are many seeds."""
    places = [(across(rank), up(aep)) for rank, aep in enumerate(aeps.tolist(), start=1)]
    if len(places) > MOST_DOTS:
        return path(path_through([*places[:: max(1, len(places) // 1000)], places[-1]]), "line")
    words = (f"rank {rank}: seed {key.seed}, {aeps[rank - 1]:.2f} GWh" for rank, key in enumerate(keys, start=1))
    dots = zip(places, keys, words, strict=True)
    return join(_dot(*place, key, title, links, is_best=place == places[0]) for place, key, title in dots)


def _strip(
    x: float, half: float, keys: Sequence[Key], heights: Array, titles: Sequence[str], up: Scale, links: Links
) -> list[Markup]:
    """Return a box with whiskers, a dot for the best seed, and dots for the others unless there are many."""
    best = int(np.argmax(heights))
    lowest, lower, middle, upper, highest = map(up, np.quantile(heights, (0.0, 0.25, 0.5, 0.75, 1.0)).tolist())
    dots = [*(i for i in range(len(heights)) if i != best and len(heights) <= MOST_DOTS / 4), best]
    return [
        path(f"M{x:g} {lowest:g}V{highest:g}", "stem"),
        _band(round(x - half, 2), round(2 * half, 2), lower, upper),
        path(f"M{x - half:g} {middle:g}H{x + half:g}", "median"),
        *(_dot(x, up(float(heights[i])), keys[i], titles[i], links, is_best=i == best) for i in dots),
    ]


def _band(left: float, width: float, lower: float, upper: float, title: str | None = None) -> Markup:
    """Return a band between two quartiles, pixels."""
    size: dict[str, Attribute] = {"x": left, "y": upper, "width": width, "height": max(lower - upper, 0.5)}
    return tag("rect", {**size, "class": "band"}, None if title is None else tag("title", None, title))


def _dot(x: float, y: float, key: Key, words: str, links: Links, *, is_best: bool) -> Markup:
    size: dict[str, Attribute] = {"r": 5 if is_best else 3, "class": "dot best" if is_best else "dot"}
    circle = tag("circle", {"cx": round(x, 2), "cy": y, **size}, tag("title", None, words))
    address = links.task(key)
    if address is None:
        return circle
    # not a tab stop: there may be hundreds, and the list of tasks has the same links
    return tag("a", {"href": address, "aria-label": words, "tabindex": -1}, circle)


# --- wind rose -------------------------------------------------------------------------------------------------------


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
    return captioned(picture, _key(rose), tag("p", None, words))


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
