"""Write and read a result of any kind as an HDF5 group.

leeward must detect all damage. Attributes are in the object header, which has a checksum in this version of the format.
Strings have a fixed length, because HDF5 stores others in a heap without a checksum. Arrays are chunked with
fletcher32. A scalar cannot be chunked: it is compact, that is inside the header. The seal, a SHA-256, covers all of it.
It does not cover the attribute `units` of a dataset, which is always the same and is compared when a result is read.
"""

import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5l, h5o, h5p, h5s, h5t, h5z

from leeward.carving import MOST_NUMBERS_A_CHUNK
from leeward.errors import InputError
from leeward.store.format.kind import LONGEST_TEXT, AnyResult, Array, Value, seal_of
from leeward.store.format.verdicts import BadGroupError, Verdict, refuse

FORMAT_VERSION = 1
LIBVER = ("v110", "v110")
MOST_ATTRIBUTES = 200
UNITS = "units"

# --- writing ---------------------------------------------------------------------------------------------------------

_SCALAR = h5s.create(h5s.SCALAR)
_BOOL = h5t.py_create(np.dtype(bool), logical=True)


def write_group(parent: h5py.Group, result: AnyResult) -> None:
    """Write a result as a group of `parent`, which must be in a file of the format `LIBVER`."""
    attributes, datasets = result.attributes, result.datasets
    write_parts(parent, str(result.key), {**attributes, "seal": seal_of(attributes, datasets)}, datasets, result.UNITS)


def write_parts(
    parent: h5py.Group,
    name: str,
    attributes: Mapping[str, Value],
    datasets: Mapping[str, Array],
    units: Mapping[str, str],
) -> None:
    """Write the group of a result from its parts. attributes: with the seal. units: of the datasets."""
    group = h5g.create(parent.id, name.encode(), gcpl=_group_properties())
    for attribute, value in attributes.items():
        write_attribute(group, attribute, value)
    for dataset, array in datasets.items():
        place = _write_dataset(group, dataset, array)
        if dataset in units:
            write_attribute(place, UNITS, units[dataset])


@functools.cache
def _group_properties() -> Any:
    properties = h5p.create(h5p.GROUP_CREATE)
    properties.set_attr_phase_change(MOST_ATTRIBUTES + 1, 0)  # all attributes in the object header
    return properties


def write_attribute(place: Any, name: str, value: Value) -> None:
    """Write an attribute. place: the low-level identifier of a group or a dataset."""
    kind, space, data = attribute_form(value)
    h5a.create(place, name.encode(), kind, space).write(data, mtype=kind)


def attribute_form(value: Value) -> tuple[Any, Any, Any]:
    """Return the type, dataspace and data of an attribute."""
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
    """Return the type of UTF-8 text of a fixed number of bytes, padded with NUL."""
    kind = h5t.C_S1.copy()
    kind.set_size(size)
    kind.set_strpad(h5t.STR_NULLPAD)
    kind.set_cset(h5t.CSET_UTF8)
    return kind


def _write_dataset(group: Any, name: str, array: Array) -> Any:
    """Write a dataset, and return its low-level identifier."""
    properties, space = _dataset_properties(array.shape)
    dataset = h5d.create(group, name.encode(), h5t.IEEE_F64LE, space, properties)
    dataset.write(h5s.ALL, h5s.ALL, array)
    return dataset


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


def read_group(group: Any, name: str, kind: type[AnyResult]) -> AnyResult:
    """Return the result in a group with an intact seal, else raise BadGroupError. group: a low-level identifier.

    The caller handles errors of libhdf5.
    """
    attributes = read_attributes(group)
    datasets = {}
    for dataset in links(group):
        if dataset not in kind.DATASETS:
            refuse(f"the group has the unexpected entry {dataset!r:.60}")
        datasets[dataset] = read_dataset(group, dataset, kind.MOST_NUMBERS, max(kind.DATASETS.values()))
    return sealed_result(name, kind, attributes, datasets)


