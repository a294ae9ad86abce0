"""What the store has to know of a result, of whatever kind, and how results are hashed."""

import abc
import hashlib
import struct
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError

Array = npt.NDArray[np.float64]
Value = str | bool | int | float | Array

LONGEST_TEXT = 60_000  # bytes: what an attribute may have inside an object header


class AnyResult(abc.ABC):
    """A result of any kind: named by its key, with attributes and datasets. A kind is a subclass of this.

    KIND: its name, as files tell it. EXAMPLE: a key, for messages. NAMES: a pattern of keys, as bytes, for looking
    through damaged files. FIXED: the attributes of every result, `key`, `digest`, `status`, `origin` and `fingerprint`
    among them; all others are details. DATASETS: how many dimensions each has, at most four; those in OPTIONAL may be
    absent. MARK: the dataset by which a group is seen to be one. MOST_NUMBERS: in one dataset.

    Keys are tuples that sort, whose text names them; keys of different kinds are never equal.
    """

    KIND: ClassVar[str]
    EXAMPLE: ClassVar[str]
    NAMES: ClassVar[bytes]
    FIXED: ClassVar[tuple[str, ...]]
    DATASETS: ClassVar[Mapping[str, int]]
    OPTIONAL: ClassVar[tuple[str, ...]] = ()
    MARK: ClassVar[str]
    MOST_NUMBERS: ClassVar[int] = 1_000_000

    key: Any

    @classmethod
    @abc.abstractmethod
    def parse_key(cls, text: str) -> Any:
        """Return the key that this text names. Raise InputError if it names none."""

    @classmethod
    @abc.abstractmethod
    def of(cls, attributes: Mapping[str, Any], datasets: Mapping[str, Array]) -> Self:
        """Make a result of what was stored; all that is FIXED or needed is there. Raise InputError if it is none."""

    @property
    @abc.abstractmethod
    def attributes(self) -> dict[str, Value]:
        """All attributes of the group but the seal."""

    @property
    @abc.abstractmethod
    def datasets(self) -> dict[str, Array]:
        """All datasets of the group."""

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """SHA-256 of what two honest computations of one task agree in."""

    @property
    def seal(self) -> str:
        """SHA-256 of all that is in the group."""
        return seal_of(self.attributes, self.datasets)

    @classmethod
    @abc.abstractmethod
    def line_of(cls, attributes: Mapping[str, Any], scalars: Mapping[str, float]) -> dict[str, Any]:
        """Return what lists and pages show of a result, for JSON. scalars: its datasets of a single number."""

    def index_line(self) -> dict[str, Any]:
        """Return what lists and pages show of this result."""
        scalars = {name: float(array) for name, array in self.datasets.items() if array.ndim == 0}
        return self.line_of(self.attributes, scalars)

    def doubt(self) -> str | None:
        """Return what is wrong with the numbers of a result that has a seal: a seal keeps nonsense whole too."""
        return None

    def covers(self, other: Self, *, to_the_letter: bool = False) -> bool:
        """Return whether nothing is lost with `other`, of the same key, where this result is.

        to_the_letter: not even of what else it says, beyond its digest.
        """
        return self.digest == other.digest

    @property
    def merit(self) -> float:
        """How good the result is, for choosing the best of several: the more the better; NaN if that cannot be said."""
        return float("nan")

    @classmethod
    def said(cls, attributes: Mapping[str, Value]) -> bytes:
        """Return a digest of what a result says that is in no other digest; b"" if nothing is to be kept of that."""
        return b""

    def difference(self, other: Self) -> str:
        """Return why this and another result of the same key are not the same, in a few words."""
        return "different results"


def seal_of(attributes: Mapping[str, Value], datasets: Mapping[str, Array]) -> str:
    """SHA-256 over names and values, whatever their order."""
    parts = []
    for values in (attributes, datasets):
        parts.append(_LENGTH.pack(len(values)))
        for name in sorted(values):
            parts.append(_encoded(name))
            parts.append(_encoded(values[name]))
    return hashlib.sha256(b"".join(parts)).hexdigest()


def digest_of(*values: Value) -> str:
    """SHA-256 over values in this order."""
    return hashlib.sha256(b"".join(map(_encoded, values))).hexdigest()


_LENGTH = struct.Struct("<q")
_TEXT = struct.Struct("<cq")
_WHOLE = struct.Struct("<cqq")
_REAL = struct.Struct("<cqd")


def _encoded(value: Value) -> bytes:
    """One value, with its kind and length, so that no two sequences of values give the same bytes."""
    if isinstance(value, str):
        content = value.encode()
        return _TEXT.pack(b"s", len(content)) + content
    if isinstance(value, float):
        return _REAL.pack(b"f", 8, value)
    if isinstance(value, bool | np.bool_):
        return _TEXT.pack(b"b", 1) + (b"1" if value else b"0")
    if isinstance(value, int | np.integer):
        return _WHOLE.pack(b"i", 8, value)
    array = np.ascontiguousarray(value, dtype="<f8")
    content = array.tobytes()
    return struct.pack(f"<cq{array.ndim}qq", b"a", array.ndim, *array.shape, len(content)) + content


def check_value(what: str, value: object) -> None:
    """Raise InputError for what cannot be an attribute."""
    if isinstance(value, str):
        if "\0" in value or len(value.encode()) > LONGEST_TEXT:
            raise InputError(f"{what} cannot be stored as text: it contains a NUL, or has over {LONGEST_TEXT} bytes")
    elif isinstance(value, np.ndarray):
        if value.dtype != np.float64 or value.ndim != 1 or value.nbytes > LONGEST_TEXT:
            raise InputError(f"{what} is {value!r:.60}; expected a short one-dimensional array of float64")
    elif not isinstance(value, bool | int | float):
        raise InputError(f"{what} is {value!r:.60}; expected text, a number or an array")
