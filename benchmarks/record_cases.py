"""The cases of the table of records: their figures, and AEP and constraints of a layout, computed without leeward.

Areas, spacings and winds come from the files of the case studies, not from the campaigns in benchmarks/records.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from layout_measurements import DATA, SPACING_M, TOLERANCE_M, corners, iea37_figures

FOLDER = Path(__file__).resolve().parent / "records"
AEP_TOLERANCE = 1e-9  # largest relative difference between leeward and another program
HOURS = 8760.0
ISLAND_FARMS, ISLAND_TYPE, ISLAND_TURBINES = 10, 5, 66


class RecordError(Exception):
    """A layout violates a constraint, a file cannot be used, or two programs compute different AEPs."""


@dataclass(frozen=True)
class Wind:
    """The exact conditions of a case study. directions: deg. speeds: m/s. probability: (directions, speeds)."""

    directions: np.ndarray
    speeds: np.ndarray
    probability: np.ndarray


@dataclass(frozen=True)
class Case:
    """One row of the table.

    campaign: stem of a file in benchmarks/records. ring: corners of the area, m, or None for a circle about (0, 0).
    scorers: functions (case, x, y) -> AEP in MWh, by name; none of them uses leeward.
    """

    name: str
    campaign: str
    farm_idx: int
    type_idx: int
    turbines: int
    spacing_m: float
    scorers: dict[str, Callable[..., float]]
    ring: np.ndarray | None = None
    radius_m: float = 0.0
    published_mwh: float | None = None
    source: str = "none"

    @property
    def campaign_file(self) -> Path:
        return FOLDER / f"{self.campaign}.yaml"

    @property
    def record_file(self) -> Path:
        return FOLDER / f"{self.campaign}.h5"


@cache
def iea37_cs3_figures() -> dict[str, Any]:
    return json.loads((DATA / "iea37-cs3.json").read_text(encoding="utf-8"))


@cache
def all_cases() -> dict[str, Case]:
    """Return all cases by name, in the order of the table."""
    cases = [*_case_study_1(), _case_study_3(), *_energy_island()]
    return {case.name: case for case in cases}


def _case_study_1() -> list[Case]:
    figures = iea37_figures()
    published = figures["published_best_mwh"].values()
    return [
        Case(
            name=f"iea37-cs1-{entry['turbines']}",
            campaign="iea37-cs1",
            farm_idx=farm_idx,
            type_idx=0,
            turbines=entry["turbines"],
            spacing_m=figures["min_spacing_m"],
            scorers={"formulas": formulas_mwh, "PyWake": pywake_cs1_mwh},
            radius_m=entry["boundary_radius_m"],
            published_mwh=max(layouts[entry["turbines"]] for layouts in published),
            source="case study 1",
        )
        for farm_idx, entry in enumerate(figures["cases"])
    ]


def _case_study_3() -> Case:
    figures = iea37_cs3_figures()
    (ring,) = figures["boundary_m"].values()
    return Case(
        name="iea37-cs3",
        campaign="iea37-cs3",
        farm_idx=0,
        type_idx=0,
        turbines=figures["turbines"],
        spacing_m=figures["min_spacing_m"],
        scorers={"formulas": formulas_mwh, "PyWake": pywake_cs3_mwh},
        ring=np.array(ring),
        published_mwh=figures["published_mwh"]["best_found_in_the_literature"],
        source="literature",
    )


def _energy_island() -> list[Case]:
    return [
        Case(
            name=f"danish-energy-island-{farm_idx}",
            campaign="danish-energy-island",
            farm_idx=farm_idx,
            type_idx=ISLAND_TYPE,
            turbines=ISLAND_TURBINES,
            spacing_m=SPACING_M,
            scorers={"PyWake": pywake_island_mwh},
            ring=corners(farm_idx),
        )
        for farm_idx in range(ISLAND_FARMS)
    ]


# constraints


def violations(case, x, y):
    """Return a sentence for each turbine outside the area and each pair that is too close, beyond 1e-6 m."""
    outside = _metres_outside(case, x, y)
    found = [f"turbine {i} is {outside[i]:.6g} m outside the area" for i in np.flatnonzero(outside > TOLERANCE_M)]
    first, second = np.triu_indices(len(x), 1)
    short = case.spacing_m - np.hypot(x[first] - x[second], y[first] - y[second])
    found += [
        f"turbines {first[k]} and {second[k]} are {short[k]:.6g} m closer than {case.spacing_m:g} m"
        for k in np.flatnonzero(short > TOLERANCE_M)
    ]
    return found


def _metres_outside(case, x, y):
    """Return how far each turbine is outside the area, m; zero or less inside."""
    import shapely

    if case.ring is None:
        return np.hypot(x, y) - case.radius_m
    return shapely.distance(shapely.Polygon(case.ring), shapely.points(x, y))


def demand_feasible(case, x, y):
    """Raise RecordError if the number of turbines is wrong or the layout violates a constraint."""
    if len(x) != case.turbines:
        raise RecordError(f"{case.name}: {len(x)} turbines; expected {case.turbines}")
    found = violations(case, np.asarray(x), np.asarray(y))
    if found:
        raise RecordError(f"{case.name}: the layout violates a constraint: {'; '.join(found)}")


def demand_same_aep(case, aep_mwh, scores):
    """Raise RecordError if an AEP in `scores`, by program, differs from leeward's."""
    for program, score in scores.items():
        difference = abs(score / aep_mwh - 1.0)
        if not difference <= AEP_TOLERANCE:
            raise RecordError(
                f"{case.name}: the AEP is {aep_mwh:.6f} MWh by leeward and {score:.6f} MWh by {program}; they differ "
                f"by {difference:.1e}, more than {AEP_TOLERANCE:g}"
            )