def sealed_result(
    name: str, kind: type[AnyResult], attributes: Mapping[str, Value], datasets: Mapping[str, Array]
) -> AnyResult:
    """Return the result made of these parts. Raise BadGroupError if they are invalid or do not match the seal."""
    seal = attributes.get("seal")
    attributes = {attribute: value for attribute, value in attributes.items() if attribute != "seal"}
    missing = [needed for needed in kind.FIXED if needed not in attributes]
    if seal is None or missing:
        refuse(f"the group has no attribute {', '.join(missing) or 'seal'}")
    for dataset, dimensions in kind.DATASETS.items():
        if datasets[dataset].ndim != dimensions if dataset in datasets else dataset not in kind.OPTIONAL:
            refuse(f"{dataset} is missing, or has the wrong number of dimensions")
    if seal_of(attributes, datasets) != seal:
        raise BadGroupError(Verdict.BAD_SEAL, "the seal does not match the content of the group")
    try:
        result = kind.of(attributes, datasets)
    except (InputError, ValueError, TypeError) as error:
        raise BadGroupError(Verdict.WRONG_STRUCTURE, str(error)) from error
    if attributes["key"] != name:
        refuse(f"the group is named {name} and holds {attributes['key']}")
    for attribute, value in result.attributes.items():
        if not _same(attributes[attribute], value):
            refuse(f"the attribute {attribute} contradicts the others: {attributes[attribute]!r:.60}")
    return result


def _same(one: Value, other: Value) -> bool:
    if one is other:
        return True
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)


def read_attributes(group: Any, longest: int = LONGEST_TEXT) -> dict[str, Value]:
    """Return all attributes of a group. Raise BadGroupError for types that `write_attribute` does not write."""
    return {
        name.decode("utf-8", "backslashreplace"): read_attribute(group, name, longest)
        for name in attribute_names(group)
    }


def attribute_names(group: Any) -> list[bytes]:
    """Return the names of all attributes of a group. Raise BadGroupError if there are too many."""
    count = h5a.get_num_attrs(group)
    if count > MOST_ATTRIBUTES:
        refuse(f"the group has {count} attributes; expected at most {MOST_ATTRIBUTES}")
    names: list[bytes] = []
    h5a.iterate(group, names.append)  # opening them by number would sort all of them each time
    return names


def read_attribute(group: Any, name: bytes, longest: int = LONGEST_TEXT) -> Value:
    """Return an attribute. Reading a result spends most of its time here, so call libhdf5 as rarely as possible."""
    attribute = h5a.open(group, name)
    kind = attribute.get_type()
    sort = kind.get_class()
    size = kind.get_size()
    stored = attribute.get_storage_size()
    if stored > longest:
        refuse(f"the attribute {name!r:.60} has {stored} bytes; expected at most {longest}")
    if sort == h5t.FLOAT:
        return _read_floats(attribute, name)
    if stored != size:
        refuse(f"the attribute {name!r:.60} is not a single value")
    if sort == h5t.STRING and not kind.is_variable_str():
        text = np.zeros((), dtype=f"S{size}")
        attribute.read(text, mtype=kind)
        try:
            return text.tobytes().rstrip(b"\0").decode()
        except UnicodeDecodeError:
            refuse(f"the attribute {name!r:.60} is not UTF-8 text")
    if sort == h5t.ENUM and kind.equal(_BOOL):
        truth = np.zeros((), dtype=bool)
        attribute.read(truth, mtype=_BOOL)
        return bool(truth)
    if sort != h5t.INTEGER:
        refuse(f"the attribute {name!r:.60} has an unsupported type; expected text of a fixed length, or a number")
    whole = np.zeros((), dtype=np.int64)
    attribute.read(whole, mtype=h5t.NATIVE_INT64)
    return int(whole)


def _read_floats(attribute: Any, name: bytes) -> Value:
    """Return one number, or an array of one dimension."""
    shape = attribute.shape
    if shape is None or len(shape) > 1:
        refuse(f"the attribute {name!r:.60} has the shape {shape}; expected at most one dimension")
    numbers = np.zeros(shape)
    if numbers.size:
        attribute.read(numbers, mtype=h5t.NATIVE_DOUBLE)
    return numbers if shape else float(numbers)


def read_dataset(group: Any, name: str, most: int, dimensions: int = 2) -> Array:
    """Return a dataset of at most `most` numbers in this file, as float64. Raise BadGroupError otherwise."""
    dataset = open_dataset(group, name)
    shape = dataset.shape
    if shape is None or dataset.dtype.kind not in "iuf" or len(shape) > dimensions or math.prod(shape) > most:
        refuse(f"{name} has the shape {shape} and the type {dataset.dtype}; expected at most {most} numbers")
    array = np.zeros(shape, dtype="<f8")
    if math.prod(shape):
        dataset.read(h5s.ALL, h5s.ALL, array, h5t.NATIVE_DOUBLE)
    return array


