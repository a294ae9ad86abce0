"""Bars that show how much of something is in which state."""

from collections.abc import Mapping

from leeward.pages.html import Markup, tag

WIDTH, HEIGHT = 120.0, 8.0


def share_bar(counts: Mapping[str, int], total: int, label: str) -> Markup:
    """Parts of a whole, by state, in the order given; the class of each part is its state."""
    left, parts = 0.0, []
    for state, count in counts.items():
        width = WIDTH * count / total if total else 0.0
        if count:
            parts.append(
                tag(
                    "rect",
                    {"x": round(left, 2), "y": 0, "width": round(width, 2), "height": HEIGHT, "class": f"fill-{state}"},
                )
            )
        left += width
    back = tag("rect", {"width": WIDTH, "height": HEIGHT, "class": "fill-missing"})
    stretched = {"viewBox": f"0 0 {WIDTH:g} {HEIGHT:g}", "preserveAspectRatio": "none", "class": "bar"}
    return tag("svg", {**stretched, "role": "img", "aria-label": label}, back, *parts)
