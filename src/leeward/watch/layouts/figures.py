"""Figures of results other than AEP, from index lines."""

import math
import re
from collections.abc import Iterable

from leeward.store import whole_lines

FIGURES = ("n_turbines", "wake_loss", "min_spacing_m", "seconds")
UNKNOWN = (math.nan,) * len(FIGURES)

# a single turbine has no spacing; older indexes have Infinity there
_NUMBER = rb"(?:(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|null|NaN|-?Infinity)"
_LINE = re.compile(  # lines of another form are parsed one by one
    rb'^\{"key":"(farm\d{1,9}_t\d{1,9}_s\d{1,10})","aep":[^,"\n]*,"n_turbines":(\d{1,9}),"diameter":[^,"\n]*,'
    rb'"status":"[\w-]*","origin":"[\w-]*","fingerprint":"\w*"'
    rb'(?:,"wake_loss":%s)?(?:,"min_spacing_m":%s)?(?:,"seconds":%s)?(?:,"[^\n]*)?\}$' % (_NUMBER, _NUMBER, _NUMBER),
    re.MULTILINE,
)


def figures_in(contents: Iterable[bytes]) -> dict[str, tuple[float, ...]]:
    """Return FIGURES by the text of the key; NaN if unknown. contents: index lines, the newest file first."""
    found: dict[str, tuple[float, ...]] = {}
    for content in reversed(list(contents)):
        lines = _LINE.findall(content)
        if len(lines) == content.count(b"\n"):
            found |= {name.decode(): tuple([float(text or "nan") for text in texts]) for name, *texts in lines}
        else:
            found |= {
                str(line["key"]): tuple(_number(line.get(name)) for name in FIGURES) for line in whole_lines(content)
            }
    return found


def _number(value: object) -> float:
    """Return a value as float; NaN if it is not a number or too large."""
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan
