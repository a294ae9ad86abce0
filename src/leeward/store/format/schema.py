"""What a result is, and how it lies in an HDF5 group: the one place that knows both.

Damage must show: attributes sit in the object header, which is checksummed in the file format chosen here; strings have
a fixed length (others lie in a heap without a checksum); arrays are chunked with fletcher32; a scalar, which cannot be
chunked, is compact, that is inside the header. Over all of it stands the seal, a SHA-256 of our own.
"""

import functools
import hashlib
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5a, h5d, h5g, h5p, h5s, h5t, h5z

from leeward.errors import InputError, LeewardError
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict

Array = npt.NDArray[np.float64]
Value = str | bool | int | float | Array

FORMAT_VERSION = 1
LIBVER = ("v110", "v110")

MOST_TURBINES = 100_000
MOST_HISTORY = 100_000
MOST_NUMBERS_A_CHUNK = 4_000_000
MOST_ATTRIBUTES = 200
LONGEST_TEXT = 60_000  # bytes: what an attribute may have inside an object header

SUCCESS = "success"
NO_AEP = "no-aep"  # a layout of other origin whose energy nobody knows
OWN = "leeward"
FOREIGN = "foreign"

# what every group has, whoever made it; all else is a detail of its origin
_FIXED = (
    "key",
    "farm_idx",
    "type_idx",
    "ss_seed",
    "n_turbines",
    "diameter",
    "status",
    "origin",
    "fingerprint",
    "stop_reason",
    "steps",
    "digest",
)
DATASETS = ("layout", "aep", "history")
RESERVED = (*_FIXED, "seal", *DATASETS)  # no names for details


