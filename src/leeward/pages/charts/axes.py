"""Axes, text and frames of charts."""

from collections.abc import Iterable, Iterator, Mapping

from leeward.charts import Scale, decimals
from leeward.pages.html import Attribute, Child, Markup, tag

BAR = 120.0, 8.0  # pixels, before it is stretched


def figure(width: float, height: float, title: str, *children: Child, kind: str = "chart", role: str = "img") -> Markup:
    """Return a drawing of this size in pixels, smaller if there is no room. title: for screen readers.

    role: "group" if the drawing has links, because screen readers ignore the content of an "img".
    """
    size: dict[str, Attribute] = {"viewBox": f"0 0 {width:g} {height:g}", "width": width, "height": height}
    return tag("svg", {**size, "class": kind, "role": role, "aria-label": title}, *children)


def horizontal_grid(scale: Scale, left: float, right: float, unit: str) -> Iterator[Markup]:
    """Yield horizontal lines, with their numbers at the left and the unit above."""
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


def through(points: Iterable[tuple[float, float]]) -> str:
    """Return the path of a line through these points."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def share_bar(counts: Mapping[str, int], total: int, label: str) -> Markup:
    """Return a bar divided by state, in the order given; the class of each part is its state."""
    across, height = BAR
    left, parts = 0.0, [tag("rect", {"width": across, "height": height, "class": "fill-missing"})]
    for state, count in counts.items():
        width = across * count / total if total else 0.0
        place: dict[str, Attribute] = {"x": round(left, 2), "y": 0, "width": round(width, 2), "height": height}
        parts += [tag("rect", {**place, "class": f"fill-{state}"})] if count else []
        left += width
    stretched = {"viewBox": f"0 0 {across:g} {height:g}", "preserveAspectRatio": "none", "class": "bar"}
    return tag("svg", {**stretched, "role": "img", "aria-label": label}, *parts)
