"""The wind, turbines and areas of a campaign as objects."""

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from leeward.campaign.custom import custom_code, import_custom
from leeward.campaign.shapes import area_from, path_in
from leeward.campaign.site_spec import ShearSpec, SiteSpec, TimeSeriesSpec
from leeward.campaign.spec import (
    CampaignSpec,
    FarmSpec,
    FullTurbine,
    NeighboursSpec,
)
from leeward.deprecation import Renamed
from leeward.errors import InputError
from leeward.readers.document import Document, Place
from leeward.readers.tables import numbers_in

if TYPE_CHECKING:
    from leeward.layout import Area, LayoutProblem
    from leeward.wind import Neighbours, Shear, Site, Turbine, WakeModel, WindFarm

MOST_TURBINES = 100_000  # most turbines in one farm; a stored layout cannot hold more
PROBLEMS_KEPT = 64
SERIES: tuple[Literal["wind_direction_deg", "wind_speed_m_s", "turbulence_intensity", "weight"], ...] = (
    "wind_direction_deg",
    "wind_speed_m_s",
    "turbulence_intensity",
    "weight",
)


def farm_place(document: Document, position: int) -> Place:
    """Return the place of a farm in a campaign file. position: its index among all farms."""
    farms = document.data["farms"]
    if isinstance(farms, list):
        return ("farms", position)
    return ("farms", "file") if isinstance(farms, Mapping) and "file" in farms else ("farms",)


class Numbered(dict[int, Any]):
    """The farms or turbine types of a campaign, by number. An unknown number raises InputError."""

    def __init__(self, key: str, campaign: str, entries: Mapping[int, Any]) -> None:
        super().__init__(entries)
        self._key, self._campaign = key, campaign

    def __missing__(self, number: object) -> Any:
        known = ", ".join(map(str, self))
        raise InputError(f"{self._key} is {number!r}; expected a number of the campaign {self._campaign}: {known}")


