"""Turbines: diameter, hub height, power and thrust curves."""

import inspect
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.readers.pywake_turbine import pywake_curves
from leeward.readers.turbine_file import read_turbine
from leeward.wind.checks import Array, check_increasing, finite_array, positive, reject, turbulence

# W per m^2 of rotor; turbines built so far lie between about 150 and 600
LOWEST_SPECIFIC_POWER = 20.0
HIGHEST_SPECIFIC_POWER = 2000.0
HIGHEST_THRUST = 1.5  # the thrust coefficient of heavily loaded rotors exceeds 1 a little
BETZ = 16.0 / 27.0
BETZ_THRUST = 8.0 / 9.0


@dataclass(frozen=True, eq=False)
class Curve:
    """Power and thrust as piecewise cubic polynomials.

    ends: wind speed at which each piece ends, the last one infinite; shape (pieces,).
    coefficients: shape (pieces, 9): the speed that each piece is expanded about, four of power (MW), four of thrust.
    """

    ends: Array
    coefficients: Array

    @classmethod
    def linear(cls, speeds: Array, power: Array, thrust: Array) -> "Curve":
        """Return straight lines between the points, constant outside them."""
        coefficients = np.zeros((len(speeds) + 1, 9))
        coefficients[:, 0] = np.r_[speeds[0], speeds]
        coefficients[:, 1] = np.r_[power[0], power]
        coefficients[:, 5] = np.r_[thrust[0], thrust]
        coefficients[1:-1, 2] = np.diff(power) / np.diff(speeds)
        coefficients[1:-1, 6] = np.diff(thrust) / np.diff(speeds)
        return cls(np.r_[speeds, np.inf], coefficients)

    def __call__(self, speeds: npt.ArrayLike) -> tuple[Array, Array]:
        """Return power (MW) and thrust coefficient at wind speeds of any shape."""
        speed = np.asarray(speeds, dtype=np.float64)
        row = self.coefficients[np.searchsorted(self.ends, speed, side="right")]
        t = speed - row[..., 0]
        power = row[..., 1] + t * (row[..., 2] + t * (row[..., 3] + t * row[..., 4]))
        thrust = row[..., 5] + t * (row[..., 6] + t * (row[..., 7] + t * row[..., 8]))
        return power, thrust


