"""The settings that a task's numbers depend on, and their digest."""

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from leeward.campaign.physics import Physics
from leeward.campaign.site_spec import SiteSpec
from leeward.campaign.spec import DEFAULT_OBJECTIVE, CampaignSpec, OptimiserSpec
from leeward.layout.registry import RECIPES
from leeward.store import Key

# Method versions: increased whenever the same settings give different numbers.
METHOD_VERSION = 1  # of wake engine and placement, and so of all recipes
REFINED_VERSION = 2  # of recipes that refine, in addition


class Fingerprints:
    """The settings of the tasks of a campaign, by farm and type, and their digests.

    Wind, neighbours and areas are long and shared by many tasks: each is digested once.
    """

    def __init__(self, spec: CampaignSpec, physics: Physics) -> None:
        self._spec = spec
        self._physics = physics
        self._fingerprint = functools.cache(self._new_fingerprint)
        self._area_digest = functools.cache(lambda farm_idx: digest(self._area(farm_idx)))

    def settings(self, farm_idx: int, type_idx: int) -> dict[str, Any]:
        """Return all settings, except the seed, that the numbers of a farm and turbine type depend on."""
        return {**self._short(farm_idx, type_idx), "area": self._area(farm_idx), **self._shared()}

    def of(self, farm_idx: int, type_idx: int, version: int | None = None) -> str:
        """Return the SHA-256 of the settings, in hex digits; digests stand for long settings.

        version: the method version; None for the one of the installed leeward.
        """
        return self._fingerprint(farm_idx, type_idx, self.method_version if version is None else version)

    def _new_fingerprint(self, farm_idx: int, type_idx: int, version: int) -> str:
        digests = {**self._shared_digests, "area": self._area_digest(farm_idx)}
        return digest({**self._short(farm_idx, type_idx), "method_version": version, **digests})

    @property
    def method_version(self) -> int:
        """The method version of the campaign's recipe in the installed leeward."""
        recipe = RECIPES.get(self._spec.optimiser.recipe)  # None: custom
        return max(METHOD_VERSION, REFINED_VERSION) if recipe is not None and recipe.refines else METHOD_VERSION

    def version_of(self, key: Key, fingerprint: str | None, stated: int | None) -> int | None:
        """Return the method version that made a result of this campaign, or None if its settings differ.

        stated: the version in the result; if None, all versions up to the current one are tried. fingerprint: None for
        an adopted result, whose version is the one that computed its AEP.
        """
        if fingerprint is None:
            return self.method_version if stated is None else stated
        versions = range(self.method_version, 0, -1) if stated is None else [stated]
        made = (version for version in versions if self.of(key.farm_idx, key.type_idx, version) == fingerprint)
        return next(made, None)

    def _short(self, farm_idx: int, type_idx: int) -> dict[str, Any]:
        return {
            "method_version": self.method_version,
            "n_turbines": self._physics.n_turbines(farm_idx, type_idx),
            "spacing": self._spec.spacing,
            "turbine": turbine_settings(self._physics.types[type_idx]),
            "wake_model": dict(self._spec.wake_model),
            "optimiser": optimiser_settings(self._spec.optimiser),
        }

    def _area(self, farm_idx: int) -> dict[str, Any]:
        return dict(self._physics.farms[farm_idx].area.model_dump(exclude_none=True))

    def _shared(self) -> dict[str, Any]:
        """Return the settings that all farms and types share."""
        neighbours = [
            {"x_m": entry.x_m, "y_m": entry.y_m, "turbine": turbine_settings(entry.turbine)}
            for entry in self._spec.neighbours
        ]
        return {"site": site_settings(self._spec.site), "neighbours": neighbours}

    @functools.cached_property
    def _shared_digests(self) -> dict[str, str]:
        return {name: digest(value) for name, value in self._shared().items()}


def canonical(value: Any) -> str:
    """Return JSON in which equal values have equal text, with floats exact to the last bit."""
    return json.dumps(_unsigned_zeros(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def site_settings(site: SiteSpec) -> dict[str, Any]:
    """Return the settings of the site that numbers depend on.

    `kind: exact` is left out, because older fingerprints do not contain it.
    """
    settings = site.model_dump(exclude_none=True)
    if site.table is not None:
        settings["table"].pop("speed_bins")  # a complete campaign always has the centres
        if site.table.kind == "exact":
            settings["table"].pop("kind")
    if site.field is not None:
        from leeward.wind.field_data import unused  # imports numpy, which a campaign without a grid does not need

        for name in ("source", "crs", "extrapolate", "covered_degrees"):
            settings["field"].pop(name, None)
        for name in unused(site.field.distances):
            settings["field"]["values"].pop(name, None)
        for packed in settings["field"]["values"].values():
            packed.pop("data")  # its SHA-256 stands for it: compressed bytes may differ with the version of zlib
    return settings


def turbine_settings(turbine: Any) -> dict[str, Any]:
    """Return the settings of a turbine, without its name."""
    return dict(turbine.model_dump(exclude={"name", "type_idx"}))


def optimiser_settings(spec: OptimiserSpec) -> dict[str, Any]:
    """Return the settings that the recipe uses.

    The objective AEP and a CPU as the device are left out, because older fingerprints lack them.
    """
    if spec.is_custom:
        return {"recipe": spec.recipe, "recipe_sha256": spec.recipe_sha256}
    names = ["recipe", *RECIPES[spec.recipe].settings]
    optional = ("time_budget_s", "work", "objective_sha256", "device")
    names += [name for name in optional if getattr(spec, name) is not None]
    if spec.objective != DEFAULT_OBJECTIVE:
        names.append("objective")
    return {name: getattr(spec, name) for name in names}


def differences(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each setting that differs."""
    ours, theirs = dict(_flat(new)), dict(_flat(old))
    found = []
    for name in dict.fromkeys([*ours, *theirs]):
        if name not in theirs:
            found.append(f"{name}: {_shortened(ours[name])}, was not set")
        elif name not in ours:
            found.append(f"{name}: not set, was {_shortened(theirs[name])}")
        elif canonical(ours[name]) != canonical(theirs[name]):
            found.append(f"{name}: {_shortened(ours[name])}, was {_shortened(theirs[name])}")
    return found


def _flat(settings: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that is not a mapping, with its dotted name."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            yield from _flat(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, settings


def _shortened(value: Any) -> str:
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
