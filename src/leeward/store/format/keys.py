"""Keys, which name a task and its result by farm, turbine type and seed."""

import re
from typing import NamedTuple

from leeward.errors import InputError

PATTERN = re.compile(r"farm(\d{1,9})_t(\d{1,9})_s(\d{1,10})", re.ASCII)


class Key(NamedTuple):
    """A key, written `farm{F}_t{T}_s{S}`. Keys sort by their numbers."""

    farm_idx: int
    type_idx: int
    seed: int

    def __str__(self) -> str:
        return f"farm{self.farm_idx}_t{self.type_idx}_s{self.seed}"

    @classmethod
    def parse(cls, text: str) -> "Key":
        """Return the key that a text names. Raise InputError if it is not a key."""
        match = PATTERN.fullmatch(text)
        key = None if match is None else cls(*map(int, match.groups()))
        if key is None or str(key) != text:  # no leading zeros: a key has one name
            raise InputError(f"{text!r:.60} is not a key; expected one like farm0_t5_s3")
        return key