class Turbine:
    """A turbine type.

    As in PyWake, the curves are linear between the given wind speeds and constant outside them.
    """

    def __init__(
        self,
        *,
        wind_speeds_m_s: npt.ArrayLike,
        power_mw: npt.ArrayLike,
        thrust_coefficient: npt.ArrayLike,
        rotor_diameter_m: float,
        hub_height_m: float,
        name: str = "turbine",
    ) -> None:
        speeds = finite_array(wind_speeds_m_s, f"{name}: wind_speeds_m_s")
        power = finite_array(power_mw, f"{name}: power_mw")
        thrust = finite_array(thrust_coefficient, f"{name}: thrust_coefficient")
        _check_curve(name, speeds, power, thrust)
        self._set(Curve.linear(speeds, power, thrust), float(power.max()), rotor_diameter_m, hub_height_m, name)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        rotor_diameter_m: float | None = None,
        hub_height_m: float | None = None,
        power_unit: str | None = None,
        mode: int | None = None,
    ) -> "Turbine":
        """Read a turbine: a CSV file of its curves, a WAsP .wtg file, or a YAML file of leeward, windIO or FLORIS.

        rotor_diameter_m, hub_height_m: needed for a CSV file; else they replace those of the file. power_unit: W, kW or
        MW, for a CSV file without a unit in the name of its column. mode: performance table of a .wtg file, from 0.
        """
        document = read_turbine(Path(path), power_unit=power_unit, mode=mode, has_height=hub_height_m is not None)
        given = {"rotor_diameter_m": rotor_diameter_m, "hub_height_m": hub_height_m}
        document.data |= {name: value for name, value in given.items() if value is not None}
        with document.at():
            return cls.from_settings(document.data)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Turbine":
        """Return the turbine with the keys of a campaign file: curves, a cubic power curve, or a generic turbine."""
        form: Any = cls if "wind_speeds_m_s" in settings else cls.cubic if "cut_in_m_s" in settings else cls.generic
        known = inspect.signature(form).parameters
        for name in settings:
            if name not in known:
                raise InputError(f"{name} is not a known key of a turbine; allowed: {', '.join(known)}")
        for name, parameter in known.items():
            if parameter.default is parameter.empty and name not in settings:
                raise InputError(f"{name} of the turbine is missing; add it")
        try:
            turbine: Turbine = form(**settings)
        except (TypeError, OverflowError) as error:  # a list or text where a number is expected, or 1e300 m
            raise InputError(f"{settings.get('name', 'turbine')}: cannot be used ({error})") from error
        return turbine

    @classmethod
    def from_pywake(cls, turbines: Any, *, type: int = 0) -> "Turbine":
        """Return the turbine of PyWake's `WindTurbine`, or one of the types of its `WindTurbines`.

        Tabulated curves with linear interpolation are taken as they are; others are sampled every 0.01 m/s.
        """
        return cls(**pywake_curves(turbines, type))

    @classmethod
    def generic(
        cls,
        rated_power_mw: float,
        rotor_diameter_m: float,
        hub_height_m: float,
        *,
        turbulence_intensity: float = 0.1,
        air_density_kg_m3: float = 1.225,
        max_power_coefficient: float = 0.49,
        constant_thrust: float = 0.8,
        name: str = "generic",
    ) -> "Turbine":
        """Return the turbine of PyWake's `GenericWindTurbine` with the same parameters (PyWake expects kW)."""
        rated = positive(rated_power_mw, f"{name}: rated_power_mw")
        diameter = positive(rotor_diameter_m, f"{name}: rotor_diameter_m")
        _check_specific_power(name, rated, diameter)
        turbulence(turbulence_intensity, f"{name}: turbulence_intensity")
        positive(air_density_kg_m3, f"{name}: air_density_kg_m3")
        for what, value, most in (
            ("max_power_coefficient", max_power_coefficient, BETZ),
            ("constant_thrust", constant_thrust, BETZ_THRUST),
        ):
            if not positive(value, f"{name}: {what}") <= most:
                raise InputError(f"{name}: {what} is {value:g}; expected at most {most:.4g}, the Betz limit")
        speeds, power, thrust = _generic_curves(
            rated, diameter, turbulence_intensity, air_density_kg_m3, max_power_coefficient, constant_thrust
        )
        return cls(
            wind_speeds_m_s=speeds,
            power_mw=power,
            thrust_coefficient=thrust,
            rotor_diameter_m=diameter,
            hub_height_m=hub_height_m,
            name=name,
        )

    @classmethod
    def cubic(
        cls,
        rated_power_mw: float,
        rotor_diameter_m: float,
        hub_height_m: float,
        *,
        cut_in_m_s: float,
        rated_speed_m_s: float,
        cut_out_m_s: float,
        thrust_coefficient: float = BETZ_THRUST,
        name: str = "cubic",
    ) -> "Turbine":
        """Return a turbine with power ~ ((v - cut_in) / (rated_speed - cut_in))^3 and a constant thrust coefficient."""
        rated = positive(rated_power_mw, f"{name}: rated_power_mw")
        speeds = finite_array([cut_in_m_s, rated_speed_m_s, cut_out_m_s], f"{name}: cut-in, rated and cut-out speed")
        _check_curve(name, speeds, np.array([0.0, rated, rated]), np.full(3, float(thrust_coefficient)))
        coefficients = np.zeros((4, 9))
        coefficients[:, 0] = np.r_[speeds[0], speeds]
        coefficients[:, 5] = thrust_coefficient
        coefficients[1, 4] = rated / (speeds[1] - speeds[0]) ** 3
        coefficients[2, 1] = rated
        ends = np.r_[
            speeds[:2], np.nextafter(speeds[2], np.inf), np.inf
        ]  # the turbine still runs at the cut-out speed itself
        turbine = cls.__new__(cls)
        turbine._set(Curve(ends, coefficients), rated, rotor_diameter_m, hub_height_m, name)
        return turbine

    @classmethod
    def iea37_3_35mw(cls) -> "Turbine":
        """Return the turbine of the IEA Wind Task 37 layout case studies 1 and 2."""
        return cls.cubic(
            3.35, 130.0, 110.0, cut_in_m_s=4.0, rated_speed_m_s=9.8, cut_out_m_s=25.0, name="IEA37 3.35 MW"
        )

    @classmethod
    def iea37_10mw(cls) -> "Turbine":
        """Return the turbine of the IEA Wind Task 37 layout case studies 3 and 4."""
        return cls.cubic(10.0, 198.0, 119.0, cut_in_m_s=4.0, rated_speed_m_s=11.0, cut_out_m_s=25.0, name="IEA37 10 MW")

    def _set(self, curve: Curve, rated: float, rotor_diameter_m: float, hub_height_m: float, name: str) -> None:
        diameter = positive(rotor_diameter_m, f"{name}: rotor_diameter_m")
        hub_height = positive(hub_height_m, f"{name}: hub_height_m")
        _check_specific_power(name, rated, diameter)
        if hub_height <= 0.5 * diameter:
            raise InputError(
                f"{name}: hub_height_m is {hub_height:g} and rotor_diameter_m is {diameter:g}: the blades would reach "
                "the ground; expected a hub height above half the diameter"
            )
        self.name = name
        self.rotor_diameter_m = diameter
        self.hub_height_m = hub_height
        self.rated_power_mw = rated
        self.curve = curve
        # thrust is linear or constant in every piece, so its extremes are at the ends
        ends = np.r_[curve.coefficients[:, 0], curve.ends[:-1]]
        thrust = np.r_[curve(ends)[1], curve(np.nextafter(ends, -np.inf))[1]]
        self.lowest_thrust = float(thrust.min())
        self.highest_thrust = float(thrust.max())

    def power_mw(self, wind_speeds_m_s: npt.ArrayLike) -> Array:
        """Return the power at wind speeds of any shape."""
        return self.curve(wind_speeds_m_s)[0]

    def thrust_coefficient(self, wind_speeds_m_s: npt.ArrayLike) -> Array:
        """Return the thrust coefficient at wind speeds of any shape."""
        return self.curve(wind_speeds_m_s)[1]

    def _key(self) -> tuple[object, ...]:
        return self.rotor_diameter_m, self.hub_height_m, self.curve.ends.tobytes(), self.curve.coefficients.tobytes()

    def __eq__(self, other: object) -> bool:
        """Return whether the two have the same curves and dimensions; names do not count."""
        return isinstance(other, Turbine) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.rotor_diameter_m, self.hub_height_m, self.rated_power_mw, len(self.curve.ends)))

    def __repr__(self) -> str:
        return (
            f"<Turbine {self.name}: {self.rated_power_mw:g} MW, rotor {self.rotor_diameter_m:g} m, "
            f"hub {self.hub_height_m:g} m>"
        )