class Physics:
    """The farms, turbine types and wind of a campaign."""

    diameter = Renamed("rotor_diameter_m")

    def __init__(self, spec: CampaignSpec, document: Document, import_folders: Sequence[str]) -> None:
        name = spec.name or "campaign"
        self.farms = Numbered("farm_idx", name, {farm.farm_idx or 0: farm for farm in spec.farm_list})
        self.types = Numbered("type_idx", name, {turbine.type_idx or 0: turbine for turbine in spec.type_list})
        self.spacing = spec.spacing  # minimum distance between two turbines, under the key of the campaign file
        self._spec, self._document, self._import_folders = spec, document, import_folders
        self.wake_model_is_known = ":" not in spec.wake_model["name"]  # custom code must be imported first
        self._custom_model: WakeModel | None = None
        self._turbines: dict[int, Turbine] = {}
        self._problem = functools.lru_cache(PROBLEMS_KEPT)(self._located_problem)

    def n_turbines(self, farm_idx: int, type_idx: int) -> int:
        return turbine_count(self._spec, self.farms[farm_idx], self.types[type_idx])

    def count(self, farm_idx: int, turbine: "Turbine") -> int:
        """Return the number of turbines of a farm for any turbine."""
        return turbine_count(self._spec, self.farms[farm_idx], turbine)

    def capacity_wanted_mw(self, farm_idx: int) -> float | None:
        """Return the requested capacity (MW), or None if the number of turbines was given."""
        return capacity_wanted(self._spec, self.farms[farm_idx])

    def installed_mw(self, farm_idx: int, type_idx: int) -> float:
        """Return the installed power of a farm (MW): number of turbines × rated power."""
        return self.n_turbines(farm_idx, type_idx) * self.rated_power_mw(type_idx)

    def rotor_diameter_m(self, type_idx: int) -> float:
        """Return the rotor diameter of a turbine type, m."""
        return float(self.types[type_idx].rotor_diameter_m)

    def hub_height_m(self, type_idx: int) -> float:
        """Return the hub height of a turbine type, m."""
        return float(self.types[type_idx].hub_height_m)

    def rated_power_mw(self, type_idx: int) -> float:
        """Return the rated power as given, MW; a generic turbine's curve ends slightly below it."""
        return float(self.types[type_idx].rated_power_mw)

    def turbine(self, type_idx: int) -> "Turbine":
        """Return a turbine type with its curves."""
        if type_idx not in self._turbines:
            self._turbines[type_idx] = turbine_of(self.types[type_idx])
        return self._turbines[type_idx]

    def area(self, farm_idx: int) -> "Area":
        """Return the area of a farm."""
        farm = self.farms[farm_idx]
        if farm.area is None:
            raise TypeError("the farm has no area")
        return area_from(farm.area, self._spec.crs)

    @functools.cached_property
    def site(self) -> "Site":
        """The wind of all farms."""
        with self._document.at("site"):
            return site_of(self._spec.site)

    def import_wake_model(self) -> None:
        """Import the wake model if it is custom code. Call this before computing yields."""
        from leeward.wind.wake_models import custom_model

        options = {key: value for key, value in self._spec.wake_model.items() if key not in ("name", "sha256")}
        for code in custom_code(self._spec):
            if code.what == "wake model" and self._custom_model is None:
                with self._document.at(*code.place):
                    self._custom_model = custom_model(import_custom(code, self._import_folders), options)
                self.wake_model_is_known = True

    def wind_farm(
        self,
        type_idx: int,
        *,
        site: "Site | None" = None,
        turbine: "Turbine | None" = None,
        wake_model: "str | WakeModel | None" = None,
    ) -> "WindFarm":
        """Return the wind farm of a turbine type, with neighbours. Arguments that are given override the campaign."""
        from leeward.wind import WindFarm

        return WindFarm(
            self.site if site is None else site,
            self.turbine(type_idx) if turbine is None else turbine,
            self.wake_model if wake_model is None else wake_model,
            neighbours=self._neighbours,
            threads=1,
        )

    def problem(self, farm_idx: int, type_idx: int) -> "LayoutProblem":
        """Return the layout problem of a farm and turbine type; recent ones are cached."""
        return self._problem(farm_idx, type_idx, True)

    def constraints(self, farm_idx: int, type_idx: int) -> "LayoutProblem":
        """Return a layout problem for checks of area and distances only. It needs no custom wake model."""
        return self._problem(farm_idx, type_idx, self.wake_model_is_known)

    def check(self) -> None:
        """Build the problem of every farm and turbine type; raise one InputError that lists the impossible ones."""
        found: list[tuple[Place, str]] = []
        for position, farm_idx in enumerate(self.farms):
            for type_idx in self.types:
                try:
                    self._new_problem(farm_idx, type_idx, True)
                except InputError as error:
                    place = farm_place(self._document, position)
                    found.append((place, f"farm {farm_idx}, type {type_idx}: {error}"))
        if found:
            raise self._document.errors(found)

    def _located_problem(self, farm_idx: int, type_idx: int, with_wakes: bool) -> "LayoutProblem":
        _ = self.farms[farm_idx]  # raises InputError for an unknown farm, such as that of a damaged file
        with self._document.at(*farm_place(self._document, list(self.farms).index(farm_idx))):
            return self._new_problem(farm_idx, type_idx, with_wakes)

    def _new_problem(self, farm_idx: int, type_idx: int, with_wakes: bool) -> "LayoutProblem":
        from leeward.layout import LayoutProblem

        farm = self.wind_farm(type_idx, wake_model=None if with_wakes else "no_wake")
        return LayoutProblem(farm, self.area(farm_idx), self.n_turbines(farm_idx, type_idx), **self.spacing)

    @property
    def wake_model(self) -> "WakeModel":
        """Return the wake model. Raise InputError if it is custom code that was not imported."""
        from leeward.wind.wake_models import wake_model

        spec = self._spec.wake_model
        if self._custom_model is not None:
            return self._custom_model
        with self._document.at("wake_model"):
            if ":" in spec["name"]:
                raise InputError(
                    f"is {spec['name']}, custom code that only `leeward run` and its workers import; use a built-in "
                    "wake model here (or call Campaign.import_custom() first, in Python)"
                )
            return type(wake_model(spec["name"]))(**{key: value for key, value in spec.items() if key != "name"})

    @functools.cached_property
    def _neighbours(self) -> "Neighbours | None":
        with self._document.at("neighbours"):
            return neighbours_of(self._spec.neighbours)


