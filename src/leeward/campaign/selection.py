"""Select tasks of a campaign: by a short text, or from a file."""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from leeward.campaign.campaign import MOST_TASKS, Campaign
from leeward.campaign.names import Word, farm_of, key_of, type_of, words_of
from leeward.errors import InputError
from leeward.parsing import parse_json
from leeward.store import Key

FIELDS = {"farm": 0, "type": 1, "seed": 2}
EXAMPLE = '"farm=0,3 type=5 seed=0:10"'
_QUOTED = re.compile(r"""([=,]\s*)('[^']*'|"[^"]*")""")
_FIELD = re.compile(r"(?:^|(?<=\s))([^\s=,]*)=")
_RANGE = re.compile(r"[-+\d:]*", re.ASCII)


def _parsed(text: str, campaign: Campaign) -> dict[int, list[range]]:
    """Return the selected numbers, by the position of their field in a key.

    `farm=0,3 type=5 seed=0:10`: numbers, ranges as in Python, and names of farms and types. A missing field selects
    everything. A name of digits, or with a comma or an equals sign, must be in quotation marks.
    """
    selected: dict[int, list[range]] = {}
    for name, values in _fields(text):
        if name not in FIELDS:
            what = f"{name}={values}".strip()
            raise InputError(
                f"--only: {what!r:.60} is not understood; expected farm=, type= or seed=, as in {EXAMPLE}; put a name "
                "with an equals sign in quotation marks"
            )
        if FIELDS[name] in selected:
            raise InputError(f"--only: {name} is given twice; expected it once, as in {EXAMPLE}")
        try:
            words = words_of(values, ",")
            selected[FIELDS[name]] = [_range_of(name, word, f"{name}={values}", campaign) for word in words]
        except InputError as error:
            raise InputError(f"--only: {error}") from error
    if not selected:
        raise InputError(f"--only is empty; expected a selection such as {EXAMPLE}")
    return selected


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield each field with its values. Quoted text does not start a field."""
    plain = _QUOTED.sub(lambda found: found[1] + "_" * len(found[2]), text)
    starts = list(_FIELD.finditer(plain))
    before = text[: starts[0].start()] if starts else text
    if before.strip():
        raise InputError(f"--only: {before.strip()!r:.60} is not understood; expected a field first, as in {EXAMPLE}")
    ends = [*(start.start() for start in starts[1:]), len(text)]
    for start, end in zip(starts, ends, strict=False):  # an empty text has an end and no field
        values = text[start.end() : end].strip()
        if "=" in plain[start.end() : end]:
            raise InputError(f"--only: {values!r:.60} contains an equals sign; put such a name in quotation marks")
        yield start[1], values


def _range_of(field: str, word: Word, where: str, campaign: Campaign) -> range:
    if field == "seed" or (not word.quoted and _RANGE.fullmatch(word.text)):
        if word.quoted:
            raise InputError(f"{word.text!r:.60} in {where!r:.80} is quoted; expected a seed, which is a number")
        return _numbers(word.text, where)
    number = (farm_of if field == "farm" else type_of)(word, lambda: campaign)
    return range(number, number + 1)


def _numbers(part: str, word: str) -> range:
    """Return the range of `5`, `0:10`, `:10`, `10:` or `0:50:10`; the end is excluded, as in Python."""
    pieces = part.split(":")
    try:
        bounds = [int(piece) if piece else None for piece in pieces]
        if len(pieces) == 1 and bounds[0] is not None:
            return range(bounds[0], bounds[0] + 1)
        if not 2 <= len(pieces) <= 3:
            raise ValueError
        start, stop = bounds[0] or 0, 2**62 if bounds[1] is None else bounds[1]
        step = (bounds[2] if len(bounds) == 3 else None) or 1
        if start < 0 or stop < 0 or step < 1:
            raise ValueError
    except ValueError as error:
        raise InputError(
            f"{part!r} in {word!r:.80} is not understood; expected a number or a range such as 0:10"
        ) from error
    return range(start, stop, step)


def read_keys(path: Path) -> list[Key]:
    """Return the keys in a CSV file with a column `key` (see `leeward missing --csv`), in JSON, or one per line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    if text.lstrip().startswith(("[", "{")):
        names = _from_json(path, text)
    else:
        lines = list(csv.reader(io.StringIO(text)))
        header = [cell.strip() for cell in lines[0]] if lines else []
        if "key" in header:
            column, rows = header.index("key"), lines[1:]
        else:
            column, rows = 0, lines
        names = [row[column].strip() for row in rows if len(row) > column and row[column].strip()]
    try:
        return [Key.parse(name) for name in names]
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _from_json(path: Path, text: str) -> list[str]:
    found = parse_json(text, str(path))
    try:
        entries = found["missing"] if isinstance(found, dict) else found
        return [entry["key"] if isinstance(entry, dict) else str(entry) for entry in entries]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not understood ({error}); expected a list of keys, as `leeward missing --json` writes it"
        ) from error