def _check_curve(name: str, speeds: Array, power: Array, thrust: Array) -> None:
    if not len(speeds) == len(power) == len(thrust):
        raise InputError(
            f"{name}: {len(speeds)} wind speeds, {len(power)} powers and {len(thrust)} thrust coefficients; "
            "expected the same number of each"
        )
    if len(speeds) < 2:
        raise InputError(f"{name}: the curves have {len(speeds)} point(s); expected at least 2")
    check_increasing(speeds, f"{name}: wind speed ", "increasing speeds")
    reject(power, power < 0, f"{name}: power_mw", "0 or more")
    is_impossible = (thrust < 0) | (thrust > HIGHEST_THRUST)
    reject(thrust, is_impossible, f"{name}: thrust_coefficient", f"0 to {HIGHEST_THRUST:g}")


def _check_specific_power(name: str, rated_mw: float, diameter: float) -> None:
    """Raise InputError for an impossible specific power, for example if watts are given as megawatts."""
    area = math.pi * diameter**2 / 4.0
    specific = rated_mw * 1e6 / area
    if LOWEST_SPECIFIC_POWER <= specific <= HIGHEST_SPECIFIC_POWER:
        return
    for unit, factor in (("watts", 1e-6), ("kilowatts", 1e-3), ("gigawatts", 1e3)):
        if LOWEST_SPECIFIC_POWER <= specific * factor <= HIGHEST_SPECIFIC_POWER:
            raise InputError(
                f"{name}: a rated power of {rated_mw:g} MW on a rotor of {diameter:g} m looks like {unit}; "
                f"expected megawatts: {rated_mw * factor:g}?"
            )
    raise InputError(
        f"{name}: a rated power of {rated_mw:g} MW on a rotor of {diameter:g} m is {specific:.3g} W/m^2; expected "
        f"{LOWEST_SPECIFIC_POWER:g} to {HIGHEST_SPECIFIC_POWER:g}; check both numbers"
    )


