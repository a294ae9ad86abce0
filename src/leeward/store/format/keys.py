"""Keys, which name a task and its result."""

import re
from typing import NamedTuple

from leeward.errors import InputError

PATTERN = re.compile(r"farm(\d{1,9})_t(\d{1,9})_s(\d{1,10})", re.ASCII)
EVALUATION_PATTERN = re.compile(r"target(\d{1,9})_scenario(\d{1,9})", re.ASCII)


class Key(NamedTuple):
    """The key of a layout, written `farm{F}_t{T}_s{S}`. Keys sort by their numbers."""

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


class EvaluationKey(NamedTuple):
    """The key of an evaluation, written `target{T}_scenario{S}`. Keys sort by their numbers."""

    target_idx: int
    scenario_idx: int

    def __str__(self) -> str:
        return f"target{self.target_idx}_scenario{self.scenario_idx}"

    @classmethod
    def parse(cls, text: str) -> "EvaluationKey":
        """Return the key that a text names. Raise InputError if it is not a key."""
        match = EVALUATION_PATTERN.fullmatch(text)
        key = None if match is None else cls(*map(int, match.groups()))
        if key is None or str(key) != text:  # no leading zeros: a key has one name
            raise InputError(f"{text!r:.60} is not a key; expected one like target0_scenario3")
        return key
