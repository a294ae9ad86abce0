"""Wind that varies over a site as text for campaign files."""

import base64
import hashlib
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from leeward.errors import InputError
from leeward.wind.checks import Array
from leeward.wind.field_data import MOST_BYTES, FieldData, Shear

MOST_STORED = 48_000_000  # characters of packed values in a stored campaign


def packed(values: Array) -> dict[str, Any]:
    """Return an array as plain data: its shape, the SHA-256 of its bytes, and these, compressed, in base 64.

    The first bytes of all numbers come first, then the second bytes, and so on: that compresses better.
    """
    raw = np.ascontiguousarray(values, dtype="<f8").tobytes()
    by_place = np.frombuffer(raw, dtype=np.uint8).reshape(-1, 8).T.tobytes()
    text = base64.b64encode(zlib.compress(by_place, 6)).decode("ascii")
    return {"shape": list(values.shape), "sha256": hashlib.sha256(raw).hexdigest(), "data": text}


def unpacked(data: Mapping[str, Any], what: str) -> Array:
    """Return the array of `packed`. Raise InputError if its bytes are not those that were packed."""
    size = 8 * math.prod(map(int, data["shape"]))
    if not 0 < size <= MOST_BYTES:
        raise InputError(f"{what}: has {size} bytes; expected at most {MOST_BYTES >> 30} GiB")
    try:
        by_place = zlib.decompressobj().decompress(base64.b64decode(data["data"], validate=True), size + 1)
    except (ValueError, zlib.error) as error:
        raise InputError(f"{what}: the packed values cannot be read ({error})") from error
    raw = np.frombuffer(by_place, dtype=np.uint8).reshape(8, -1).T.tobytes() if len(by_place) == size else b""
    if hashlib.sha256(raw).hexdigest() != data["sha256"]:
        raise InputError(f"{what}: the packed values are damaged: they do not have the SHA-256 in the file")
    return np.frombuffer(raw, dtype="<f8").astype(np.float64).reshape(data["shape"])


def values_with_gaps(data: FieldData) -> dict[str, Array]:
    """Return the quantities of a field, with NaN where they are missing."""
    return {
        name: np.where(data.missing[name][:, :, None, None], np.nan, each) if name in data.missing else each
        for name, each in data.values.items()
    }


def field_settings(data: FieldData) -> dict[str, Any]:
    """Return the field as plain data; `from_field_settings` restores it."""
    values = {name: packed(each) for name, each in values_with_gaps(data).items()}
    stored = sum(len(each["data"]) for each in values.values())
    if stored > MOST_STORED:
        raise InputError(
            f"{data.source}: the values of the grid take {stored / 1e6:.0f} MB when compressed, and at most "
            f"{MOST_STORED / 1e6:.0f} MB can be stored with a run; select a part of the grid, or use fewer points, "
            "heights or steps"
        )
    settings: dict[str, Any] = {
        "source": Path(data.source).name,
        "kind": data.kind,
        "x_m": data.x.tolist(),
        "y_m": data.y.tolist(),
        "heights_m": data.heights.tolist(),
        "wind_directions_deg": data.directions.tolist(),
        "wind_speeds_m_s": data.speeds.tolist(),
        "interpolation": data.interpolation,
        "local_bins": data.local_bins,
        "turbulence_at_15": data.turbulence_at_15,
        "distances": data.distances,
        "extrapolate": data.extrapolate,
        "values": values,
    }
    if data.weight is not None:
        settings["weight"] = data.weight.tolist()
    if data.shear is not None:
        shear = data.shear
        settings["shear"] = {
            "kind": shear.kind,
            "values": list(shear.values),
            "reference_height_m": shear.reference_height_m,
        }
    if data.crs is not None:
        settings["crs"] = data.crs
    if data.covered_degrees != FieldData.covered_degrees:
        settings["covered_degrees"] = data.covered_degrees
    return settings


def from_field_settings(settings: Mapping[str, Any]) -> FieldData:
    """Return the field with these settings."""

    def numbers(name: str) -> Array:
        return np.array(settings[name], dtype=np.float64)

    shear = settings.get("shear")
    return FieldData(
        kind=settings["kind"],
        x=numbers("x_m"),
        y=numbers("y_m"),
        heights=numbers("heights_m"),
        values={name: unpacked(each, f"values.{name}") for name, each in settings["values"].items()},
        directions=numbers("wind_directions_deg"),
        speeds=numbers("wind_speeds_m_s"),
        weight=None if settings.get("weight") is None else numbers("weight"),
        interpolation=settings["interpolation"],
        local_bins=settings["local_bins"],
        turbulence_at_15=settings["turbulence_at_15"],
        shear=None if shear is None else Shear(shear["kind"], tuple(shear["values"]), shear["reference_height_m"]),
        distances=settings["distances"],
        extrapolate=settings["extrapolate"],
        crs=settings.get("crs"),
        source=settings["source"],
        covered_degrees=settings.get("covered_degrees") or FieldData.covered_degrees,
    )