def _generic_curves(
    rated_mw: float,
    diameter: float,
    turbulence_intensity: float,
    air_density: float,
    max_power_coefficient: float,
    constant_thrust: float,
) -> tuple[Array, Array, Array]:
    """Return wind speeds, power and thrust coefficient of a generic turbine.

    The power is aerodynamic power less losses, smoothed by turbulence; the thrust follows from momentum theory.
    The loss factors (gearbox 1 % of rated power and 1.4 % of the power through it, generator 3 %, converter 3 %) and
    the order of the steps are those of the DTU spreadsheet that PyWake follows.
    """
    gear_constant, gear_variable, generator, converter = 0.01, 0.014, 0.03, 0.03
    speeds = np.arange(0.1, 30, 0.1)
    full = 0.5 * air_density * math.pi * diameter**2 / 4.0 * speeds**3 * 1e-6

    through_gear = np.maximum(full * max_power_coefficient * (1.0 - gear_variable) - gear_constant * rated_mw, 0.0)
    steady = np.minimum(through_gear * (1.0 - generator) * (1.0 - converter), rated_mw)
    if turbulence_intensity > 0:
        spread = (turbulence_intensity * speeds)[:, None]
        weight = np.exp(-0.5 * ((speeds - speeds[:, None]) / spread) ** 2)
        power = weight @ steady / weight.sum(axis=1)
    else:
        power = steady

    aerodynamic = (power / (1.0 - converter) / (1.0 - generator) + gear_constant * rated_mw) / (1.0 - gear_variable)
    # the constant loss makes the power coefficient too high at low wind speeds
    thrust = _thrust_from_power_coefficient(np.minimum(aerodynamic / full, BETZ))

    # scale so that the flattest part, beyond the speeds limited above, has `constant_thrust`
    start = int(np.flatnonzero(thrust < BETZ_THRUST - 1e-6)[0])
    flattest = start + int(np.argmin(np.abs(np.diff(thrust[start:]))))
    at_best = float(_thrust_from_power_coefficient(np.array([max_power_coefficient]))[0])
    if thrust[flattest] < at_best:
        flattest = 0  # the turbulence leaves no flat part
    return speeds, power, np.minimum(thrust * (constant_thrust / thrust[flattest]), BETZ_THRUST)


def _thrust_from_power_coefficient(power_coefficient: Array) -> Array:
    """Solve cp = 4 a (1 - a)^2 for the smaller induction a; the thrust coefficient is 4 a (1 - a)."""
    share = power_coefficient / BETZ
    angle = np.arctan2(2.0 * np.sqrt(share * (1.0 - share)), 1.0 - 2.0 * share)
    induction = 2.0 / 3.0 * (1.0 - np.cos(angle / 3.0))
    return np.asarray(4.0 * induction * (1.0 - induction))
