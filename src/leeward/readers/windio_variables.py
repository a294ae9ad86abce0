"""The variables of a windIO `wind_resource`, with their dimensions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.readers.document import Document, Place

Array = npt.NDArray[np.float64]

GRID = {"x": "x", "y": "y", "height": "h"}  # dimensions of wind on a grid, and their names in a dataset
POSITIONS = (*GRID, "wind_turbine")
READ = {
    *("time", "wind_direction", "wind_speed", "probability", "weibull_a", "weibull_k", "sector_probability"),
    *("turbulence_intensity", "reference_height", "shear", *POSITIONS),
}
HEIGHTS = ("height", "reference_height")
SAME_HEIGHT_M = 1e-6


@dataclass(frozen=True)
class Runs:
    """The conditions that a plant asks for. directions, speeds: None for all; times: steps, None for all.

    is_exact: each direction stands for itself, not for a sector. has_cases: so does each row of a table.
    """

    directions: Sequence[float] | None = None
    speeds: Sequence[float] | None = None
    times: Sequence[int] | None = None
    is_exact: bool = False
    has_cases: bool = False


class Resource:
    """The variables of a `wind_resource`."""

    def __init__(self, document: Document, place: Place, uses_turbulence: bool) -> None:
        self.document, self.place, self._uses_turbulence = document, place, uses_turbulence
        self.data: Mapping[str, Any] = document.value(place)
        if not isinstance(self.data, Mapping) or not self.data:
            raise document.error(place, "is missing or empty; expected the variables of a wind resource")

    def error(self, name: str, sentence: str) -> InputError:
        return self.document.error((*self.place, name), sentence)

    @property
    def is_on_grid(self) -> bool:
        """Return whether a variable varies with position or height."""
        return any(
            dim in GRID and size > 1
            for name in READ.intersection(self.data).difference(POSITIONS, ("time", "shear"))
            for dim, size in zip(*self._named(name, self._array(name)), strict=True)
        )

    def values(self, name: str, has_gaps: bool = False) -> tuple[tuple[str, ...], Array]:
        """Return dimensions and values. has_gaps: True allows missing values (NaN)."""
        array = self._array(name)
        if np.isinf(array).any() or (np.isnan(array).any() and not has_gaps):
            raise self.error(name, "contains a value that is not a finite number")
        return self._named(name, array)[0], array

    def variable(self, name: str) -> tuple[tuple[str, ...], Array]:
        """Return dimensions and values of a variable that has the same values at all positions and heights."""
        dims, array = self.values(name)
        for dim, size in zip(dims, array.shape, strict=True):
            if dim in POSITIONS and size > 1:
                raise self.error(name, f"varies with {dim}; expected the same wind at every position and height")
        kept = [(dim, size) for dim, size in zip(dims, array.shape, strict=True) if dim not in POSITIONS]
        return tuple(dim for dim, _ in kept), array.reshape([size for _, size in kept])

    def _array(self, name: str) -> Array:
        given = self.data.get(name)
        if given is None:
            raise self.error(name, "is missing; expected numbers")
        values = given.get("data") if isinstance(given, Mapping) else given
        try:
            return np.array(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise self.error(name, f"contains {values!r:.60}; expected numbers") from error

    def _named(self, name: str, array: Array) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return the names of the dimensions, and their sizes."""
        given = self.data[name]
        default = [name] if array.ndim else []
        named = given.get("dims", default) if isinstance(given, Mapping) else default
        if not isinstance(named, list):
            raise self.error(name, f"has dims {named!r:.40}; expected a list of names")
        dims = [str(dim) for dim in named]
        if len(dims) != array.ndim:
            raise self.error(name, f"has {array.ndim} dimensions and names {len(dims)} ({', '.join(dims)})")
        return tuple(dims), array.shape

    def along(self, name: str, dims: tuple[str, ...], sizes: tuple[int, ...]) -> Array:
        """Return a variable that depends on some of these dimensions, as an array over all of them."""
        own, values = self.variable(name)
        if not set(own) <= set(dims):
            raise self.error(name, f"depends on {', '.join(own)}; expected {', '.join(dims) or 'one number'}")
        order = [own.index(dim) for dim in dims if dim in own]
        shape = [size if dim in own else 1 for dim, size in zip(dims, sizes, strict=True)]
        arranged = values.transpose(order)
        if arranged.shape != tuple(size for dim, size in zip(dims, sizes, strict=True) if dim in own):
            raise self.error(name, f"has the shape {values.shape}; expected {sizes} ({', '.join(dims)})")
        return np.array(np.broadcast_to(arranged.reshape(shape), sizes))

    def turbulence(self, dims: tuple[str, ...], sizes: tuple[int, ...]) -> dict[str, Any]:
        """Return the turbulence intensity under its key; nothing if the resource has none."""
        if "turbulence_intensity" not in self.data:
            return {}
        if not self._uses_turbulence and not set(self.variable("turbulence_intensity")[0]) <= set(dims):
            return {"turbulence_intensity": float(self.variable("turbulence_intensity")[1].mean())}
        return {"turbulence_intensity": self.along("turbulence_intensity", dims, sizes).tolist()}

    def reject_runs(self, is_given: object, key: str, expected: str) -> None:
        """Raise InputError for a run configuration that does not fit this kind of wind."""
        if is_given is not None:
            place = ("attributes", "model_outputs_specification", "run_configuration", key)
            raise self.document.error(place, f"does not apply to this wind; expected {expected}")

    def height_notes(self, hub_heights: Sequence[float]) -> list[str]:
        """Return a note if the wind was given for another height than that of the hubs."""
        names = [name for name in HEIGHTS if name in self.data and not (name == "height" and self.is_on_grid)]
        given = [np.ravel(np.asarray(self.data[name], dtype=object)) for name in names]
        heights = {float(value) for values in given for value in values if isinstance(value, int | float)}
        if not heights or not hub_heights or heights == set(hub_heights):
            return []
        at, hubs = (", ".join(f"{value:g}" for value in sorted(some)) for some in (heights, set(hub_heights)))
        return [f"the wind at {at} m is used at hub height, {hubs} m"]

    def shear(self, hub_heights: Sequence[float]) -> dict[str, float]:
        """Return the keys of `shear` in a campaign file; nothing without shear, or if all hubs are at its height."""
        if self.data.get("shear") is None:
            return {}
        exponent, reference = (self.document.number((*self.place, "shear", name)) for name in ("alpha", "h_ref"))
        own = self.data.get("reference_height", reference)
        if own != reference:
            raise self.error("shear", f"has h_ref {reference:g}, but reference_height is {own}; expected the same")
        if hub_heights and all(abs(height - reference) <= SAME_HEIGHT_M for height in hub_heights):
            return {}
        return {"exponent": exponent, "reference_height_m": reference}
