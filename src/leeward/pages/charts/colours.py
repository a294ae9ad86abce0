"""Colours by number: even steps of lightness, the same to the colour-blind."""

from collections.abc import Sequence

# viridis at eleven places, from a small number to a large one; S. van der Walt and N. Smith, 2015, public domain (CC0)
_STEPS = (
    "#fde725",
    "#bddf26",
    "#7ad151",
    "#44bf70",
    "#22a884",
    "#21908d",
    "#2a788e",
    "#355f8d",
    "#414487",
    "#482475",
    "#440154",
)


def colour(share: float, steps: Sequence[str] = _STEPS) -> str:
    """From light, 0, to dark, 1."""
    place = min(max(share, 0.0), 1.0) * (len(steps) - 1)
    below = min(int(place), len(steps) - 2)
    mixed = (
        round(low + (place - below) * (high - low))
        for low, high in zip(_parts(steps[below]), _parts(steps[below + 1]), strict=True)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _parts(code: str) -> tuple[int, ...]:
    return tuple(int(code[i : i + 2], 16) for i in (1, 3, 5))
