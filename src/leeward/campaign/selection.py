"""Select tasks of a campaign: by key, by the names or numbers of farms and types, or from a file."""

import csv
import difflib
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from leeward.campaign.campaign import MOST_TASKS, Campaign
from leeward.campaign.seeds import parse_range
from leeward.errors import InputError
from leeward.parsing import parse_json
from leeward.store import PATTERN, Key
from leeward.wording import listed

AnyKey = TypeVar("AnyKey")
FIELDS = {"farm": 0, "type": 1, "seed": 2}
EXAMPLE = '"farm=0,3 type=5 seed=0:10"'
_QUOTED = re.compile(r"""([=,]\s*)('[^']*'|"[^"]*")""")
_FIELD = re.compile(r"(?:^|(?<=\s))([^\s=,]*)=")
_RANGE = re.compile(r"[-+\d:]*", re.ASCII)
QUOTES = ("'", '"')
KEY_FORMS = 'farm0_t5_s3, 0,5,3, "0 5 3", or with names "Nord/V236/3"'
_NUMBERS = re.compile(r"\s*(\d{1,9})[\s,]+(\d{1,9})[\s,]+(\d{1,10})\s*", re.ASCII)
_INDEX = re.compile(r"\d{1,18}", re.ASCII)
_SEED = re.compile(r"\d{1,10}", re.ASCII)

Known = Callable[[], Campaign]  # called only if names are used, because reading a campaign takes time


class Word(NamedTuple):
    """A number or a name given by the user. quoted: it was in quotation marks, so it is a name."""

    text: str
    quoted: bool


def words_of(text: str, separator: str) -> list[Word]:
    """Return the words between separators; a word that begins with a quotation mark may contain the separator."""
    words = []
    rest = text
    while True:
        rest = rest.lstrip()
        if rest.startswith(QUOTES):
            word, mark, rest = rest[1:].partition(rest[0])
            if not mark:
                raise InputError(f"{text!r:.80}: a quotation mark is not closed; expected a second one after the name")
            between, found, rest = rest.partition(separator)
            if between.strip():
                raise InputError(f"{text!r:.80}: unexpected {between.strip()!r:.40} after a name in quotation marks")
            words.append(Word(word, True))
        else:
            word, found, rest = rest.partition(separator)
            words.append(Word(word.strip(), False))
        if not found:
            return words


def farm_of(word: Word, known: Known) -> int:
    """Return the farm_idx of a word. Digits are a number, unless they are quoted."""
    return int(word.text) if _is_index(word) else _index_of(word.text, known().farms, "farm")


def type_of(word: Word, known: Known) -> int:
    """Return the type_idx of a word. Digits are a number, unless they are quoted."""
    return int(word.text) if _is_index(word) else _index_of(word.text, known().types, "type")


def word_of(text: str) -> Word:
    """Return the whole text as one word, without quotation marks around it."""
    text = text.strip()
    is_quoted = len(text) > 1 and text.startswith(QUOTES) and text[0] == text[-1]
    return Word(text[1:-1], True) if is_quoted else Word(text, False)


def key_of(text: str, known: Known) -> Key:
    """Return the key of a text: farm0_t5_s3, "0 5 3", 0,5,3, or farm/type/seed with names or numbers."""
    numbers = _NUMBERS.fullmatch(text)
    if numbers is not None:
        return Key(*map(int, numbers.groups()))
    if PATTERN.fullmatch(text.strip()):
        return Key.parse(text.strip())
    words = words_of(text, "/")
    if len(words) == 1:
        raise InputError(f"{text!r:.60} is not a key; expected {KEY_FORMS}")
    if len(words) != 3 or words[2].quoted or not _SEED.fullmatch(words[2].text):
        raise InputError(
            f'{text!r:.80} is not a key; expected farm/type/seed with a number as seed, as in "Nord/V236/3"; put a '
            "name with a slash in quotation marks"
        )
    return Key(farm_of(words[0], known), type_of(words[1], known), int(words[2].text))


