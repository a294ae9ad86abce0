"""Check stored results against their campaign: settings, constraints and AEP."""

import math
from typing import TYPE_CHECKING

import numpy as np

from leeward.errors import InputError
from leeward.store import NO_AEP, OWN, Maker, Result

if TYPE_CHECKING:
    from leeward.campaign.campaign import Campaign

AEP_TOLERANCE = 1e-9  # relative difference
DIAMETER_TOLERANCE = 1e-6  # relative difference


class Judge:
    """Checks stored results of a campaign. Each method returns a sentence that says what is wrong, or None."""

    def __init__(self, campaign: "Campaign") -> None:
        self._campaign = campaign

    def __call__(self, result: Result) -> str | None:
        """Return what is physically wrong with a result, or None."""
        if result.key not in self._campaign:
            return f"{result.key} is not a task of the campaign {self._campaign.name}"
        return self.misfit(result) or self._constraints(result) or self._aep(result)

    def aep(self, result: Result) -> str | None:
        """Return why a result or its AEP is wrong, or None. Return None too if the campaign has no such task."""
        return self.misfit(result) or (self._aep(result) if result.key in self._campaign else None)

    def misfit(self, result: Result) -> str | None:
        """Return why a result does not belong to the campaign, or None. Return None too if there is no such task.

        It compares settings, turbines and area, and is quick because it does not call the wake engine. Adopted results
        have no fingerprint. A result of another method version is compared under that version.
        """
        campaign, key = self._campaign, result.key
        if key not in campaign:
            return None
        if version_of(campaign, result) is None:
            expected = campaign.fingerprint(key.farm_idx, key.type_idx, Maker.of(result.details).method_version)
            return (
                f"it was made with other settings, by {Maker.of(result.details)}: its fingerprint is "
                f"{str(result.fingerprint)[:12]}..., that of the campaign is {expected[:12]}..."
            )
        return layout_mismatch(campaign, result)

    @property
    def notes(self) -> list[str]:
        """Return a sentence for each check that is skipped."""
        if self._campaign.physics.wake_model_is_known:
            return []
        name = self._campaign.spec.wake_model["name"]
        return [f"AEP is not recomputed: the wake model {name} is custom code, which only `leeward run` imports."]

    def _constraints(self, result: Result) -> str | None:
        problem = self._campaign.physics.constraints(result.key.farm_idx, result.key.type_idx)
        violation = problem.violation(*result.layout)
        return None if violation.is_feasible else f"its layout breaks a constraint: {violation}"

    def _aep(self, result: Result) -> str | None:
        if result.status == NO_AEP:
            return None
        if not (math.isfinite(result.aep_gwh) and result.aep_gwh > 0):
            return f"its AEP is {result.aep_gwh:g} GWh; expected a number above 0"
        campaign, key = self._campaign, result.key
        is_other_version = version_of(campaign, result) != campaign.fingerprints.method_version
        # the wake engine gives different numbers, or cannot be used
        if is_other_version or not campaign.physics.wake_model_is_known:
            return None
        try:
            computed = campaign.problem(key.farm_idx, key.type_idx).farm.aep_gwh(*result.layout)
        except InputError as error:
            return f"the wake engine rejects its layout: {error}"
        off = abs(result.aep_gwh - computed) / computed
        if not off <= AEP_TOLERANCE:
            return (
                f"its AEP is {result.aep_gwh:.9g} GWh; the wake engine computes {computed:.9g} GWh, "
                f"a relative difference of {off:.1e}"
            )
        return None


def version_of(campaign: "Campaign", result: Result) -> int | None:
    """Return the method version that made a result of a task, or None if its settings differ."""
    fingerprint = str(result.fingerprint) if result.origin == OWN else None
    return campaign.fingerprints.version_of(result.key, fingerprint, Maker.of(result.details).method_version)


def layout_mismatch(campaign: "Campaign", result: Result) -> str | None:
    """Return why a layout does not belong to the campaign (other turbines, or another area), or None."""
    return _turbine_mismatch(campaign, result) or _area_mismatch(campaign, result)


def _turbine_mismatch(campaign: "Campaign", result: Result) -> str | None:
    key, layout = result.key, result.layout
    count = campaign.physics.n_turbines(key.farm_idx, key.type_idx)
    if layout.shape != (2, count):
        return f"its layout has the shape {layout.shape}; expected (2, {count}), for {count} turbines"
    if not np.isfinite(layout).all():
        turbine = int(np.flatnonzero(~np.isfinite(layout).all(axis=0))[0])
        return f"turbine {turbine} is at ({layout[0, turbine]}, {layout[1, turbine]}); expected finite coordinates"
    diameter = campaign.physics.rotor_diameter_m(key.type_idx)
    if math.isfinite(result.rotor_diameter_m) and not math.isclose(
        result.rotor_diameter_m, diameter, rel_tol=DIAMETER_TOLERANCE
    ):
        return f"its rotor diameter is {result.rotor_diameter_m:g} m; that of type {key.type_idx} is {diameter:g} m"
    return None


def _area_mismatch(campaign: "Campaign", result: Result) -> str | None:
    """Return a sentence if a turbine is more than one minimum spacing outside the area, else None."""
    import shapely

    problem = campaign.physics.constraints(result.key.farm_idx, result.key.type_idx)
    points = shapely.points(*result.layout)
    with np.errstate(over="ignore"):  # huge coordinates overflow to infinity, which counts as outside
        outside = float(shapely.distance(problem.area.to_shapely(), points).max())
    if outside <= problem.min_distances_m.max():
        return None
    return (
        f"turbines are up to {outside:.6g} m outside the area of farm {result.key.farm_idx}; is it from another farm?"
    )
