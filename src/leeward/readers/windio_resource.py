"""Energy resources of windIO: Weibull distributions, tables of probabilities and time series."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.readers import windio_grid
from leeward.readers.document import Document, Place
from leeward.readers.wind_file import WindData
from leeward.readers.windio_variables import READ, Resource, Runs

Array = npt.NDArray[np.float64]


def read(path: Path) -> WindData:
    """Return the wind of a windIO file: an energy resource, a site or a whole plant."""
    document = Document.with_includes(path, "a windIO energy resource")
    for place in ((), ("energy_resource",), ("site", "energy_resource")):
        if document.value((*place, "wind_resource")):
            return wind_of(document, (*place, "wind_resource"), Runs())
    raise InputError(f"{path}: has no wind_resource; expected a windIO energy resource, site or plant")


def wind_of(
    document: Document,
    place: Place,
    runs: Runs,
    hub_heights: Sequence[float] = (),
    uses_turbulence: bool = True,
) -> WindData:
    """Return the wind of a `wind_resource` at a place of the document.

    hub_heights: of the turbines, if known (m): shear from that height is left out. uses_turbulence: False if the wake
    model does not depend on turbulence, which may then vary in any way.
    """
    resource = Resource(document, place, uses_turbulence)
    unused = sorted(set(resource.data) - READ - {"operating"})
    notes = [f"not used by leeward's wake models: {', '.join(unused)}"] if unused else []
    if "operating" in resource.data:
        raise document.error((*place, "operating"), "is not supported; expected turbines that always run")
    shear = resource.shear(hub_heights)
    notes += [] if shear else resource.height_notes(hub_heights)
    if resource.is_on_grid:
        return windio_grid.wind_of(resource, runs, shear, notes)
    read_as = _weibull if "weibull_k" in resource.data else _table if "probability" in resource.data else _series
    return WindData(read_as(resource, runs), notes, shear)


def _weibull(resource: Resource, runs: Runs) -> dict[str, Any]:
    resource.reject_runs(runs.times, "times_run", "directions_run and wind_speeds_run")
    centres = np.atleast_1d(resource.variable("wind_direction")[1] if "wind_direction" in resource.data else 0.0)
    count = len(centres)
    names = {"sector_frequency": "sector_probability", "weibull_a_m_s": "weibull_a", "weibull_k": "weibull_k"}
    values = {ours: resource.along(theirs, ("wind_direction",), (count,)) for ours, theirs in names.items()}
    found: dict[str, Any] = {name: array.tolist() for name, array in values.items()}
    found |= resource.turbulence(("wind_direction",), (count,))
    if count > 1 and centres[-1] == 360.0:
        centres = centres[:-1]
        found = {name: array[:-1] for name, array in found.items()}
    if len(centres) > 1 and not np.allclose(centres, np.arange(len(centres)) * 360.0 / len(centres)):
        shown = ", ".join(f"{centre:g}" for centre in centres[:4])
        raise resource.error("wind_direction", f"is {shown}, ...; expected equal sectors that start at 0 degrees")
    is_exact = runs.is_exact or len(centres) == 1  # a single direction has no sector
    directions = centres.tolist() if is_exact and runs.directions is None else runs.directions
    speeds = runs.speeds
    if speeds is None and "wind_speed" in resource.data:
        own = np.atleast_1d(resource.variable("wind_speed")[1])
        speeds = own.tolist() if len(own) > 1 else None
    bins = {"wind_directions_deg": directions, "wind_speeds_m_s": speeds}
    return found | {name: list(given) for name, given in bins.items() if given is not None}


def _table(resource: Resource, runs: Runs) -> dict[str, Any]:
    """Return a table by direction and speed, or by flow case if each case has its own direction and speed."""
    (own, directions), (speed_dims, speeds) = resource.variable("wind_direction"), resource.variable("wind_speed")
    directions, speeds = np.atleast_1d(directions), np.atleast_1d(speeds)
    if own and own == speed_dims:
        return _flow_cases(resource, runs, own[0], directions, speeds)
    resource.reject_runs(runs.times, "times_run", "directions_run and wind_speeds_run")
    dims, sizes2 = ("wind_direction", "wind_speed"), (len(directions), len(speeds))
    probability = resource.along("probability", dims, sizes2)
    if "sector_probability" in resource.data:  # the other probabilities are those of the speeds in each sector
        probability *= resource.along("sector_probability", ("wind_direction",), sizes2[:1])[:, None]
    if "wind_speed" not in resource.variable("probability")[0] and len(speeds) > 1:
        raise resource.error("probability", "does not depend on wind_speed, but there are several speeds")
    intensity = resource.turbulence(dims, sizes2)
    rows = _chosen(resource, "wind_direction", directions, runs.directions)
    if {0.0, 360.0} <= set(directions[rows].tolist()):
        first, last = (int(np.flatnonzero(directions == angle)[0]) for angle in (0.0, 360.0))
        if not np.array_equal(probability[first], probability[last]):
            raise resource.error("wind_direction", "has 0 and 360 with different probabilities; remove one of them")
        rows.remove(last)
    columns = _chosen(resource, "wind_speed", speeds, runs.speeds)
    one_speed = len(columns) == 1

    def part(values: Any) -> Any:
        chosen = np.asarray(values)[np.ix_(rows, columns)]
        return (chosen[:, 0] if one_speed else chosen).tolist()

    found = {
        "wind_directions_deg": directions[rows].tolist(),
        "wind_speeds_m_s": speeds[columns].tolist(),
        "probability": part(probability),
        **{name: part(values) for name, values in intensity.items()},
    }
    return found | ({"kind": "exact"} if runs.is_exact or runs.has_cases else {})


def _flow_cases(resource: Resource, runs: Runs, dim: str, directions: Array, speeds: Array) -> dict[str, Any]:
    """Return a table in which each case has its own direction and speed."""
    resource.reject_runs(runs.directions, "directions_run", "times_run")
    resource.reject_runs(runs.speeds, "wind_speeds_run", "times_run")
    dims, sizes = (dim,), (len(directions),)
    table = {
        "wind_directions_deg": directions.tolist(),
        "wind_speeds_m_s": speeds.tolist(),
        "probability": resource.along("probability", dims, sizes).tolist(),
        **resource.turbulence(dims, sizes),
    }
    return _steps(resource, table, runs, len(directions)) | {"kind": "exact"}


def _steps(resource: Resource, table: dict[str, Any], runs: Runs, count: int) -> dict[str, Any]:
    """Return the rows of a table that the plant asks for."""
    if runs.times is None:
        return table
    wrong = [step for step in runs.times if not 0 <= step < count]
    if wrong:
        raise resource.error("wind_speed", f"has {count} steps; run_configuration asks for step {wrong[0]}")
    return {name: [values[step] for step in runs.times] for name, values in table.items()}


def _chosen(resource: Resource, name: str, known: Array, wanted: Sequence[float] | None) -> list[int]:
    """Return the positions of the wanted values."""
    if wanted is None:
        return list(range(len(known)))
    missing = [value for value in wanted if value not in known]
    if missing:
        raise resource.error(name, f"has no {missing[0]:g}, which run_configuration asks for")
    return [int(np.flatnonzero(known == value)[0]) for value in wanted]


def _series(resource: Resource, runs: Runs) -> dict[str, Any]:
    resource.reject_runs(runs.directions, "directions_run", "times_run")
    resource.reject_runs(runs.speeds, "wind_speeds_run", "times_run")
    times = resource.data.get("time")
    if isinstance(times, Mapping):
        times = times.get("data")
    if not isinstance(times, list) or not times:
        raise resource.error("time", "is missing; expected a time series, probability, or Weibull parameters")
    count = len(times)

    def steps(name: str) -> list[float]:
        dims, values = resource.variable(name)
        if dims and dims not in (("time",), (name,)):
            raise resource.error(name, f"depends on {', '.join(dims)}; expected time")
        if values.size not in (1, count):
            raise resource.error(name, f"has {values.size} values for {count} times; expected as many")
        return [float(value) for value in np.broadcast_to(values, (count,))]

    found = {"wind_direction_deg": steps("wind_direction"), "wind_speed_m_s": steps("wind_speed")}
    if "turbulence_intensity" in resource.data:
        found["turbulence_intensity"] = steps("turbulence_intensity")
    return _steps(resource, found, runs, count)
