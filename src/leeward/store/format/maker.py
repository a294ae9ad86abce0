"""The leeward and the method version that made a result."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from leeward.store.format.schema import Value

_LEEWARD = re.compile(r"leeward [\w.+-]{1,40}")


class Maker(NamedTuple):
    """leeward: name and version of the program, "" if the result does not say. method_version: None likewise."""

    leeward: str
    method_version: int | None

    @classmethod
    def of(cls, details: Mapping[str, Value]) -> "Maker":
        """Read it from the details of a result."""
        program = _LEEWARD.match(str(details.get("versions", "")))
        version = details.get("method_version")
        is_number = isinstance(version, int) and not isinstance(version, bool)
        return cls(program.group() if program else "", int(version) if is_number else None)  # type: ignore[arg-type]

    def __str__(self) -> str:
        known = [self.leeward] if self.leeward else []
        known += [] if self.method_version is None else [f"method version {self.method_version}"]
        return ", ".join(known) or "an unknown version of leeward"
