"""What a task's numbers depend on, and its digest."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from leeward.campaign.physics import Physics
from leeward.campaign.spec import DEFAULT_OBJECTIVE, CampaignSpec, OptimiserSpec, SiteSpec
from leeward.layout.registry import RECIPES
from leeward.store import Key

METHOD_VERSION = 1  # raised whenever leeward computes another number from the same settings


class Fingerprints:
    """What the tasks of a campaign depend on, farm by farm and type by type, and the digests of it.

    The digests of wind, neighbours and areas, which are long and shared by many tasks, are made once.
    """

    def __init__(self, spec: CampaignSpec, physics: Physics) -> None:
        self._spec = spec
        self._physics = physics
        self._digests: dict[str, str] = {}

    def settings(self, farm_idx: int, type_idx: int) -> dict[str, Any]:
        """Return all that the numbers of a farm and turbine type depend on, the seed aside."""
        return {**self._short(farm_idx, type_idx), **self._long(farm_idx)}

    def of(self, farm_idx: int, type_idx: int, version: int | None = None) -> str:
        """Return the SHA-256, in hex digits, of the settings, of which the long ones count with their own digests.

        version: the method version; that of this leeward if None.
        """
        version = method_version() if version is None else version
        whole = f"whole {farm_idx} {type_idx} {version}"
        if whole not in self._digests:
            short = self._short(farm_idx, type_idx)
            names = {"site": "site", "neighbours": "neighbours", "area": f"area {farm_idx}"}
            if not all(name in self._digests for name in names.values()):
                for name, value in self._long(farm_idx).items():
                    self._digests[names[name]] = digest(value)
            digests = {name: self._digests[known] for name, known in names.items()}
            self._digests[whole] = digest({**short, "method_version": version, **digests})
        return self._digests[whole]

    @property
    def method_version(self) -> int:
        """The method version of this leeward: with another one the same settings give other numbers."""
        return method_version()

    def version_of(self, key: Key, fingerprint: str | None, stated: int | None) -> int | None:
        """Return the method version that made a result of this campaign; None if it was made with other settings.

        stated: the version that the result states, if it does; otherwise all versions up to this leeward's are tried.
        fingerprint: None for an adopted result, which is of the version that computed its AEP.
        """
        if fingerprint is None:
            return method_version() if stated is None else stated
        versions = range(method_version(), 0, -1) if stated is None else [stated]
        made = (version for version in versions if self.of(key.farm_idx, key.type_idx, version) == fingerprint)
        return next(made, None)

    def _short(self, farm_idx: int, type_idx: int) -> dict[str, Any]:
        return {
            "method_version": method_version(),
            "n_turbines": self._physics.n_turbines(farm_idx, type_idx),
            "spacing": self._spec.spacing,
            "turbine": turbine_settings(self._physics.types[type_idx]),
            "wake_model": dict(self._spec.wake_model),
            "optimiser": optimiser_settings(self._spec.optimiser),
        }

    def _long(self, farm_idx: int) -> dict[str, Any]:
        return {
            "site": site_settings(self._spec.site),
            "area": self._physics.farms[farm_idx].area.model_dump(exclude_none=True),
            "neighbours": [
                {"x_m": entry.x_m, "y_m": entry.y_m, "turbine": turbine_settings(entry.turbine)}
                for entry in self._spec.neighbours
            ],
        }


def method_version() -> int:
    """Return the method version of this leeward."""
    return METHOD_VERSION


def canonical(value: Any) -> str:
    """JSON with one way to write each value; floats to the last bit."""
    return json.dumps(_unsigned_zeros(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def site_settings(site: SiteSpec) -> dict[str, Any]:
    """Return the figures of the site. Exact conditions do not say so here: they did not before there were bins."""
    settings = site.model_dump(exclude_none=True)
    if site.table is not None:
        settings["table"].pop("speed_bins")  # a campaign with everything written out has the centres
        if site.table.kind == "exact":
            settings["table"].pop("kind")
    return settings


def turbine_settings(turbine: Any) -> dict[str, Any]:
    """Its figures, not its name."""
    return dict(turbine.model_dump(exclude={"name", "type_idx"}))


def optimiser_settings(spec: OptimiserSpec) -> dict[str, Any]:
    """Return those that the recipe looks at; the objective only where it is not AEP, the only one there once was."""
    if spec.is_own:
        return {"recipe": spec.recipe, "recipe_sha256": spec.recipe_sha256}
    names = ["recipe", *RECIPES[spec.recipe].settings]
    names += [name for name in ("time_budget_s", "work", "objective_sha256") if getattr(spec, name) is not None]
    if spec.objective != DEFAULT_OBJECTIVE:
        names.append("objective")
    return {name: getattr(spec, name) for name in names}


def differences(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """Setting by setting, what is new and what was before."""
    ours, theirs = dict(_flat(new)), dict(_flat(old))
    said = []
    for name in dict.fromkeys([*ours, *theirs]):
        if name not in theirs:
            said.append(f"{name}: {_short(ours[name])}, was not there")
        elif name not in ours:
            said.append(f"{name}: not there, was {_short(theirs[name])}")
        elif canonical(ours[name]) != canonical(theirs[name]):
            said.append(f"{name}: {_short(ours[name])}, was {_short(theirs[name])}")
    return said


def _flat(settings: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no mapping, by its dotted name."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            yield from _flat(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, settings


def _short(value: Any) -> str:
    text = repr(value)
    if len(text) <= 70:
        return text
    count = f" ({len(value)} values)" if isinstance(value, list) else ""
    return f"{text[:50]} ...{count} #{digest(value)[:8]}"


def _unsigned_zeros(value: Any) -> Any:
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, Mapping):
        return {key: _unsigned_zeros(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_unsigned_zeros(item) for item in value]
    return value