def chosen_tasks(campaign: Campaign, only: str | Collection[Key] | None) -> list[Key]:
    """Return the selected tasks in the order of the campaign. only: a text, or keys; None selects all."""
    if only is None:
        return list(campaign.tasks())
    if not isinstance(only, str):
        selected = frozenset(only)
        their_seeds = _in_order(campaign.seeds, {key.seed for key in selected})
        return [key for key in _product(campaign.farms, campaign.types, their_seeds) if key in selected]
    farms, types, seeds = _chosen(campaign, only)
    if len(seeds) * len(farms) * len(types) > MOST_TASKS:
        raise _too_many(campaign)
    return _product(farms, types, seeds)


def task_counts(campaign: Campaign, only: str | Collection[Key] | None) -> dict[tuple[int, int], int]:
    """Return the number of selected tasks of each farm and type, without listing them."""
    if only is not None and not isinstance(only, str):
        return dict(Counter((key.farm_idx, key.type_idx) for key in chosen_tasks(campaign, only)))
    farms, types, seeds = _chosen(campaign, only)
    return {(farm, type_idx): len(seeds) for farm in farms for type_idx in types if len(seeds)}


def chosen_among(campaign: Campaign, only: str | Collection[Key] | None, keys: Iterable[Key]) -> list[Key]:
    """Return those of the keys that are selected tasks."""
    if only is not None and not isinstance(only, str):
        selected = frozenset(only)
        return [key for key in keys if key in selected]
    farms, types, seeds = _chosen(campaign, only)
    known = seeds if isinstance(seeds, range) else frozenset(seeds)
    return [key for key in keys if key.farm_idx in farms and key.type_idx in types and key.seed in known]


def _chosen(campaign: Campaign, only: str | None) -> tuple[list[int], list[int], Sequence[int]]:
    """Return the farms, types and seeds that a text selects."""
    parts = {} if only is None else _parsed(only, campaign)
    farms, types = (
        [number for number in numbers if field not in parts or any(number in part for part in parts[field])]
        for field, numbers in enumerate((campaign.farms, campaign.types))
    )
    seeds = campaign.seeds if FIELDS["seed"] not in parts else _chosen_seeds(campaign, parts[FIELDS["seed"]])
    return farms, types, seeds


def _product(farms: Iterable[int], types: Collection[int], seeds: Sequence[int]) -> list[Key]:
    farms = list(farms)
    return [Key(farm, type_idx, seed) for seed in seeds for farm in farms for type_idx in types]


def _chosen_seeds(campaign: Campaign, parts: list[range]) -> Sequence[int]:
    """Return the seeds of the campaign that are in one of the ranges."""
    seeds = campaign.seeds
    if len(seeds) <= MOST_TASKS:
        return [seed for seed in seeds if any(seed in part for part in parts)]
    if sum(map(len, parts)) > MOST_TASKS:
        raise _too_many(campaign)
    return _in_order(seeds, {seed for part in parts for seed in part})


def _in_order(seeds: Sequence[int], numbers: Collection[int]) -> list[int]:
    """Return the given numbers that are seeds, in the order of the seeds."""
    if isinstance(seeds, range):
        return sorted((seed for seed in numbers if seed in seeds), key=seeds.index)
    return [seed for seed in seeds if seed in numbers]


def _too_many(campaign: Campaign) -> InputError:
    return InputError(
        f"--only selects more than {MOST_TASKS} of the {campaign.n_tasks} tasks of {campaign.name}; select fewer "
        "seeds, as in seed=0:10"
    )


def as_keys(given: Collection[Key | str], campaign: Campaign) -> frozenset[Key]:
    """Return keys given as keys or text, or raise InputError if some are not tasks of the campaign."""
    keys = frozenset(key_of(key, lambda: campaign) if isinstance(key, str) else Key(*key) for key in given)
    strangers = sorted(key for key in keys if key not in campaign)
    if strangers:
        raise InputError(
            f"{len(strangers)} of the {len(keys)} tasks are not in the campaign {campaign.name}, for example "
            f"{strangers[0]}; expected tasks of {campaign!r}"
        )
    return keys
