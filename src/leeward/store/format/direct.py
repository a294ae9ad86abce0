"""Read sealed groups directly from their bytes, several times faster than libhdf5.

Only the form that leeward writes is accepted. All checksums that libhdf5 would verify are verified. libhdf5 reads
everything else, and decides whether it is valid.
"""

import struct
from collections.abc import Mapping

import numpy as np

from leeward.carving import (
    ATTRIBUTE,
    ATTRIBUTE_INFO,
    DOUBTS,
    LINK_INFO,
    Doubtful,
    Pages,
    Raw,
    Unfamiliar,
    attributes_of,
    is_whole,
    members,
    read_dataset,
    read_header,
)
from leeward.store.format.groups import FORMAT_VERSION, UNITS, is_root_whole, sealed_result
from leeward.store.format.kind import AnyResult, Value
from leeward.store.format.kinds import KINDS, kind_name
from leeward.store.format.verdicts import BadGroupError, refuse

_ALL_IN_HEADER = b"\0\0" + b"\xff" * 16  # all links or attributes are in the header

# after one of these errors libhdf5 reads the same bytes, and decides
_DOUBTS = (BadGroupError, Doubtful, OSError, KeyError, *DOUBTS)


def sealed_results(pages: Pages) -> tuple[dict[str, Value], dict[str, AnyResult]] | None:
    """Return the attributes of a small file, without the seal, and its results by name.

    Return None unless the whole file is intact and has the form that leeward writes. libhdf5 is not used, because
    damaged bytes could crash it.
    """
    try:
        block = pages.at(0, 48)
        version, *widths_and_flags = block[8:12]
        base, extension, _, root = struct.unpack_from("<QQQQ", block, 12)
        if version not in (2, 3) or widths_and_flags != [8, 8, 0] or base or extension != 2**64 - 1:
            raise Unfamiliar("superblock")
        if not is_whole(block):
            raise Unfamiliar("checksum")
        attributes, places = _group(pages, root)
        if attributes["format_version"] != FORMAT_VERSION or not is_root_whole(attributes):
            raise Unfamiliar("attributes")
        del attributes["seal"]
        kind = KINDS[kind_name(attributes)]
        results = {name: _result(pages, place, name, kind) for name, place in places.items()}
    except _DOUBTS:
        return None
    return attributes, results


def sealed_result_at(pages: Pages, address: int, name: str, kind: type[AnyResult]) -> AnyResult | None:
    """Return the result in the group at an address; None unless it is intact and in leeward's form.

    libhdf5 must have opened the group, and so verified the checksums of its header.
    """
    try:
        return _result(pages, address, name, kind, is_checked=True)
    except _DOUBTS:
        return None


def sealed_values(attributes: Mapping[str, Raw | None]) -> dict[str, Value]:
    """Return the values of stored attributes. Raise BadGroupError for a form that leeward does not write."""
    values: dict[str, Value] = {}
    for name, value in attributes.items():
        if isinstance(value, bytes):
            values[name] = value.rstrip(b"\0").decode("utf-8", "backslashreplace")
        elif isinstance(value, np.ndarray):
            values[name] = value.astype(np.float64) if value.ndim else value.item()
        else:
            refuse("an attribute that leeward does not write")
    return values


def _result(pages: Pages, address: int, name: str, kind: type[AnyResult], *, is_checked: bool = False) -> AnyResult:
    attributes, places = _group(pages, address, is_checked=is_checked)
    datasets = {}
    for dataset, place in places.items():
        if dataset not in kind.DATASETS:
            raise Unfamiliar("links")
        header = read_header(pages, place)
        if header.one(ATTRIBUTE) is not None:
            _check_attributes(dict(attributes_of(pages, header)), kind.UNITS.get(dataset))
        datasets[dataset] = read_dataset(pages, header, most=kind.MOST_NUMBERS).numbers.astype(np.float64)
    return sealed_result(name, kind, attributes, datasets)


def _check_attributes(attributes: Mapping[str, Raw | None], unit: str | None) -> None:
    """Raise Unfamiliar unless a dataset has only the attribute that leeward writes. No seal covers others."""
    stated = attributes.get(UNITS)
    if len(attributes) != 1 or not isinstance(stated, bytes) or unit is None or stated.rstrip(b"\0") != unit.encode():
        raise Unfamiliar("attributes")


def _group(pages: Pages, address: int, *, is_checked: bool = False) -> tuple[dict[str, Value], dict[str, int]]:
    """Return the attributes of a group, and the addresses of the headers of its members."""
    header = read_header(pages, address, is_checked=is_checked)
    for kind in (LINK_INFO, ATTRIBUTE_INFO):
        if header.one(kind) not in (None, _ALL_IN_HEADER):
            raise Unfamiliar("links or attributes outside the header")
    return sealed_values(dict(attributes_of(pages, header))), members(pages, header)
