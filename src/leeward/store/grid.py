"""Results as arrays over farm, turbine type and seed, for xarray."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.store.format.keys import Key

if TYPE_CHECKING:
    import xarray

Array = npt.NDArray[np.float64]
Rows = Mapping[Key, tuple[Array, Mapping[str, Any]]]  # coordinates, shape (2, turbines), and other values

UNITS = {
    "x_m": "m",
    "y_m": "m",
    "aep_gwh": "GWh",
    "installed_mw": "MW",
    "capacity_factor": "1",
    "wake_loss": "1",
    "min_spacing_m": "m",
    "rotor_diameter_m": "m",
    "hub_height_m": "m",
    "rated_power_mw": "MW",
    "seconds": "s",
}
MOST_BYTES = 2**30  # largest size of the coordinates if less than a tenth of the grid is filled


def grid_dataset(
    found: Rows, numbers: Sequence[str], texts: Sequence[str], *, by_seed: bool = True, where: str = "these"
) -> "xarray.Dataset":
    """Return a dataset over the farms, types and seeds that occur. numbers, texts: the values of the rows to include.

    Where there is no result, numbers are NaN, texts are empty and n_turbines is 0. by_seed: if False, there is no
    dimension `seed`: each farm and type may have only one result, and its seed becomes a variable.
    """
    import xarray

    axes = _axes(found, by_seed, where)
    most = max((layout.shape[1] for layout, _ in found.values()), default=0)
    _check_size(len(found), axes, most, where)
    at = tuple(np.searchsorted(numbers, [key[i] for key in found]) for i, numbers in enumerate(axes.values()))
    shape = tuple(map(len, axes.values()))

    def spread(values: list[Any], fill: object, kind: type) -> npt.NDArray[Any]:
        everywhere: npt.NDArray[Any] = np.full(shape, fill, dtype=kind)
        everywhere[at] = values
        return everywhere

    positions = np.full((*shape, 2, most), np.nan)
    for place, (layout, _) in zip(zip(*at, strict=True), found.values(), strict=True):
        positions[place][:, : layout.shape[1]] = layout
    dims, rows = tuple(axes), [row for _, row in found.values()]
    coordinates = zip(("x_m", "y_m"), np.moveaxis(positions, -2, 0), strict=True)
    variables: dict[str, Any] = {name: ((*dims, "turbine"), values) for name, values in coordinates}
    for name in numbers:
        fill, kind = (0, int) if name == "n_turbines" else (math.nan, float)
        variables[name] = (dims, spread([row[name] for row in rows], fill, kind))
    variables |= {name: (dims, spread([row[name] for row in rows], "", object)) for name in texts}
    coords: dict[str, Any] = {**axes, "turbine": range(most)}
    coords["key"] = (dims, spread([str(key) for key in found], "", object))
    if not by_seed:
        coords["seed"] = (dims, spread([key.seed for key in found], math.nan, float))
    dataset = xarray.Dataset(variables, coords=coords)
    for variable in dataset.data_vars:
        if unit := UNITS.get(str(variable)):
            dataset[variable].attrs["units"] = unit
    return dataset


def _axes(found: Rows, by_seed: bool, where: str) -> dict[str, list[int]]:
    """Return the dimensions with their coordinates."""
    names = Key._fields if by_seed else Key._fields[:2]
    if len({key[: len(names)] for key in found}) < len(found):
        raise InputError(f"{where}: several results for one farm and type; keep one of each, or use by_seed=True")
    return {name: sorted({key[axis] for key in found}) for axis, name in enumerate(names)}


def _check_size(count: int, axes: Mapping[str, Sequence[int]], most: int, where: str) -> None:
    """Raise InputError for a huge, almost empty grid: the keys of other programs may have any numbers."""
    places = math.prod(map(len, axes.values()))
    size = 16 * places * most
    if places > 10 * count and size > MOST_BYTES:
        sizes = " × ".join(f"{len(numbers)} {name}" for name, numbers in axes.items())
        raise InputError(
            f"{where}: a grid of {sizes} for {count} results would be almost empty and take {size / 2**30:.1f} GiB; "
            "select fewer results, or use a table (Parquet, CSV, pandas), which has one row per result"
        )
