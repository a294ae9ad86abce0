"""Figures of maps: as large as the area and the words around it ask for."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from leeward.plots.style import arrange, fold, headline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    from leeward.layout.pictures import Bounds

LONGEST = 8.0  # inches of a map
NARROWEST = 2.8  # inches of a figure: its words need so much
ROUNDS = 6  # of arranging and resizing; two or three are enough
SAME = 0.005  # inches
SIDE = 5.0  # inches of a square map
WIDE = 2.2  # times as wide as high: no longer high enough for a colour bar beside it


def map_size(bounds: "Bounds", side: float = SIDE) -> tuple[float, float]:
    """Return width and height of a map of these bounds in inches: longer than `side` where it is narrow."""
    left, low, right, high = bounds
    width, height = right - left, high - low
    longer, shorter = max(width, height), min(width, height)
    inches = min(side * (longer / shorter) ** 0.25, max(side, LONGEST))
    return inches * width / longer, inches * height / longer


def is_wide(bounds: "Bounds") -> bool:
    """Return whether what belongs to the map has to stand below it instead of beside it."""
    left, low, right, high = bounds
    return right - left > WIDE * (high - low)


def fit(
    figure: Figure,
    axes: Sequence["Axes"],
    size: tuple[float, float],
    *,
    across: int = 1,
    name: str | None = None,
    least_width: float = 0.0,
) -> None:
    """Resize a figure until each of its maps has this size, and wrap the words above and below them.

    size: width and height of a map, inches. across: how many maps stand side by side. name: what stands above all.
    least_width: of the figure, inches.
    """
    for ax in axes:
        ax.set_aspect("auto")  # while its shape is not yet right, words would lie in the room that the map leaves
    words = [(ax, text, text.get_text()) for ax in axes for text in (ax.title, ax.xaxis.label)]
    rows = [axes[start : start + across] for start in range(0, len(axes), across)]
    arrange(figure)
    for _ in range(ROUNDS):
        if name:
            headline(figure, name)
        _fold(words, rows)
        arrange(figure)
        width, height = figure.get_size_inches()
        slot = axes[0].get_position(original=True)
        more = across * (size[0] - slot.width * width), len(rows) * (size[1] - slot.height * height)
        wanted = max(width + more[0], NARROWEST, least_width), height + more[1]
        if max(abs(wanted[0] - width), abs(wanted[1] - height)) < SAME:
            break
        figure.set_size_inches(*wanted)
    else:
        arrange(figure)
    figure.set_layout_engine("none")  # with a fixed aspect it would move the maps a little each time it is drawn
    for ax in axes:
        ax.set_aspect("equal", anchor="C")  # where the words were made to fit


def _fold(words: Sequence[tuple["Axes", "Text", str]], rows: Sequence[Sequence["Axes"]]) -> None:
    """Break lines so that they end within the figure and before those of the next map."""
    for ax, text, whole in words:
        fold(text, whole, _room(ax, next(row for row in rows if ax in row)))


def _room(ax: "Axes", row: Sequence["Axes"]) -> float:
    """Return how wide words that are centred on the map may be, inches: to the edge or halfway to the next map."""
    middles = sorted(0.5 * (other.get_position().x0 + other.get_position().x1) for other in row)
    ends = [0.0, *(0.5 * (a + b) for a, b in itertools.pairwise(middles)), 1.0]
    middle = 0.5 * (ax.get_position().x0 + ax.get_position().x1)
    left, right = max(end for end in ends if end <= middle), min(end for end in ends if end >= middle)
    return float(2.0 * min(middle - left, right - middle) * ax.figure.bbox.width / ax.figure.dpi)