def open_dataset(group: Any, name: str) -> Any:
    """Return a low-level dataset. Raise BadGroupError for a link, data in another file, or an unknown filter."""
    if group.links.get_info(name.encode()).type != h5l.TYPE_HARD:
        refuse(f"{name} is a soft or external link; expected a dataset")
    what, dataset = what_is(group, name)
    if what != "a dataset":
        refuse(f"{name} is {what}; expected a dataset")
    properties = dataset.get_create_plist()
    form = properties.get_layout()
    if properties.get_external_count() or form == h5d.VIRTUAL:
        refuse(f"{name} is stored in another file")
    if form == h5d.CHUNKED and math.prod(properties.get_chunk()) > MOST_NUMBERS_A_CHUNK:
        refuse(f"{name} is in chunks of {properties.get_chunk()}; expected at most {MOST_NUMBERS_A_CHUNK} numbers each")
    if form == h5d.CHUNKED and properties.get_nfilters() == 0:
        _check_chunk_sizes(dataset, name, math.prod(properties.get_chunk()) * dataset.dtype.itemsize)
    known = (h5z.FILTER_FLETCHER32, h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_LZF)
    for i in range(properties.get_nfilters()):
        if properties.get_filter(i)[0] not in known:
            refuse(f"{name} uses the filter {properties.get_filter(i)[0]}, which leeward does not support")
    return dataset


def open_group(parent: Any, name: str) -> Any:
    """Return the low-level group of this name. Raise BadGroupError if something else is there."""
    what, group = what_is(parent, name)
    if what != "a group":
        refuse(f"{what}; expected a group")
    return group


def what_is(parent: Any, name: str) -> tuple[str, Any]:
    """Return a description of the object of this name, and the object itself. Links are not followed.

    `h5o.get_info` would also read indexes of a group, which may be damaged although its results are intact.
    """
    if not parent.links.exists(name.encode()):
        return "nothing of this name", None
    kind = parent.links.get_info(name.encode()).type
    if kind != h5l.TYPE_HARD:
        links = {h5l.TYPE_SOFT: "a soft link", h5l.TYPE_EXTERNAL: "a link to another file"}
        return links.get(kind, "an unknown link"), None
    found = h5o.open(parent, name.encode())
    objects = {h5g.GroupID: "a group", h5d.DatasetID: "a dataset"}
    return objects.get(type(found), "an object other than a group or dataset"), found


def _check_chunk_sizes(dataset: Any, name: str, size: int) -> None:
    """Raise BadGroupError for a chunk that is too short: libhdf5 would fill the rest with arbitrary memory."""
    for number in range(dataset.get_num_chunks()):
        stored = dataset.get_chunk_info(number).size
        if stored != size:
            refuse(f"{name} has a chunk of {stored} bytes; expected {size}")


def links(group: Any) -> Iterator[str]:
    """Yield the names of the members of a group. Raise BadGroupError if there are too many."""
    if group.get_num_objs() > MOST_ATTRIBUTES:
        refuse(f"the group has {group.get_num_objs()} entries; expected at most {MOST_ATTRIBUTES}")
    for i in range(group.get_num_objs()):
        yield group.get_objname_by_idx(i).decode("utf-8", "backslashreplace")


def write_root(file: h5py.File, attributes: Mapping[str, Value]) -> None:
    """Write the attributes of the file itself, and a seal: libhdf5 stores long texts without a checksum."""
    values: dict[str, Value] = {"format_version": FORMAT_VERSION, **attributes}
    for name, value in values.items():
        write_attribute(file.id, name, value)
    write_attribute(file.id, "seal", seal_of(values, {}))


def root_attributes(result: AnyResult) -> dict[str, Value]:
    """Return the root attributes that name the kind of results: none for layouts, the first kind."""
    return {} if result.KIND == "layouts" else {"kind": result.KIND}


def is_root_whole(attributes: Mapping[str, Value]) -> bool:
    """Return whether the attributes of a file match their seal."""
    values = dict(attributes)
    return values.pop("seal", None) == seal_of(values, {})
