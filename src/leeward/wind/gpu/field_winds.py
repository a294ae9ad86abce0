"""Wind roses of a field on a GPU."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from leeward.wind.checks import Array
from leeward.wind.conditions import Conditions
from leeward.wind.engine import local_of, wind_of
from leeward.wind.gpu.data import Values, Winds
from leeward.wind.gpu.engine import NONE_4, new, to_device
from leeward.wind.gpu.field_data import FieldWinds
from leeward.wind.kernels.data import ELEMENTS, Field
from leeward.wind.local_wind import FieldConditions


def joined(conditions: Sequence[Conditions]) -> Conditions:
    """Return conditions of one field, one after the other; padded to the same size, with the weight 0."""
    directions = max(len(each.direction) for each in conditions)

    def together(values: Sequence[Any], mode: Any = "edge") -> Any:
        size = (directions, max(v.shape[1] for v in values)) if values[0].ndim > 1 else (directions,)
        return np.concatenate([v if v.shape == size else np.pad(v, _missing(v.shape, size), mode=mode) for v in values])

    local = [local_part(each) for each in conditions]
    first = local[0].field
    if any(each.field.values is not first.values or each.field.data is not first.data for each in local):
        raise ValueError("the roses are of different fields")
    every = FieldConditions(
        first,
        together([each.factor for each in local], "constant"),
        together([each.turbulence_factor for each in local]),
        together([each.edges for each in local]),
        together([each.step for each in local]),
    )
    return Conditions(
        together([each.direction for each in conditions]),
        together([each.speed for each in conditions]),
        together([each.weight for each in conditions], "constant"),
        together([each.turbulence_intensity for each in conditions]),
        every,
    )


def _missing(shape: tuple[int, ...], size: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return how many rows and columns to add at the end of an array."""
    return [(0, wanted - given) for wanted, given in zip(size, shape, strict=True)]


def local_part(conditions: Conditions) -> FieldConditions:
    """Return how the conditions vary over the site. Raise TypeError if they do not."""
    if conditions.local is None:
        raise TypeError("the wind does not vary")
    return conditions.local


def on_device(values: Any) -> Any:
    """Return a named tuple with its arrays on the GPU."""
    arrays = {name: to_device(v) for name, v in values._asdict().items() if isinstance(v, np.ndarray)}
    return values._replace(**arrays)


def winds_of(conditions: Sequence[Conditions], field: Field) -> FieldWinds:
    """Return wind roses of one field on the GPU. field: on the GPU."""
    every = joined(conditions)
    wind, local, roses, speeds = wind_of(every), local_of(every), len(conditions), every.speed.shape[1]
    if local is None:
        raise TypeError("the wind does not vary")
    parts = -(-speeds // ELEMENTS)
    lanes, directions = -(-speeds // parts), len(wind.cosine) // roses

    def of_roses(values: Array) -> Values:
        return to_device(values.reshape(roses, 1, directions, -1)[..., :lanes])

    reference = Winds(
        to_device(wind.cosine.reshape(roses, directions)),
        to_device(wind.sine.reshape(roses, directions)),
        of_roses(wind.speed),
        of_roses(wind.weight),
        of_roses(wind.turbulence_intensity),
        to_device(NONE_4),
        to_device(NONE_4),
    )
    rows = local.rows
    narrow = {name: getattr(rows, name)[:, :lanes] for name in ("factor", "speed", "turbulence_factor")}
    rows = rows._replace(edges=rows.edges[:, : lanes + 1], **narrow)
    return FieldWinds(local.field, field, on_device(rows), reference, parts, lanes)


def room_for_draws(winds: FieldWinds, roses: int, directions: int) -> FieldWinds:
    """Return room for roses with one speed in each direction."""
    rows, every = winds.rows, roses * directions
    lanes = {"factor": 1, "speed": 1, "turbulence_factor": 1, "edges": 2}
    made = {
        name: new((every, lanes[name]) if name in lanes else (every,), values.dtype)
        for name, values in rows._asdict().items()
        if hasattr(values, "dtype")
    }
    speed, weight, turbulence = (new((roses, 1, directions, 1)) for _ in range(3))
    none, cosine, sine = to_device(NONE_4), new((roses, directions)), new((roses, directions))
    reference = Winds(cosine, sine, speed, weight, turbulence, none, none)
    return winds._replace(rows=rows._replace(**made), reference=reference, parts=1, speeds=1)
