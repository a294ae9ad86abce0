"""Seeds: a count, a list, or a range written as in Python."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

LARGEST_SEED = 2**32 - 1  # the limit of SmartStart's random generator
ENDLESS = 2**62  # stands for the end of a range such as `10:`
_RANGE = re.compile(r"\s*(\d{0,18})\s*:\s*(\d{0,18})\s*(?::\s*(\d{0,18})\s*)?", re.ASCII)
_EXPECTED = "a count (50), a list ([0, 5, 7]), a range as in Python (0:50), or {first: 0, count: 50}"


def parse_seeds(given: Any) -> Sequence[int]:
    """Return the seeds as a range or a tuple, or raise ValueError. The caller puts the key before its message."""
    seeds: range | tuple[int, ...]
    if isinstance(given, int) and not isinstance(given, bool):
        seeds = range(given)
    elif isinstance(given, range):
        seeds = given
    elif isinstance(given, str):
        seeds = _range(given)
    elif isinstance(given, Mapping):
        seeds = _first_and_count(given)
    elif isinstance(given, Sequence):
        seeds = _list(given)
    else:
        raise ValueError(f"is {given!r:.60}; expected {_EXPECTED}")
    if not seeds:
        raise ValueError(f"is {given!r:.60}, which gives no seeds; expected at least one")
    ends = (seeds[0], seeds[-1]) if isinstance(seeds, range) else (min(seeds), max(seeds))  # min() of a range is slow
    for seed in ends:
        if not 0 <= seed <= LARGEST_SEED:
            raise ValueError(f"contains {seed}; expected whole numbers from 0 to {LARGEST_SEED}")
    return seeds


def seeds_as_text(seeds: Sequence[int]) -> str | list[int]:
    """Return the seeds in a form that `parse_seeds` reads back."""
    if isinstance(seeds, range):
        return f"{seeds.start}:{seeds.stop}" + (f":{seeds.step}" if seeds.step != 1 else "")
    return list(seeds)


def parse_range(text: str) -> range | None:
    """Return the range `0:10`, `:10`, `10:` or `0:50:10`, as in Python; None for other text."""
    match = _RANGE.fullmatch(text)
    if match is None or (match[3] and int(match[3]) == 0):
        return None
    return range(int(match[1] or 0), int(match[2] or ENDLESS), int(match[3] or 1))


def _range(text: str) -> range:
    found = parse_range(text)
    if found is None:
        raise ValueError(f"is {text!r:.60}; expected {_EXPECTED}")
    if found.stop == ENDLESS:
        raise ValueError(f"is {text!r:.60}, a range without an end; expected a range as in Python, such as 0:50")
    return found


def _first_and_count(given: Mapping[Any, Any]) -> range:
    unknown = [key for key in given if key not in ("first", "count")]
    numbers = [given.get("first", 0), given.get("count")]
    if unknown or not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise ValueError(f"is {dict(given)!r:.60}; expected {{first: 0, count: 50}} with whole numbers")
    return range(numbers[0], numbers[0] + numbers[1])


def _list(given: Sequence[Any]) -> tuple[int, ...]:
    seen: set[int] = set()
    for position, seed in enumerate(given):
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ValueError(f"has {seed!r:.60} at position {position}; expected whole numbers")
        if seed in seen:
            raise ValueError(f"has {seed} twice; expected each seed once")
        seen.add(seed)
    return tuple(given)
