"""The interface of a result of any kind, and the hashing of results."""

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

LONGEST_TEXT = 60_000  # bytes of an attribute that fit into an object header


class AnyResult(abc.ABC):
    """A result of any kind, with a key, attributes and datasets. Each kind is a subclass.

    KIND: its name in files. EXAMPLE: a key, for messages. NAMES: a pattern of keys, as bytes, to search damaged files.
    FIXED: the attributes of every result, among them `key`, `digest`, `status`, `origin` and `fingerprint`; all others
    are details. DATASETS: the number of dimensions of each, at most four; those in OPTIONAL may be absent. UNITS: of
    the datasets, written as their attribute `units`. MARK: the dataset that identifies a group as a result.
    MOST_NUMBERS: the limit for one dataset.

    Keys are sortable tuples whose text is their name. Keys of different kinds are never equal.
    """

    KIND: ClassVar[str]
    EXAMPLE: ClassVar[str]
    NAMES: ClassVar[bytes]
    FIXED: ClassVar[tuple[str, ...]]
    DATASETS: ClassVar[Mapping[str, int]]
    OPTIONAL: ClassVar[tuple[str, ...]] = ()
    UNITS: ClassVar[Mapping[str, str]] = {}
    MARK: ClassVar[str]
    MOST_NUMBERS: ClassVar[int] = 1_000_000

    key: Any

    @classmethod
    @abc.abstractmethod
    def parse_key(cls, text: str) -> Any:
        """Return the key that a text names. Raise InputError if it is not a key."""

    @classmethod
    def is_key(cls, text: str) -> bool:
        """Return whether a text names a key of this kind."""
        try:
            cls.parse_key(text)
        except InputError:
            return False
        return True

    @classmethod
    @abc.abstractmethod
    def of(cls, attributes: Mapping[str, Any], datasets: Mapping[str, Array]) -> Self:
        """Return a result from its stored parts, which have all FIXED names. Raise InputError if they are invalid."""

    @property
    @abc.abstractmethod
    def attributes(self) -> dict[str, Value]:
        """All attributes of the group except the seal."""

    @property
    @abc.abstractmethod
    def datasets(self) -> dict[str, Array]:
        """All datasets of the group."""

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """SHA-256 of the values that correct computations of one task share."""

    @property
    def seal(self) -> str:
        """SHA-256 of the whole group."""
        return seal_of(self.attributes, self.datasets)

    @classmethod
    @abc.abstractmethod
    def line_of(cls, attributes: Mapping[str, Any], scalars: Mapping[str, float]) -> dict[str, Any]:
        """Return the values that lists and pages show, for JSON. scalars: its datasets of a single number."""

    def index_line(self) -> dict[str, Any]:
        """Return the values of this result that lists and pages show."""
        scalars = {name: float(array) for name, array in self.datasets.items() if array.ndim == 0}
        return self.line_of(self.attributes, scalars)

    def doubt(self) -> str | None:
        """Return why the numbers are implausible, or None. They may be implausible although the seal is intact."""
        return None

    def covers(self, other: Self, *, to_the_letter: bool = False) -> bool:
        """Return whether this result makes `other`, of the same key, redundant.

        to_the_letter: also compare the content that the digest does not cover.
        """
        return self.digest == other.digest

    @property
    def merit(self) -> float:
        """The quality of the result, to choose the best of several: higher is better, NaN if unknown."""
        return float("nan")

    @classmethod
    def details_digest(cls, attributes: Mapping[str, Value]) -> bytes:
        """Return a digest of the details, which `digest` does not cover; b"" if they need not be compared."""
        return b""

    def difference(self, other: Self) -> str:
        """Return in a few words how this differs from another result of the same key."""
        return "different results"


def seal_of(attributes: Mapping[str, Value], datasets: Mapping[str, Array]) -> str:
    """Return the SHA-256 of names and values. Their order does not matter."""
    parts = []
    for values in (attributes, datasets):
        parts.append(_LENGTH.pack(len(values)))
        for name in sorted(values):
            parts.append(_encoded(name))
            parts.append(_encoded(values[name]))
    return hashlib.sha256(b"".join(parts)).hexdigest()


def digest_of(*values: Value) -> str:
    """Return the SHA-256 of values in this order."""
    return hashlib.sha256(b"".join(map(_encoded, values))).hexdigest()


_LENGTH = struct.Struct("<q")
_TEXT = struct.Struct("<cq")
_WHOLE = struct.Struct("<cqq")
_REAL = struct.Struct("<cqd")


def _encoded(value: Value) -> bytes:
    """Return a value as bytes with its type and length, so that different sequences of values differ."""
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
    """Raise InputError if a value cannot be an attribute."""
    if isinstance(value, str):
        if "\0" in value or len(value.encode()) > LONGEST_TEXT:
            raise InputError(f"{what} cannot be stored as text: it contains a NUL, or has over {LONGEST_TEXT} bytes")
    elif isinstance(value, np.ndarray):
        if value.dtype != np.float64 or value.ndim != 1 or value.nbytes > LONGEST_TEXT:
            raise InputError(f"{what} is {value!r:.60}; expected a short one-dimensional array of float64")
    elif not isinstance(value, bool | int | float):
        raise InputError(f"{what} is {value!r:.60}; expected text, a number or an array")