class BadGroupError(LeewardError):
    """A group that is no valid result."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict


@dataclass(frozen=True, eq=False)
class Result:
    """A finished layout and what made it.

    layout: easting and northing, m, shape (2, turbines). aep: GWh; not a number with the status "no-aep". details:
    provenance: text, numbers and short arrays by name. history: optional, shape (2, n): steps and AEP (GWh), of the
    layout in hand until the first refinement ends, then of the best one so far.
    """

    key: Key
    layout: Array
    aep: float
    diameter: float
    fingerprint: str
    stop_reason: str
    steps: int
    status: str = SUCCESS
    origin: str = OWN
    details: Mapping[str, Value] = field(default_factory=dict)
    history: Array | None = None

    def __post_init__(self) -> None:
        layout = np.ascontiguousarray(self.layout, dtype="<f8")
        if layout.ndim != 2 or layout.shape[0] != 2 or not 1 <= layout.shape[1] <= MOST_TURBINES:
            raise InputError(f"{self.key}: layout has the shape {layout.shape}; expected (2, turbines)")
        object.__setattr__(self, "layout", layout)
        for name, value in self.details.items():
            if name in _FIXED or name == "seal":
                raise InputError(f"{self.key}: {name} is no detail; it follows from the result itself")
            _check_value(f"{self.key}: {name}", value)

    @property
    def n_turbines(self) -> int:
        return int(self.layout.shape[1])

    @property
    def x(self) -> Array:
        """Easting, m."""
        easting: Array = self.layout[0]
        return easting

    @property
    def y(self) -> Array:
        """Northing, m."""
        northing: Array = self.layout[1]
        return northing

    @property
    def digest(self) -> str:
        """SHA-256 of what two honest computations of one task agree in."""
        values: list[Value] = [str(self.key), self.fingerprint, self.n_turbines, float(self.diameter), self.layout]
        values += [float(self.aep), self.stop_reason, self.steps]
        return hashlib.sha256(b"".join(map(_encoded, values))).hexdigest()

    @property
    def attributes(self) -> dict[str, Value]:
        """All attributes of the group but the seal."""
        return {
            "key": str(self.key),
            "farm_idx": self.key.farm_idx,
            "type_idx": self.key.type_idx,
            "ss_seed": self.key.seed,
            "n_turbines": self.n_turbines,
            "diameter": float(self.diameter),
            "status": self.status,
            "origin": self.origin,
            "fingerprint": self.fingerprint,
            "stop_reason": self.stop_reason,
            "steps": self.steps,
            "digest": self.digest,
            **self.details,
        }

    @property
    def datasets(self) -> dict[str, Array]:
        datasets = {"layout": self.layout, "aep": np.array(self.aep, dtype="<f8")}
        if self.history is not None:
            datasets["history"] = np.ascontiguousarray(self.history, dtype="<f8")
        return datasets

    @property
    def seal(self) -> str:
        """SHA-256 of all that is in the group."""
        return seal_of(self.attributes, self.datasets)


def seal_of(attributes: Mapping[str, Value], datasets: Mapping[str, Array]) -> str:
    """SHA-256 over names and values, whatever their order."""
    parts = []
    for values in (attributes, datasets):
        parts.append(_LENGTH.pack(len(values)))
        for name in sorted(values):
            parts.append(_encoded(name))
            parts.append(_encoded(values[name]))
    return hashlib.sha256(b"".join(parts)).hexdigest()


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


def _check_value(what: str, value: object) -> None:
    if isinstance(value, str):
        if "\0" in value or len(value.encode()) > LONGEST_TEXT:
            raise InputError(f"{what} is a text that cannot be stored: it has a NUL, or over {LONGEST_TEXT} bytes")
    elif isinstance(value, np.ndarray):
        if value.dtype != np.float64 or value.ndim != 1 or value.nbytes > LONGEST_TEXT:
            raise InputError(f"{what} is {value!r:.60}; expected a short one-dimensional array of float64")
    elif not isinstance(value, bool | int | float):
        raise InputError(f"{what} is {value!r:.60}; expected text, a number or an array")


# --- writing ---------------------------------------------------------------------------------------------------------

_SCALAR = h5s.create(h5s.SCALAR)
_BOOL = h5t.py_create(np.dtype(bool), logical=True)


def write_group(parent: h5py.Group, result: Result) -> None:
    """The result as a group of `parent`, which must be in a file of the format `LIBVER`."""
    attributes = result.attributes
    datasets = result.datasets
    write_parts(parent, str(result.key), attributes, datasets, seal_of(attributes, datasets))


def write_parts(
    parent: h5py.Group, name: str, attributes: Mapping[str, Value], datasets: Mapping[str, Array], seal: str
) -> None:
    """What `write_group` writes, given piece by piece: by whoever got the pieces from another process."""
    group = h5g.create(parent.id, name.encode(), gcpl=_group_properties())
    for attribute, value in attributes.items():
        write_attribute(group, attribute, value)
    write_attribute(group, "seal", seal)
    for dataset, array in datasets.items():
        _write_dataset(group, dataset, array)


@functools.cache
def _group_properties() -> Any:
    properties = h5p.create(h5p.GROUP_CREATE)
    properties.set_attr_phase_change(MOST_ATTRIBUTES + 1, 0)  # all attributes in the object header
    return properties


def write_attribute(place: Any, name: str, value: Value) -> None:
    """`place`: the low-level identifier of a group."""
    kind, space, data = attribute_form(value)
    h5a.create(place, name.encode(), kind, space).write(data, mtype=kind)


def attribute_form(value: Value) -> tuple[Any, Any, Any]:
    """Type, dataspace and bytes of an attribute."""
    if isinstance(value, str):
        content = value.encode()
        size = max(len(content), 1)
        return _text_type(size), _SCALAR, np.array(content, dtype=f"S{size}")
    if isinstance(value, bool):
        return _BOOL, _SCALAR, np.array(value)
    if isinstance(value, int):
        return h5t.STD_I64LE, _SCALAR, np.array(value, dtype="<i8")
    data = np.asarray(value, dtype="<f8")
    return h5t.IEEE_F64LE, h5s.create_simple(data.shape) if data.ndim else _SCALAR, data


@functools.lru_cache(maxsize=512)
def _text_type(size: int) -> Any:
    """Text of a fixed number of bytes, UTF-8, padded with NUL."""
    kind = h5t.C_S1.copy()
    kind.set_size(size)
    kind.set_strpad(h5t.STR_NULLPAD)
    kind.set_cset(h5t.CSET_UTF8)
    return kind


def _write_dataset(group: Any, name: str, array: Array) -> None:
    properties, space = _dataset_properties(array.shape)
    h5d.create(group, name.encode(), h5t.IEEE_F64LE, space, properties).write(h5s.ALL, h5s.ALL, array)


@functools.lru_cache(maxsize=512)
def _dataset_properties(shape: tuple[int, ...]) -> tuple[Any, Any]:
    properties = h5p.create(h5p.DATASET_CREATE)
    if not shape:
        properties.set_layout(h5d.COMPACT)
        return properties, _SCALAR
    properties.set_chunk(shape)
    properties.set_fletcher32()
    return properties, h5s.create_simple(shape)


# --- reading ---------------------------------------------------------------------------------------------------------


def read_group(group: Any, name: str) -> Result:
    """The result in the group of this name, if it is one and its seal is whole; `group`: a low-level identifier.

    Raises BadGroupError; what libhdf5 raises of itself is for the caller.
    """
    attributes = read_attributes(group)
    datasets = {}
    for dataset in links(group):
        if dataset not in DATASETS:
            _wrong(f"{dataset!r:.60} does not belong there")
        datasets[dataset] = read_dataset(group, dataset)
    return sealed_result(name, attributes, datasets)


def sealed_result(name: str, attributes: Mapping[str, Value], datasets: Mapping[str, Array]) -> Result:
    """What was read from the group of this name, if it is a result and its seal is whole; else BadGroupError."""
    seal = attributes.get("seal")
    attributes = {attribute: value for attribute, value in attributes.items() if attribute != "seal"}
    missing = [needed for needed in _FIXED if needed not in attributes]
    if seal is None or missing:
        _wrong(f"no attribute {', '.join(missing) or 'seal'}")
    for dataset, dimensions in (("layout", 2), ("aep", 0)):
        if dataset not in datasets or datasets[dataset].ndim != dimensions:
            _wrong(f"{dataset} is missing, or has the wrong number of dimensions")
    if seal_of(attributes, datasets) != seal:
        raise BadGroupError(Verdict.BAD_SEAL, "the seal does not fit what is in the group")
    result = _result(attributes, datasets)
    if attributes["key"] != name:
        _wrong(f"the group is named {name} and holds {attributes['key']}")
    for attribute, value in result.attributes.items():
        if not _same(attributes[attribute], value):
            _wrong(f"the attribute {attribute} contradicts the others: {attributes[attribute]!r:.60}")
    return result


def _result(attributes: Mapping[str, Value], datasets: Mapping[str, Array]) -> Result:
    try:
        key = Key.parse(str(attributes["key"]))
        return Result(
            key=key,
            layout=datasets["layout"],
            aep=float(datasets["aep"]),
            diameter=float(attributes["diameter"]),
            fingerprint=str(attributes["fingerprint"]),
            stop_reason=str(attributes["stop_reason"]),
            steps=int(attributes["steps"]),
            status=str(attributes["status"]),
            origin=str(attributes["origin"]),
            details={name: value for name, value in attributes.items() if name not in _FIXED},
            history=datasets.get("history"),
        )
    except (InputError, ValueError, TypeError) as error:
        raise BadGroupError(Verdict.WRONG_STRUCTURE, str(error)) from error


def _same(one: Value, other: Value) -> bool:
    if one is other:
        return True
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)


def plausible(result: Result) -> str | None:
    """What is wrong with the numbers of a result that has a seal, or None: a seal keeps nonsense whole too."""
    if result.status not in (SUCCESS, NO_AEP):
        return f"the status is {result.status!r:.60}"
    if not np.isfinite(result.layout).all():
        return "the layout has coordinates that are no numbers"
    if result.status == NO_AEP:
        return None if math.isnan(result.aep) else f"aep is {result.aep:g} with the status {NO_AEP}"
    return None if math.isfinite(result.aep) and result.aep > 0 else f"aep is {result.aep:g} GWh"


def read_attributes(group: Any, longest: int = LONGEST_TEXT) -> dict[str, Value]:
    """All attributes of a group, of the kinds that `write_attribute` writes, within bounds."""
    return {
        name.decode("utf-8", "backslashreplace"): read_attribute(group, name, longest)
        for name in attribute_names(group)
    }


def attribute_names(group: Any) -> list[bytes]:
    """Of all attributes of a group, if they are not too many."""
    count = h5a.get_num_attrs(group)
    if count > MOST_ATTRIBUTES:
        _wrong(f"{count} attributes, more than {MOST_ATTRIBUTES}")
    names: list[bytes] = []
    h5a.iterate(group, names.append)  # opening them by number instead would sort them all anew for each
    return names


def read_attribute(group: Any, name: bytes, longest: int = LONGEST_TEXT) -> Value:
    """Every call of the library counts here: this is most of what reading a result costs."""
    attribute = h5a.open(group, name)
    kind = attribute.get_type()
    sort = kind.get_class()
    size = kind.get_size()
    stored = attribute.get_storage_size()
    if stored > longest:
        _wrong(f"the attribute {name!r:.60} has {stored} bytes")
    if sort == h5t.FLOAT:
        return _read_floats(attribute, name)
    if stored != size:
        _wrong(f"the attribute {name!r:.60} is not a single value")
    if sort == h5t.STRING and not kind.is_variable_str():
        text = np.zeros((), dtype=f"S{size}")
        attribute.read(text, mtype=kind)
        try:
            return text.tobytes().rstrip(b"\0").decode()
        except UnicodeDecodeError:
            _wrong(f"the attribute {name!r:.60} is no UTF-8 text")
    if sort == h5t.ENUM and kind.equal(_BOOL):
        truth = np.zeros((), dtype=bool)
        attribute.read(truth, mtype=_BOOL)
        return bool(truth)
    if sort != h5t.INTEGER:
        _wrong(f"the attribute {name!r:.60} is neither text of a fixed length nor a number")
    whole = np.zeros((), dtype=np.int64)
    attribute.read(whole, mtype=h5t.NATIVE_INT64)
    return int(whole)


def _read_floats(attribute: Any, name: bytes) -> Value:
    """One number, or a row of them, which may be a row of one."""
    shape = attribute.shape
    if shape is None or len(shape) > 1:
        _wrong(f"the attribute {name!r:.60} has the shape {shape}")
    numbers = np.zeros(shape)
    if numbers.size:
        attribute.read(numbers, mtype=h5t.NATIVE_DOUBLE)
    return numbers if shape else float(numbers)


def read_dataset(group: Any, name: str, most: int = 2 * MOST_TURBINES) -> Array:
    """A dataset of numbers, as float64, if it is one of at most `most` that lie in this very file."""
    dataset = open_dataset(group, name)
    shape = dataset.shape
    if shape is None or dataset.dtype.kind not in "iuf" or len(shape) > 2 or math.prod(shape) > most:
        _wrong(f"{name} has the shape {shape} and the type {dataset.dtype}; expected at most {most} numbers")
    array = np.zeros(shape, dtype="<f8")
    if math.prod(shape):
        dataset.read(h5s.ALL, h5s.ALL, array, h5t.NATIVE_DOUBLE)
    return array


def open_dataset(group: Any, name: str) -> Any:
    """The low-level dataset behind a hard link, refused where its numbers lie elsewhere or behind unknown filters."""
    if group.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
        _wrong(f"{name} is a link to elsewhere")
    if kind_behind(group, name) is not h5d.DatasetID:
        _wrong(f"{name} is no dataset")
    dataset = h5d.open(group, name.encode())
    properties = dataset.get_create_plist()
    form = properties.get_layout()
    if properties.get_external_count() or form == h5d.VIRTUAL:
        _wrong(f"{name} lies in another file")
    if form == h5d.CHUNKED and math.prod(properties.get_chunk()) > MOST_NUMBERS_A_CHUNK:
        _wrong(f"{name} is in chunks of {properties.get_chunk()}; expected at most {MOST_NUMBERS_A_CHUNK} numbers each")
    if form == h5d.CHUNKED and properties.get_nfilters() == 0:
        _demand_whole_chunks(dataset, name, math.prod(properties.get_chunk()) * dataset.dtype.itemsize)
    known = (h5z.FILTER_FLETCHER32, h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_LZF)
    for i in range(properties.get_nfilters()):
        if properties.get_filter(i)[0] not in known:
            _wrong(f"{name} is behind the filter {properties.get_filter(i)[0]}, which is not read here")
    return dataset


def kind_behind(parent: Any, name: str) -> type:
    """Of the object behind a hard link: h5g.GroupID, h5d.DatasetID, or another.

    `h5o.get_info` would read indexes of a group, too, which may be damaged without its results being so.
    """
    return type(h5py.h5o.open(parent, name.encode()))


def _demand_whole_chunks(dataset: Any, name: str, size: int) -> None:
    """Of one that is shorter, as after a flipped bit hid its filters, libhdf5 fills the rest with what is in memory."""
    for number in range(dataset.get_num_chunks()):
        stored = dataset.get_chunk_info(number).size
        if stored != size:
            _wrong(f"{name} has a chunk of {stored} bytes; expected {size}")


def links(group: Any) -> Iterator[str]:
    if group.get_num_objs() > MOST_ATTRIBUTES:
        _wrong(f"{group.get_num_objs()} entries in the group")
    for i in range(group.get_num_objs()):
        yield group.get_objname_by_idx(i).decode("utf-8", "backslashreplace")


def _wrong(reason: str) -> NoReturn:
    raise BadGroupError(Verdict.WRONG_STRUCTURE, reason)


def write_root(file: h5py.File, attributes: Iterable[tuple[str, Value]]) -> None:
    """The attributes of the file itself, with a seal of their own: texts may be long there, and libhdf5 keeps those
    without a checksum.
    """
    values: dict[str, Value] = {"format_version": FORMAT_VERSION, **dict(attributes)}
    for name, value in values.items():
        write_attribute(file.id, name, value)
    write_attribute(file.id, "seal", seal_of(values, {}))


def is_root_whole(attributes: Mapping[str, Value]) -> bool:
    """Whether the attributes of a file fit their seal; they are all that were read."""
    values = dict(attributes)
    return values.pop("seal", None) == seal_of(values, {})