def turbine_count(spec: CampaignSpec, farm: FarmSpec, turbine: "FullTurbine | Turbine") -> int:
    """Return the number of turbines: the one given, or capacity / rated power, rounded down."""
    capacity = capacity_wanted(spec, farm)
    if capacity is None:
        count = farm.n_turbines or spec.turbines_per_farm
        if count is None:
            raise InputError("is missing, and so is capacity_mw; give one of the two to set the number of turbines")
    else:
        # despite rounding errors, 3.3 MW must give three turbines of 1.1 MW
        count = math.floor(capacity / turbine.rated_power_mw + 1e-9)
        if count < 1:
            raise InputError(
                f"is {capacity:g}, less than the {turbine.rated_power_mw:g} MW of one turbine ({turbine.name}); "
                "expected at least the capacity of one turbine"
            )
    if count > MOST_TURBINES:
        raise InputError(f"is too large: {count} turbines in one farm; expected at most {MOST_TURBINES}")
    return count


def capacity_wanted(spec: CampaignSpec, farm: FarmSpec) -> float | None:
    """Return the requested capacity (MW), or None if the number of turbines was given."""
    if farm.n_turbines is not None or (farm.capacity_mw is None and spec.turbines_per_farm is not None):
        return None
    return spec.capacity_mw if farm.capacity_mw is None else farm.capacity_mw


def site_of(spec: SiteSpec, folder: Path | None = None) -> "Site":
    """Return the site with these values."""
    from leeward.wind import Site

    if spec.field is not None:
        return Site.from_settings({"field": spec.field.model_dump()})
    shear = shear_of(spec.shear)
    form = spec.weibull or spec.table
    settings = None if form is None else form.model_dump()
    if spec.time_series is not None:
        settings = _series(spec.time_series, folder)
    if settings is not None:
        site = Site.from_settings(settings)
        return site if shear is None else site.with_shear(shear)
    return Site.from_file(
        path_in(folder, str(spec.file)),
        directions=spec.wind_directions_deg,
        speeds=spec.wind_speeds_m_s,
        interpolation=spec.interpolation,
        turbulence_intensity=spec.turbulence_intensity,
        shear=shear,
        distances=spec.distances or "straight",
        extrapolate=bool(spec.extrapolate),
        crs=spec.crs,
    )


def shear_of(spec: ShearSpec | None) -> "Shear | None":
    """Return the shear with these values."""
    from leeward.wind import Shear

    if spec is None:
        return None
    if spec.exponent is not None:
        return Shear.power(spec.exponent, spec.reference_height_m)
    return Shear.logarithmic(spec.roughness_length_m or (), spec.reference_height_m)


def _series(spec: TimeSeriesSpec, folder: Path | None) -> dict[str, Any]:
    """Return the series under the keys of the campaign file, without the name of a file."""
    given = spec.model_dump(exclude={"file", "columns"})
    if spec.file is None:
        return given
    path = path_in(folder, spec.file)
    names = {ours: spec.columns.get(ours, ours) for ours in SERIES}
    needed = [names[ours] for ours in SERIES if ours in spec.columns or ours in SERIES[:2]]
    table = numbers_in(path, "a time series of wind", needed, [names[ours] for ours in SERIES])
    if spec.turbulence_intensity is not None and names["turbulence_intensity"] in table:
        column = names["turbulence_intensity"]
        raise InputError(f"{path} has a column {column}, and the campaign sets turbulence_intensity too; remove one")
    return given | {ours: table[theirs] for ours, theirs in names.items() if theirs in table}


def turbine_of(spec: Any) -> "Turbine":
    """Return the turbine with these values."""
    from leeward.wind import Turbine

    return Turbine.from_settings({**spec.model_dump(exclude={"type_idx"}), "name": spec.name or "turbine"})


def neighbours_of(specs: list[NeighboursSpec]) -> "Neighbours | None":
    """Return all existing turbines together, or None."""
    from leeward.wind import Neighbours

    if not specs:
        return None
    x = [value for spec in specs for value in spec.x_m or []]
    y = [value for spec in specs for value in spec.y_m or []]
    turbines = [turbine for spec in specs for turbine in [turbine_of(spec.turbine)] * len(spec.x_m or [])]
    return Neighbours(x, y, turbines)
