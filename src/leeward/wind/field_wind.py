"""The distribution of wind that varies over a site."""

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind import checks
from leeward.wind.checks import CALM
from leeward.wind.conditions import Array, Conditions, Distribution, place_in, shifted_lattice
from leeward.wind.field import WindField
from leeward.wind.field_data import FieldData
from leeward.wind.field_settings import field_settings
from leeward.wind.local_wind import FieldConditions
from leeward.wind.table_wind import speed_bin_edges
from leeward.wind.weibull import by_sector, check_directions, check_speeds, cumulative, direction_bin_width


class FieldWind(Distribution):
    """Wind that varies over a site.

    Its conditions are those at the reference, before speed-up and shear, with the mean frequencies, Weibull parameters
    and turbulence of the grid.
    """

    def __init__(self, data: FieldData, field: WindField | None = None) -> None:
        """field: that of the data, if it is known."""
        self.data = data
        self.field = WindField.of(data) if field is None else field
        make = {"weibull": self._weibull, "table": self._table, "list": self._series, "series": self._series}
        self.conditions = make[data.kind]()

    @property
    def covered_degrees(self) -> float:
        return self.data.covered_degrees

    @property
    def turbulence_range(self) -> Array:
        return self.data.turbulence_range(self.conditions.speed)

    @property
    def density_range(self) -> tuple[float, float]:
        density = self.data.values.get("density")
        return (1.0, 1.0) if density is None else (float(density.min()), float(density.max()))

    def fewer_directions(self) -> "FieldWind":
        """Return wind with one direction per sector, or three if values are linear between sectors."""
        data = self.data
        if data.shear is not None and len(data.shear.values) not in (1, data.sectors):
            return self  # each of its values needs a direction
        density = data.values.get("density")
        if not data.has_bins or not self._whole_circle or len(data.directions) % data.sectors:
            return self
        if density is not None and density.shape[3] > 1:
            return self  # it is linear between sectors
        count = data.sectors if data.interpolation == "nearest" else 3 * data.sectors
        if len(data.directions) <= count or (data.kind == "table" and len(data.directions) % count):
            return self
        equal = np.asarray(np.arange(count) * (360.0 / count), dtype=np.float64)
        return FieldWind(replace(data, directions=equal), self.field)

    def unchecked(self) -> "FieldWind":
        """Return the wind without checks of places; see `WindField.unchecked`."""
        return FieldWind(self.data, self.field.unchecked())

    def settings(self) -> dict[str, Any]:
        return {"field": field_settings(self.data)}

    def describe(self) -> str:
        data = self.data
        kind = {
            "weibull": "Weibull distributions",
            "table": "a table",
            "list": "a list of conditions",
            "series": "a time series",
        }
        count = f"{len(data.directions)} {'steps' if data.kind == 'series' else 'conditions'}"
        if data.has_bins:
            count = f"{data.sectors} sectors, on {len(data.directions)} directions × {len(data.speeds)} speeds"
        grid = f"{len(data.x)} × {len(data.y)} points"
        if len(data.heights) > 1:
            grid += f" × {len(data.heights)} heights"
        where = f"on a grid of {grid}"
        if len(data.x) == len(data.y) == len(data.heights) == 1:
            where = "that are the same everywhere" if data.kind == "weibull" else "that is the same everywhere"
        if data.shear is not None:
            where += ", with shear"
        return f"{kind[data.kind]} {where}: {count}"

    def coarser(self, directions: int, speeds: Array) -> Distribution:
        """Return the wind with equal directions and bins around these speeds; a table or series as a part of it."""
        if self.data.kind == "weibull" and self._whole_circle:
            equal = np.asarray(np.arange(directions) * (360.0 / directions), dtype=np.float64)
            return FieldWind(replace(self.data, directions=equal, speeds=speeds), self.field)
        if self.conditions.weight.size <= 2 * directions:
            return self
        return FieldPart(self, self.draw(2 * directions, np.random.default_rng(0)))

    def draw(self, count: int, rng: np.random.Generator) -> Conditions:
        """Draw from the conditions themselves."""
        total = self.conditions.weight.sum()
        place, _ = place_in(self.conditions.weight.ravel()[self._order], shifted_lattice(count, rng)[0])
        row, column = np.divmod(self._order[place], self.conditions.weight.shape[1])
        return self.conditions.drawn(row, column, np.full(count, total / count))

    @functools.cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        direction = np.broadcast_to(self.conditions.direction[:, None], self.conditions.speed.shape)
        return np.lexsort((self.conditions.speed.ravel(), direction.ravel()))

    @property
    def _whole_circle(self) -> bool:
        """Return whether the directions are evenly spaced over the full circle."""
        directions, width = self.data.directions, direction_bin_width(self.data.directions)
        return abs(width * len(directions) - 360.0) < 1e-6 and np.allclose(np.diff(directions), width, atol=0.0)

    def _mean(self, name: str) -> Array:
        """Return the mean of a quantity over the grid, shape (n,)."""
        return np.asarray(self.data.values[name].mean(axis=(0, 1, 2)))

    def _by_direction(self, name: str, linear: bool) -> Array:
        values = self._mean(name)
        column = self.data.directions[:, None]
        if len(values) == 1:
            return np.full(column.shape, values[0])
        return by_sector(values, column, linear)

    def _with_local(
        self, speed: Array, weight: Array, factor: Array, edges: Array, step: npt.NDArray[np.int64]
    ) -> Conditions:
        """Return conditions. edges, step, factor: as in `FieldConditions`."""
        turbulence_factor = self.data.turbulence_factor(speed)
        name = "series_turbulence" if "series_turbulence" in self.data.values else "turbulence"
        intensity = self._mean(name)[:, None] if name.startswith("series") else self._by_direction(name, True)
        local = FieldConditions(self.field, factor, turbulence_factor, edges, step)
        return Conditions(
            self.data.directions,
            speed,
            weight,
            np.array(np.broadcast_to(intensity * turbulence_factor, speed.shape)),
            local,
        )

    def _weibull(self) -> Conditions:
        data = self.data
        directions, speeds = check_directions(data.directions), check_speeds(data.speeds)
        edges, linear = speed_bin_edges(speeds), self.field.is_linear
        shape = (len(directions), len(speeds))
        share = direction_bin_width(directions) / (360.0 / data.sectors)
        frequency, scale, k = (self._by_direction(name, linear) for name in ("frequency", "weibull_a", "weibull_k"))
        weight = frequency * share * np.diff(cumulative(edges, scale, k), axis=1)
        speed = np.array(np.broadcast_to(speeds, shape))
        every = np.broadcast_to(edges, (shape[0], shape[1] + 1))
        return self._with_local(speed, weight, np.full(shape, share), every, np.zeros(shape[0], dtype=np.int64))

    def _table(self) -> Conditions:
        data = self.data
        directions = check_directions(data.directions)
        shape = (len(directions), len(data.speeds))
        share = direction_bin_width(directions) / (360.0 / data.sectors)
        probability = self._mean("probability").reshape(data.sectors, len(data.speeds))
        weight = by_sector(probability, directions, self.field.is_linear) * share
        speed = np.array(np.broadcast_to(np.maximum(data.speeds, CALM), shape))
        every = np.broadcast_to(np.arange(shape[1] + 1.0), (shape[0], shape[1] + 1))
        return self._with_local(speed, weight, np.full(shape, share), every, np.zeros(shape[0], dtype=np.int64))

    def _series(self) -> Conditions:
        data, count = self.data, len(self.data.directions)
        checks.angles(data.directions)
        if count == 0:
            raise InputError(f"{data.source}: the time series is empty; expected at least one condition")
        speed = self._mean("series_speed") if "series_speed" in data.values else data.speeds
        share = np.full(count, 1.0 / count) if data.weight is None else data.weight
        ones = np.ones((count, 1))
        speed = np.maximum(speed, CALM)[:, None]
        return self._with_local(speed, np.array(share)[:, None], ones, np.ones((count, 2)), np.arange(count))


class FieldPart(FieldWind):
    """Some conditions of a wind that varies over a site."""

    def __init__(self, whole: FieldWind, conditions: Conditions) -> None:
        self.data, self.field, self.conditions = whole.data, whole.field, conditions

    def settings(self) -> dict[str, Any]:
        raise InputError("a part of the wind on a grid has no settings; use those of the whole site")

    def fewer_directions(self) -> FieldWind:
        return self

    def unchecked(self) -> FieldWind:
        return FieldPart(FieldWind(self.data, self.field.unchecked()), self.conditions)

    def describe(self) -> str:
        return f"{self.conditions.weight.size} conditions of {super().describe()}"

    def coarser(self, directions: int, speeds: Array) -> Distribution:
        return self
