"""Read results without a seal from the worker files of other scripts, and check that they are plausible.

Such a file has one group per result, in the root or in the group `optimized_layouts`. It may have an integer dataset
`init`, which is not a result.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from h5py import h5a, h5l, h5o, h5t

from leeward.errors import InputError
from leeward.store.format.found import PLAUSIBLE
from leeward.store.format.groups import UNITS, attribute_names, links, read_attribute, read_dataset, what_is
from leeward.store.format.keys import Key
from leeward.store.format.kind import LONGEST_TEXT, Array, Value
from leeward.store.format.layout_result import FOREIGN, MOST_TURBINES, NO_AEP, SUCCESS, Result
from leeward.store.format.verdicts import BadGroupError, Verdict, refuse

INIT = "init"
FOLDER = "optimized_layouts"

_MOST_DETAILS = 150
_OWN_DETAILS = (
    "source",
    "evidence",
    "recovered_by",
    "aep_note",
    "aep_claimed",
    "method_version",
    "diameter_note",
    "ignored",
)
_IDENTITY = ("farm_idx", "type_idx", "ss_seed", "n_turbines")
_RESERVED = (*Result.FIXED, "seal", *Result.DATASETS)  # not allowed as names of details


def read_group(group: Any, key: Key, file_name: str) -> Result:
    """Return the result in a group without a seal. Raise BadGroupError if the group is not a result."""
    datasets = list(links(group))
    if "layout" not in datasets:
        refuse("layout is missing")
    attributes, ignored = _attributes(group)
    ignored += [name for name in datasets if name not in ("layout", "aep")]
    ignored += [text for name in ("layout", "aep") if name in datasets for text in attributes_of(group, name)]
    aep = read_dataset(group, "aep", most=1) if "aep" in datasets else None
    return result_of(key, file_name, read_dataset(group, "layout", Result.MOST_NUMBERS), aep, attributes, ignored)


def result_of(
    key: Key, file_name: str, layout: Array, aeps: Array | None, attributes: dict[str, Value], ignored: Iterable[str]
) -> Result:
    """Return the content of a group without a seal as a result. Raise BadGroupError if it is implausible.

    aeps: the dataset `aep`, None if it is missing. ignored: names of content that the result leaves out.
    """
    layout, attributes = _layout(layout), dict(attributes)
    _agree(attributes, key, layout.shape[1])
    details: dict[str, Value] = {"source": file_name.encode("utf-8", "replace").decode(), "evidence": PLAUSIBLE}
    aep, details["aep_note"] = (math.nan, "no aep in the source") if aeps is None else _aep(aeps)
    diameter, details["diameter_note"] = _diameter(attributes)
    details["ignored"] = ", ".join(ignored)[:1000]
    details = {name: value for name, value in details.items() if value != ""}
    for name, value in attributes.items():
        details[f"source_{name}" if name in _RESERVED or name in _OWN_DETAILS else name] = value
    try:
        return Result(
            key=key,
            layout=layout,
            aep_gwh=aep,
            rotor_diameter_m=diameter,
            fingerprint="",
            stop_reason="",
            steps=0,
            status=NO_AEP if math.isnan(aep) else SUCCESS,
            origin=FOREIGN,
            details=details,
        )
    except InputError as error:
        raise BadGroupError(Verdict.WRONG_STRUCTURE, str(error)) from error


def beyond_results(root: Any) -> list[str]:
    """Describe the content of a file of other origin that no result includes."""
    found = [f"the attribute {_shown(name)}" for name in attribute_names(root)]
    what, init = what_is(root, INIT)
    if what == "a dataset":
        if init.get_type().get_class() != h5t.INTEGER or init.shape is None or math.prod(init.shape) != 1:
            found.append(f"{INIT}, which is not a single integer")
        found += attributes_of(root, INIT)
    elif what != "nothing of this name":
        found.append(f"{INIT}, which is not a dataset")
    if root.links.exists(FOLDER.encode()):
        found += attributes_of(root, FOLDER)
    return found


def attributes_of(parent: Any, name: str, unit: str | None = None) -> list[str]:
    """Describe the attributes of a dataset or group, without a `units` of this value. Links are not followed."""
    if parent.links.get_info(name.encode()).type != h5l.TYPE_HARD:
        return []
    place = h5o.open(parent, name.encode())
    names = [one for one in attribute_names(place) if one != UNITS.encode() or not _is_text(place, one, unit)]
    return [f"the attribute {_shown(one)} of {name}" for one in names]


def _is_text(place: Any, name: bytes, text: str | None) -> bool:
    """Return whether an attribute has this text as its value."""
    try:
        return text is not None and read_attribute(place, name) == text
    except BadGroupError:
        return False


def _shown(name: bytes) -> str:
    return f"{name.decode('utf-8', 'backslashreplace'):.60}"


def _layout(layout: Array) -> Array:
    shape = layout.shape
    if len(shape) == 2 and shape[0] != 2 and shape[1] == 2:
        layout = np.ascontiguousarray(layout.T)
    if layout.ndim != 2 or layout.shape[0] != 2 or not 1 <= layout.shape[1] <= MOST_TURBINES:
        refuse(f"layout has the shape {shape}; expected (2, turbines)")
    if not np.isfinite(layout).all():
        raise BadGroupError(Verdict.IMPLAUSIBLE, "the layout has coordinates that are not finite")
    if np.unique(layout[0] + 1j * layout[1]).size != layout.shape[1]:
        reason = "two turbines of the layout have the same position"  # as in lost pages of zeros
        raise BadGroupError(Verdict.IMPLAUSIBLE, reason)
    return layout


def _aep(stored: Array) -> tuple[float, str]:
    """Return the AEP in GWh and "", or NaN and a note if the stored number is not an energy."""
    if stored.size != 1:
        refuse(f"aep has the shape {stored.shape}; expected a single number")
    aep = float(stored.reshape(()))
    if aep > 0 and math.isfinite(aep):
        return aep, ""
    what = "a cost, not an energy" if aep < 0 and math.isfinite(aep) else "no energy"
    return math.nan, f"aep was {aep!r} in the source: {what}"


def _diameter(attributes: dict[str, Value]) -> tuple[float, str]:
    """Return the diameter in m and "", or NaN and a note if the stored value is not a length."""
    if "diameter" not in attributes:
        return math.nan, ""
    stored = attributes.pop("diameter")
    try:
        diameter = float(_single(stored))
    except (ValueError, TypeError):
        return math.nan, f"diameter was {stored!r:.60} in the source"
    if diameter > 0 and math.isfinite(diameter):
        return diameter, ""
    return math.nan, f"diameter was {diameter!r} in the source"


def _agree(attributes: dict[str, Value], key: Key, turbines: int) -> None:
    """Remove the attributes that repeat the name and the layout. Raise BadGroupError if they contradict them."""
    for name, expected in zip(_IDENTITY, (*key, turbines), strict=True):
        if name not in attributes:
            continue
        stored = attributes.pop(name)
        try:
            is_same = float(_single(stored)) == expected
        except (ValueError, TypeError):
            is_same = False
        if not is_same:
            where = "the layout" if name == "n_turbines" else "the name of the group"
            refuse(f"the attribute {name} is {stored!r:.60}; expected {expected}, as in {where}")


def _single(value: Value) -> Any:
    return value.reshape(()) if isinstance(value, np.ndarray) else value


def _attributes(group: Any) -> tuple[dict[str, Value], list[str]]:
    """Return the attributes that can be kept, and the names of the others."""
    attributes: dict[str, Value] = {}
    ignored = []
    for name in attribute_names(group):
        text = name.decode("utf-8", "backslashreplace")
        value = _attribute(h5a.open(group, name)) if len(attributes) < _MOST_DETAILS else None
        if value is None:
            ignored.append(text)
        else:
            attributes[text] = value
    return attributes, ignored


def _attribute(attribute: Any) -> Value | None:
    """Return an attribute of a simple type; None if it is of another type or too large."""
    shape = attribute.shape
    if shape is None or len(shape) > 1 or attribute.get_storage_size() > LONGEST_TEXT or 0 in shape:
        return None
    kind = attribute.get_type()
    sort = kind.get_class()
    dtype = attribute.dtype
    if sort in (h5t.INTEGER, h5t.FLOAT) or dtype.kind == "b":
        values = np.zeros(shape, dtype=dtype)
        attribute.read(values)
        return number(values)
    if sort == h5t.STRING and math.prod(shape) == 1:
        texts = np.empty(shape, dtype=dtype)
        attribute.read(texts, mtype=h5t.py_create(dtype))  # with the type in the file, h5py would return pointers
        return text_of(texts.reshape(()).item())
    return None


def number(values: Any) -> Value | None:
    """Return an attribute of numbers in the form that is kept; None if it cannot be kept."""
    if values.size > 1:
        return np.ascontiguousarray(values, dtype=np.float64) if 8 * values.size <= LONGEST_TEXT else None
    value = values.reshape(()).item()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    return value if isinstance(value, bool | int) else float(value)


def text_of(content: object) -> str | None:
    """Return an attribute of text in the form that is kept; None if it cannot be kept."""
    if not isinstance(content, bytes | str):
        return None
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    text = text.rstrip("\0").encode("utf-8", "replace").decode()
    return None if "\0" in text or len(text.encode()) > LONGEST_TEXT else text
