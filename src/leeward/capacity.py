"""Installed power (MW), capacity factor (a fraction), and the rule that compares turbine types by it, not by AEP."""

import math
from collections.abc import Iterable, Mapping, Sequence

from leeward.wording import listed

HOURS_PER_YEAR = 8760.0
GWH_PER_MW = HOURS_PER_YEAR * 1e-3
SIMILAR = 0.005  # relative difference; installed powers that differ by less count as equal
LAST_BITS = 1e-12  # relative rounding error


def capacity_factor(aep_gwh: float | None, installed_mw: float | None) -> float:
    """Return the capacity factor, a fraction; NaN if AEP or installed power is unknown."""
    if aep_gwh is None or installed_mw is None or not installed_mw > 0.0:
        return math.nan
    return aep_gwh / (installed_mw * GWH_PER_MW)


def installed_power(details: Mapping[str, object], n_turbines: int, rated_power_mw: float | None) -> float:
    """Return the installed power of a result (MW): the stored detail, else turbines × rated power, else NaN.

    rated_power_mw: rated power of the turbine type in the campaign, or None.
    """
    stored = details.get("installed_mw")
    if isinstance(stored, int | float) and not isinstance(stored, bool) and 0.0 < stored < math.inf:
        return float(stored)
    return math.nan if rated_power_mw is None else n_turbines * rated_power_mw


def by_capacity_factor(installed_mw: Iterable[float | None]) -> bool:
    """Return whether installed powers (MW) differ by over 0.5 %, so that layouts are compared by capacity factor.

    More installed power yields more energy, however good the layout is. Unknown powers are ignored.
    """
    known = [power for power in installed_mw if power is not None and power > 0.0]
    return bool(known) and max(known) > (1.0 + SIMILAR + LAST_BITS) * min(known)


def merit(aep_gwh: float | None, installed_mw: float | None, is_by_factor: bool) -> float:
    """Return the number by which a layout is ranked; larger is better. Return minus infinity if it is unknown."""
    value = capacity_factor(aep_gwh, installed_mw) if is_by_factor else aep_gwh
    return -math.inf if value is None or math.isnan(value) else value


def comparison_remark(farms: Sequence[str], n_farms: int) -> str:
    """Return a sentence on how turbine types are compared, or "".

    farms: the names of the farms where installed power differs. n_farms: the number of all farms.
    """
    if not farms:
        return ""
    where = ""
    if len(farms) < n_farms:
        where = f" of {'farm' if len(farms) == 1 else 'farms'} {listed(farms)}"
    return (
        f"Installed power differs by more than {100 * SIMILAR:g} % between the turbine types{where}: "
        f"{'there, ' if where else ''}types are compared by capacity factor, not by AEP."
    )


def yield_words(aep_gwh: float | None, installed_mw: float | None) -> str:
    """Return installed power and capacity factor as text; "" if they are unknown."""
    if installed_mw is None or math.isnan(installed_mw):
        return ""
    factor = capacity_factor(aep_gwh, installed_mw)
    return f"{installed_mw:.6g} MW installed" + ("" if math.isnan(factor) else f", capacity factor {factor:.2%}")
