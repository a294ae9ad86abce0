"""Turbines of windIO plants (YAML)."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.readers.curves import MW_PER_W, turbine_curves, with_standstill
from leeward.readers.document import Document, Place

AIR_DENSITY = 1.225  # kg/m3: windIO does not state the density of power coefficients; its tools use this one
CURVED_STEP_M_S = 0.002  # distance between the points that replace a cubic power curve
COEFFICIENT_STEP_M_S = 0.01  # the same for power coefficients, which are linear between theirs
RATED = ("rated_power", "rated_wind_speed", "cutin_wind_speed", "cutout_wind_speed")

Array = npt.NDArray[np.float64]


def read(document: Document, place: Place = ()) -> dict[str, Any]:
    """Return name, size and curves of a windIO turbine. place: of the turbine in the document."""
    found = _curves_and_size(document, place)
    curves = found.pop("curves")
    with document.at(*place, "performance"):
        return {**found, **_joined(*curves)}


def _curves_and_size(document: Document, place: Place) -> dict[str, Any]:
    """Return name and size, and as `curves` the arguments of `_joined`."""
    data = document.value(place)
    performance = data.get("performance")
    if not isinstance(performance, Mapping):
        raise document.error((*place, "performance"), f"is {performance!r:.60}; expected the curves of the turbine")
    sizes = {
        ours: document.number((*place, theirs))
        for ours, theirs in (("rotor_diameter_m", "rotor_diameter"), ("hub_height_m", "hub_height"))
    }
    at = (*place, "performance")
    thrust = _curve(document, at, "Ct_curve", "Ct")
    named = {"name": str(data["name"])} if data.get("name") else {}
    if "power_curve" in performance:
        speeds, power = _curve(document, at, "power_curve", "power")
        return {**named, **sizes, "curves": (speeds, power * MW_PER_W, *thrust, _stops(document, at))}
    if "Cp_curve" in performance:
        speeds, coefficient = _curve(document, at, "Cp_curve", "Cp")
        fine = _refined(speeds, COEFFICIENT_STEP_M_S)
        area = math.pi * sizes["rotor_diameter_m"] ** 2 / 4.0
        power = 0.5 * AIR_DENSITY * area * np.interp(fine, speeds, coefficient) * fine**3
        # beyond rated power, a straight line between two coefficients is too high
        power = np.minimum(power, 0.5 * AIR_DENSITY * area * (coefficient * speeds**3).max())
        if "generator_efficiency" in performance:
            power *= document.number((*at, "generator_efficiency"))
        return {**named, **sizes, "curves": (fine, power * MW_PER_W, *thrust, _stops(document, at))}
    rated, rated_speed, cut_in, cut_out = (document.number((*at, name)) for name in RATED)
    if not cut_in < rated_speed < cut_out:
        found = f"has the speeds {cut_in:g} (cut-in), {rated_speed:g} (rated) and {cut_out:g} (cut-out)"
        raise document.error(at, f"{found}; expected increasing ones")
    fine = np.r_[_refined(np.array([cut_in, rated_speed]), CURVED_STEP_M_S), cut_out]
    shape = np.clip((fine - cut_in) / (rated_speed - cut_in), 0.0, 1.0) ** 3
    return {**named, **sizes, "curves": (fine, rated * MW_PER_W * shape, *thrust, (cut_in, cut_out))}


def _joined(
    power_speeds: Array,
    power: Array,
    thrust_speeds: Array,
    thrust: Array,
    stops: tuple[float | None, float | None],
) -> dict[str, Any]:
    """Return both curves at the speeds of either. stops: cut-in and cut-out speed, if the turbine states them."""
    speeds = np.union1d(power_speeds, thrust_speeds)
    curves = speeds, np.interp(speeds, power_speeds, power), np.interp(speeds, thrust_speeds, thrust)
    return turbine_curves(*with_standstill(*curves, cut_in=stops[0], cut_out=stops[1]))


def _stops(document: Document, place: Place) -> tuple[float | None, float | None]:
    """Return the cut-in and cut-out speeds that the turbine states."""
    given = document.value(place)
    cut_in, cut_out = (
        document.number((*place, name)) if name in given else None for name in ("cutin_wind_speed", "cutout_wind_speed")
    )
    return cut_in, cut_out


def _refined(speeds: Array, step: float) -> Array:
    """Return the speeds with more between them, at most `step` apart."""
    pieces = [np.linspace(low, high, int(np.ceil((high - low) / step)) + 1) for low, high in itertools.pairwise(speeds)]
    return np.unique(np.concatenate(pieces))


def _curve(document: Document, place: Place, name: str, quantity: str) -> tuple[Array, Array]:
    """Return wind speeds and values of a curve."""
    at = (*place, name)
    speeds = np.array(document.numbers((*at, f"{quantity}_wind_speeds")))
    values = np.array(document.numbers((*at, f"{quantity}_values")))
    if len(speeds) != len(values) or len(speeds) < 2:
        found = f"has {len(speeds)} wind speeds and {len(values)} values"
        raise document.error(at, f"{found}; expected the same number, at least 2")
    if (np.diff(speeds) <= 0.0).any():
        wrong = int(np.flatnonzero(np.diff(speeds) <= 0.0)[0]) + 1
        found = f"is {speeds[wrong]:g} after {speeds[wrong - 1]:g}; expected increasing speeds"
        raise document.error((*at, f"{quantity}_wind_speeds", wrong), found)
    return speeds, values
