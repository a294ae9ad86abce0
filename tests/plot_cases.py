"""What the tests of pictures share."""

import itertools

import numpy as np
from matplotlib.text import Text

from leeward.layout import Area
from leeward.plots import FarmLayout


def farm_at(number, left, wake_loss=None, low=0.0):
    """A farm of three turbines, whose area begins there, m."""
    area = Area.from_arrays([left, left + 4000, left + 4000, left], [low, low, low + 3000, low + 3000])
    x, y = left + np.array([500.0, 2000.0, 3500.0]), low + np.array([500.0, 1500.0, 2500.0])
    return FarmLayout(str(number), f"farm {number}", area, x, y, 100.5 + number, 200.0, wake_loss)


def farms_in_rows(across, rows):
    return [farm_at(i, 6000.0 * (i % across), low=5000.0 * (i // across)) for i in range(across * rows)]


def words_in(figure):
    """Return all words that a figure shows, with the boxes around them in pixels; the figure is drawn for that."""
    figure.canvas.draw()
    beyond = set()  # matplotlib keeps labels of ticks that are not on the axis, and does not draw them
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        room = 1e-9 * (high - low)
        ticks = [tick for tick in axis.get_major_ticks() if not low - room <= tick.get_loc() <= high + room]
        beyond |= {label for tick in ticks for label in (tick.label1, tick.label2)}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in texts if text not in beyond]


def unreadable(figure):
    """Return the words that lie over others or reach beyond the figure."""
    words = words_in(figure)
    over = [(a, b) for (a, one), (b, other) in itertools.combinations(words, 2) if _shared(one, other) > 1.0]
    whole = figure.bbox
    cut = [a for a, box in words if min(box.x0, box.y0) < -1 or box.x1 > whole.x1 + 1 or box.y1 > whole.y1 + 1]
    return over + cut


def _shared(one, other):
    """Return how far two boxes overlap, pixels."""
    return min(min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0))


def blank_share(figure):
    """Return the widest stripe of a drawn figure, across or down, that shows nothing, as a share of its side."""
    is_ink = (np.asarray(figure.canvas.buffer_rgba())[..., :3] < 250).any(axis=2)
    stripes = [max(len(list(run)) for blank, run in itertools.groupby(~is_ink.any(axis=a)) if blank) for a in (0, 1)]
    return max(stripes[0] / is_ink.shape[1], stripes[1] / is_ink.shape[0])
