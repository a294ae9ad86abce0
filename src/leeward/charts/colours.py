"""Colour scales with even steps of lightness, safe for colour-blind readers."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from leeward.charts.maps import loss_span

# viridis at eleven points, from small to large values; S. van der Walt and N. Smith, 2015, public domain (CC0)
_STEPS = bytes.fromhex("fde725 bddf26 7ad151 44bf70 22a884 21908d 2a788e 355f8d 414487 482475 440154")
# Okabe and Ito's colours for colour-blind readers, without black, and without yellow, which is too pale on paper
_APART = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")


def colour(share: float) -> str:
    """Return the colour of a value from 0 (light) to 1 (dark)."""
    place = min(max(share, 0.0), 1.0) * (len(_STEPS) // 3 - 1)
    below = min(int(place), len(_STEPS) // 3 - 2)
    ends = zip(_STEPS[3 * below :][:3], _STEPS[3 * below + 3 :][:3], strict=True)
    return "#" + "".join(f"{round(low + (place - below) * (high - low)):02x}" for low, high in ends)


def colours_apart(count: int) -> Sequence[str]:
    """Return `count` distinct colours; beyond a handful, steps of an even scale."""
    return _APART[:count] if count <= len(_APART) else [colour(1.0 - 0.92 * i / (count - 1)) for i in range(count)]


def loss_range(losses: Iterable[npt.NDArray[np.float64] | None]) -> tuple[float, float] | None:
    """Return the colour range of these wake losses (see `loss_span`); None if no wake loss is known."""
    known = [loss for loss in losses if loss is not None and len(loss)]
    return loss_span(np.concatenate(known)) if known else None
