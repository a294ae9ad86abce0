"""The layout problem: number of turbines, area and spacing."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from leeward.deprecation import Renamed
from leeward.errors import InputError
from leeward.layout.area import Area
from leeward.layout.kernels import compiled
from leeward.wind import Turbine, WindFarm
from leeward.wind.checks import finite_array, positive
from leeward.wind.field_data import check_same_crs

Array = npt.NDArray[np.float64]

TOLERANCE_M = 1e-6  # the largest violation of a feasible layout
REPAIR_MARGIN_M = 0.25 * TOLERANCE_M
SWEEPS = 4000  # the most of a repair


@dataclass(frozen=True)
class Violation:
    """The distances by which turbines are outside or too close to another; m, shape (turbines,), 0 if not."""

    outside_m: Array
    too_close_m: Array

    @property
    def worst_m(self) -> float:
        return float(max(self.outside_m.max(initial=0.0), self.too_close_m.max(initial=0.0)))

    @property
    def is_feasible(self) -> bool:
        return self.worst_m <= TOLERANCE_M

    def __str__(self) -> str:
        """Return which turbines violate a constraint, and by how much."""
        found = []
        for what, values in (("outside the area", self.outside_m), ("too close to another", self.too_close_m)):
            bad = np.flatnonzero(values > TOLERANCE_M)
            if len(bad):
                named = ", ".join(f"{i} (by {values[i]:.6g} m)" for i in bad[:8])
                more = f" and {len(bad) - 8} more" if len(bad) > 8 else ""
                found.append(f"{what}: turbine {named}{more}")
        return "; ".join(found) or "none"


class LayoutProblem:
    """A farm, its area, the number of its turbines and their spacing.

    n_turbines: may be left out if the farm has a list of turbines, one for each position.
    spacing_m or spacing_diameters: the minimum distance between two turbines: one number or, for several types, a dict
    with a number for each Turbine. Two turbines of different types must be apart by at least the mean of their two
    distances. Neighbours of the farm count as turbines. If the dict lacks the type of a neighbour, its largest number
    applies.
    min_distances_m: minimum distance of each turbine, then of each neighbour, from others of its type (m).
    """

    def __init__(
        self,
        farm: WindFarm,
        area: Area,
        n_turbines: int | None = None,
        *,
        spacing_m: float | Mapping[Turbine, float] | None = None,
        spacing_diameters: float | Mapping[Turbine, float] | None = None,
    ) -> None:
        if not isinstance(farm, WindFarm):
            raise InputError(f"farm is {farm!r:.60}; expected a WindFarm")
        if not isinstance(area, Area):
            raise InputError(f"area is {area!r:.60}; expected an Area, for example Area.from_geojson(path)")
        if (spacing_m is None) == (spacing_diameters is None):
            raise InputError(
                "give the minimum distance between turbines as spacing_m or as spacing_diameters, not both"
            )
        self.farm = farm
        self.area = area
        self.turbines = _one_each(farm, n_turbines)
        in_diameters = spacing_m is None
        spacing = spacing_diameters if in_diameters else spacing_m
        name = "spacing_diameters" if in_diameters else "spacing_m"
        self.neighbour_types, fixed_x, fixed_y = _neighbours(farm)
        needed = _spacing_of(spacing, {*self.turbines, *self.neighbour_types}, set(self.turbines), in_diameters, name)
        self.min_distances_m = np.array([needed[t] for t in [*self.turbines, *self.neighbour_types]])
        self._fixed = fixed_x, fixed_y
        self._refuse_what_cannot_fit()
        if farm.site.field is not None:
            check_same_crs(farm.site.crs, area.crs)
            shape = area.to_shapely()
            farm.site.field.check_area(shape.bounds, lambda boxes: shapely.intersects(shapely.box(*boxes.T), shape))

    room = Renamed("min_distances_m")

    @property
    def n_turbines(self) -> int:
        return len(self.turbines)

    @functools.cached_property
    def one_type(self) -> bool:
        return all(t == self.turbines[0] for t in self.turbines)

    @property
    def mean_spacing_m(self) -> float:
        """The side of a square with the area per turbine, m."""
        return float(np.sqrt(self.area.area_m2 / self.n_turbines))

    def violation(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Violation:
        """Return by how much each turbine violates the constraints."""
        worst = np.zeros((2, self.n_turbines))
        compiled("violations")(*self.relative(*self.positions(x, y)), *self.constraints, worst)
        return Violation(worst[0], worst[1])

    def min_spacing_m(self, x: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Return the distance of the closest two turbines, neighbours included, m; infinite for a single one."""
        east, north = self.relative(*self.positions(x, y))
        apart = np.hypot(east[: self.n_turbines, None] - east, north[: self.n_turbines, None] - north)
        apart[np.arange(self.n_turbines), np.arange(self.n_turbines)] = np.inf
        return float(apart.min())

    def free(
        self, x: Array, y: Array, standing: npt.NDArray[np.int64], turbine: int, at_x: Array, at_y: Array
    ) -> npt.NDArray[np.bool_]:
        """Return whether a turbine could stand at each point: inside, and far enough from others.

        The others are the neighbours, and the turbines with the indices `standing`, which are at x, y.
        """
        east, north = np.r_[x, self._fixed[0]], np.r_[y, self._fixed[1]]
        others = np.r_[self.min_distances_m[standing], self.min_distances_m[self.n_turbines :]]
        square = (at_x[:, None] - east) ** 2 + (at_y[:, None] - north) ** 2
        apart = (0.5 * (self.min_distances_m[turbine] + others)) ** 2
        return np.asarray((square >= apart).all(axis=1) & (self.area.signed_distance(at_x, at_y) >= 0.0))

    def far_from_neighbours(self, x: Array, y: Array) -> npt.NDArray[np.bool_]:
        """Return whether any turbine at each point would be far enough from the neighbours."""
        if len(self._fixed[0]) == 0:
            return np.ones(len(x), dtype=bool)
        apart = 0.5 * (self.min_distances_m[: self.n_turbines].max() + self.min_distances_m[self.n_turbines :])
        distance = np.hypot(x[:, None] - self._fixed[0], y[:, None] - self._fixed[1])
        return np.asarray((distance >= apart).all(axis=1))

    def repaired(self, x: npt.ArrayLike, y: npt.ArrayLike, sweeps: int = SWEEPS) -> tuple[Array, Array]:
        """Return the layout with turbines pushed apart and inside until it is feasible, or nearly so."""
        east, north = self.relative(*self.positions(x, y))
        compiled("repair")(east, north, *self.constraints, REPAIR_MARGIN_M, sweeps)
        return east[: self.n_turbines] + self.area.origin[0], north[: self.n_turbines] + self.area.origin[1]

    def positions(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
        """Return x and y as arrays, one value for each turbine, or raise InputError."""
        east, north = finite_array(x, "x"), finite_array(y, "y")
        for name, values in (("x", east), ("y", north)):
            if len(values) != self.n_turbines:
                raise InputError(
                    f"{name} has {len(values)} coordinates; expected {self.n_turbines}, one for each turbine"
                )
        return east, north

    def relative(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return positions for the kernels: metres from the area's origin, neighbours after the farm."""
        if len(self._fixed[0]):
            x, y = np.concatenate([x, self._fixed[0]]), np.concatenate([y, self._fixed[1]])
        return x - self.area.origin[0], y - self.area.origin[1]

    @property
    def constraints(self) -> tuple[Any, ...]:
        """The arguments of the kernels after the positions: number of turbines, minimum distances, boundary."""
        return self.n_turbines, self.min_distances_m, self.area.boundary

    @functools.cached_property
    def most_turbines(self) -> int:
        """An upper bound on the number of turbines that fit.

        The number of points that are at least 1 apart is at most 2 / sqrt(3) times the area plus half the perimeter
        plus 1 (Oler, 1961; Folkman and Graham, 1969, for more than one piece).
        """
        shape = self.area.to_shapely()
        apart = float(self.min_distances_m[: self.n_turbines].min())
        pieces = 2.0 / np.sqrt(3.0) * shape.area / apart**2 + 0.5 * shape.length / apart + self.area.regions
        return int(pieces * (1.0 + 1e-4))  # the polygons that replace curves are slightly too small

    def _refuse_what_cannot_fit(self) -> None:
        rotor = max(t.rotor_diameter_m for t in self.turbines)
        if self.area.area_m2 < 0.25 * np.pi * rotor**2:
            raise InputError(
                f"the area has {self.area.area_m2:.6g} m2, less than a rotor of {rotor:g} m; expected coordinates in "
                "metres (degrees need crs='EPSG:4326')"
            )
        if self.n_turbines > self.most_turbines:
            raise InputError(
                f"{self.n_turbines} turbines {self.min_distances_m[: self.n_turbines].min():g} m apart do not fit into "
                f"{self.area.area_m2 / 1e6:.6g} km2: there is room for {self.most_turbines} at most"
            )


def _one_each(farm: WindFarm, count: int | None) -> list[Turbine]:
    if count is not None and (isinstance(count, bool) or not (isinstance(count, int | np.integer) and count >= 1)):
        raise InputError(f"n_turbines is {count!r}; expected a whole number, 1 or more")
    if isinstance(farm.turbine, Turbine):
        if count is None:
            raise InputError("n_turbines is missing; expected the number of turbines to place")
        return [farm.turbine] * int(count)
    if count is not None and count != len(farm.turbine):
        raise InputError(f"n_turbines is {count}, but the farm has {len(farm.turbine)} turbines; omit n_turbines")
    return list(farm.turbine)


def _neighbours(farm: WindFarm) -> tuple[list[Turbine], Array, Array]:
    if farm.neighbours is None:
        return [], np.empty(0), np.empty(0)
    x, y = finite_array(farm.neighbours.x, "neighbours: x"), finite_array(farm.neighbours.y, "neighbours: y")
    types = farm.neighbours.turbine
    return [types] * len(x) if isinstance(types, Turbine) else list(types), x, y


def _spacing_of(
    spacing: float | Mapping[Turbine, float] | None,
    types: set[Turbine],
    own: set[Turbine],
    in_diameters: bool,
    name: str,
) -> dict[Turbine, float]:
    """Return the minimum distance of turbines of each type, m. own: types of the farm itself."""
    if isinstance(spacing, Mapping):
        for t in own:
            if t not in spacing:
                raise InputError(f"{name} has no entry for {t.name}; expected one number for each type")
        each = {t: positive(spacing[t], f"{name} of {t.name}") for t in types if t in spacing}
        numbers = {t: each.get(t, max(each.values())) for t in types}
    elif isinstance(spacing, Sequence | np.ndarray):
        raise InputError(f"{name} is {spacing!r:.60}; expected a number, or a dict from Turbine to a number")
    else:
        numbers = dict.fromkeys(types, positive(spacing, name))  # type: ignore[arg-type]
    return {t: number * (t.rotor_diameter_m if in_diameters else 1.0) for t, number in numbers.items()}