# AEP


def _wind(case):
    """Return the turbine and the wind of an IEA37 case study."""
    if case.campaign == "iea37-cs1":
        figures = iea37_figures()
        wind = figures["wind"]
        probability = np.array(wind["probability"])[:, None]
        return figures["turbine"], Wind(np.array(wind["direction_deg"]), np.array([wind["speed_m_s"]]), probability)
    figures = iea37_cs3_figures()
    given = np.array(figures["speed_probability_given_direction"])
    probability = np.array(figures["direction_probability"])[:, None] * given
    return figures["turbine"], Wind(np.array(figures["direction_deg"]), np.array(figures["speed_m_s"]), probability)


def formulas_mwh(case, x, y):
    """Return the AEP in MWh by the formulas of the IEA37 case studies, written out."""
    turbine, wind = _wind(case)
    diameter, thrust = turbine["rotor_diameter_m"], turbine["thrust_coefficient"]
    power_mw = 0.0
    for direction, probability in zip(np.radians(wind.directions), wind.probability, strict=True):
        along = -np.sin(direction) * x - np.cos(direction) * y
        across = np.cos(direction) * x - np.sin(direction) * y
        downwind, crosswind = along[:, None] - along, across[:, None] - across
        sigma = 0.0324555 * np.maximum(downwind, 0.0) + diameter / np.sqrt(8.0)
        deficit = 1.0 - np.sqrt(1.0 - thrust / (8.0 * sigma**2 / diameter**2))
        deficit = np.where(downwind > 0.0, deficit * np.exp(-0.5 * (crosswind / sigma) ** 2), 0.0)
        speeds = wind.speeds * (1.0 - np.sqrt((deficit**2).sum(axis=1)))[:, None]
        power_mw += (cubic_power(turbine, speeds) @ probability).sum()
    return float(power_mw * HOURS)


def cubic_power(turbine, speeds):
    """Return the power of an IEA37 turbine in the unit of its rated power."""
    cut_in, rated = turbine["cut_in_m_s"], turbine["rated_speed_m_s"]
    share = np.clip((speeds - cut_in) / (rated - cut_in), 0.0, 1.0) ** 3
    return np.where(speeds < turbine["cut_out_m_s"], turbine["rated_power_mw"] * share, 0.0)


def pywake_cs1_mwh(case, x, y):
    """Return the AEP by PyWake's own model of case study 1."""
    from py_wake.literature.iea37_case_study1 import IEA37CaseStudy1

    return 1e3 * float(IEA37CaseStudy1(case.turbines)(x, y).aep().sum())


def pywake_cs3_mwh(case, x, y):
    """Return the AEP by PyWake, with its IEA37 wake model and the turbine and wind of case study 3."""
    import xarray
    from py_wake.deficit_models.gaussian import IEA37SimpleBastankhahGaussianDeficit
    from py_wake.site import XRSite
    from py_wake.superposition_models import SquaredSum
    from py_wake.wind_farm_models.engineering_models import PropagateDownwind
    from py_wake.wind_turbines import WindTurbine
    from py_wake.wind_turbines.power_ct_functions import PowerCtFunction

    turbine, wind = _wind(case)

    def power_and_thrust(speeds, run_only):
        thrust = np.full(np.shape(speeds), turbine["thrust_coefficient"])
        return thrust if run_only else 1e6 * cubic_power(turbine, speeds)

    curve = PowerCtFunction(["ws"], power_and_thrust, "w")
    machine = WindTurbine("IEA37 10 MW", turbine["rotor_diameter_m"], turbine["hub_height_m"], curve)
    table = {"P": (("wd", "ws"), wind.probability), "TI": 0.075}  # the wake model does not use TI
    dataset = xarray.Dataset(table, coords={"wd": wind.directions, "ws": wind.speeds})
    site = XRSite(dataset, interp_method="nearest")
    farm = PropagateDownwind(site, machine, IEA37SimpleBastankhahGaussianDeficit(), SquaredSum())
    return 1e3 * float(farm(x, y, wd=wind.directions, ws=wind.speeds).aep().sum())


def pywake_island_mwh(case, x, y):
    """Return the AEP by PyWake: Nygaard_2022 on the built-in site, with generic turbines of 15 MW."""
    from wake import peer_farm

    return 1e3 * float(peer_farm().aep(x, y))