def duplicate_names(campaign: Campaign) -> list[str]:
    """Return a sentence for each name that several farms, or several turbine types, share."""
    return [
        f"{what}s {_enumerated(numbers)} have the same name {name!r:.60}; select them by number"
        for what, names in (("farm", campaign.farms), ("type", campaign.types))
        for name, numbers in _by_name(names).items()
        if len(numbers) > 1
    ]


def _is_index(word: Word) -> bool:
    return not word.quoted and _INDEX.fullmatch(word.text) is not None


def _index_of(name: str, names: Mapping[int, str], what: str) -> int:
    by_name = _by_name(names)
    found = by_name.get(_plain(name), [])
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(
            f"{name!r:.60} is the name of the {what}s {_enumerated(found)}; give the number ({what}_idx) instead"
        )
    close = difflib.get_close_matches(_plain(name), by_name, n=1)
    hint = f"did you mean {close[0]!r:.60}? " if close else ""
    there = listed([f"{number} {text!r:.60}" for number, text in names.items()], 10)
    raise InputError(f"no {what} has the name {name!r:.60}; {hint}the {what}s are {there}")


def _by_name(names: Mapping[int, str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, name in names.items():
        found.setdefault(_plain(name), []).append(number)
    return found


def _plain(name: str) -> str:
    """Return a name in normal form: an ö becomes one character, and repeated spaces become one."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def _enumerated(numbers: list[int]) -> str:
    return " and ".join(map(str, numbers)) if len(numbers) < 3 else listed(numbers, 10)


def _parsed(text: str, campaign: Campaign) -> dict[int, list[range]]:
    """Return the selected numbers, by the position of their field in a key.

    `farm=0,3 type=5 seed=0:10`: numbers, ranges as in Python, and names of farms and types. A missing field selects
    everything. A name that consists of digits, or contains a comma or an equals sign, must be in quotation marks.
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
    for start, end in zip(starts, ends, strict=False):  # for an empty text, `ends` is longer than `starts`
        values = text[start.end() : end].strip()
        if "=" in plain[start.end() : end]:
            raise InputError(f"--only: {values!r:.60} contains an equals sign; put such a name in quotation marks")
        yield start[1], values


def _range_of(field: str, word: Word, where: str, campaign: Campaign) -> range:
    """Return the numbers that a word selects. It is a number, a range as in Python, or the name of a farm or type."""
    if field == "seed" and word.quoted:
        raise InputError(
            f"{word.text!r:.60} in {where!r:.80} is quoted; expected a seed, which is a number without quotation marks"
        )
    found = None if word.quoted else parse_range(word.text)
    if found is not None:
        return found
    if field == "seed" or (not word.quoted and _RANGE.fullmatch(word.text)):
        if not _INDEX.fullmatch(word.text):
            raise InputError(
                f"{word.text!r:.60} in {where!r:.80} is not understood; expected a number or a range such as 0:10"
            )
        number = int(word.text)
    else:
        number = (farm_of if field == "farm" else type_of)(word, lambda: campaign)
    return range(number, number + 1)


def read_keys(path: Path, parse: Callable[[str], AnyKey]) -> list[AnyKey]:
    """Return the keys in a CSV file with a column `key`, in a JSON file, or in a text file with one key per line.

    parse: returns the key that a text names, such as `Key.parse`.
    """
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
        return [parse(name) for name in names]
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
    """Return the given keys that are selected tasks."""
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
    """Return the given keys, which may be text. Raise InputError if some are not tasks of the campaign."""
    keys = frozenset(key_of(key, lambda: campaign) if isinstance(key, str) else Key(*key) for key in given)
    strangers = sorted(key for key in keys if key not in campaign)
    if strangers:
        raise InputError(
            f"{len(strangers)} of the {len(keys)} tasks are not in the campaign {campaign.name}, for example "
            f"{strangers[0]}; expected tasks of {campaign!r}"
        )
    return keys
