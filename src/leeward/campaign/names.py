"""Names of farms and turbine types, which the user may give instead of their numbers."""

import difflib
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from leeward.errors import InputError
from leeward.store import PATTERN, Key
from leeward.wording import listed

if TYPE_CHECKING:
    from leeward.campaign.campaign import Campaign

QUOTES = ("'", '"')
KEY_FORMS = 'farm0_t5_s3, 0,5,3, "0 5 3", or with names "Nord/V236/3"'
_NUMBERS = re.compile(r"\s*(\d{1,9})[\s,]+(\d{1,9})[\s,]+(\d{1,10})\s*", re.ASCII)
_INDEX = re.compile(r"\d{1,18}", re.ASCII)
_SEED = re.compile(r"\d{1,10}", re.ASCII)

Known = Callable[[], "Campaign"]  # called only for names: a campaign takes time to read


class Word(NamedTuple):
    """A number or a name given by the user. quoted: it was in quotation marks, and is a name."""

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


def duplicate_names(campaign: "Campaign") -> list[str]:
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
    """Return a name in one spelling: an ö may be one character or two, and spaces may be doubled."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def _enumerated(numbers: list[int]) -> str:
    return " and ".join(map(str, numbers)) if len(numbers) < 3 else listed(numbers, 10)
