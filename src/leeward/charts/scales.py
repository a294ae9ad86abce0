"""Linear scales, round ticks, and labels that fit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

SAME_SHARE = 1e-5  # of an AEP, or of 100 %: axes show no smaller differences


@dataclass(frozen=True)
class Scale:
    """A linear scale from numbers to pixels."""

    low: float
    high: float
    start: float
    end: float

    def share(self, value: float) -> float:
        """Return the position of a value on the scale, from 0 to 1."""
        span = self.high - self.low
        return (value - self.low) / span if span > 0 else 0.5

    def __call__(self, value: float) -> float:
        return round(self.start + self.share(value) * (self.end - self.start), 2)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round numbers within the scale."""
        span = self.high - self.low
        if not (span > 0 and math.isfinite(span)):
            return [self.low]
        step = 10.0 ** math.floor(math.log10(span / most))
        step *= next(times for times in (1, 2, 5, 10) if span / (step * times) <= most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def padded(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a scale over these values with some room at both ends; it does not magnify rounding errors."""
    low, high = min(values), max(values)
    is_flat = high - low < SAME_SHARE * max(abs(high), 100.0)  # of an AEP in GWh, or of per cent
    room = 1e-3 * max(abs(high), 1.0) if is_flat else 0.06 * (high - low)
    return Scale(low - room, high + room, start, end)


def decimals(ticks: Sequence[float], most: int = 6) -> int:
    """Return the number of decimals, at most `most`, that show all ticks without rounding."""
    texts = [f"{tick:z.{most}f}" for tick in ticks]
    return most - min((len(text) - len(text.rstrip("0")) for text in texts), default=most)


def shortened(words: str, longest: int) -> str:
    """Return a text cut to this many characters."""
    return words if len(words) <= longest else f"{words[: max(longest - 1, 0)]}…"
