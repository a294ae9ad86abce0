"""The wind, turbines and areas of a campaign as objects."""

import functools
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leeward.campaign.custom import custom_code, import_custom
from leeward.campaign.document import Place
from leeward.campaign.figures import capacity_wanted, neighbours_of, site_of, turbine_count, turbine_of
from leeward.campaign.resolve import Source
from leeward.campaign.shapes import area_from
from leeward.campaign.spec import CampaignSpec
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.layout import Area, LayoutProblem
    from leeward.wind import Neighbours, Site, Turbine, WakeModel, WindFarm

PROBLEMS_KEPT = 64


class Numbered(dict[int, Any]):
    """The farms or turbine types of a campaign, by number. An unknown number raises InputError."""

    def __init__(self, key: str, campaign: str, entries: Mapping[int, Any]) -> None:
        super().__init__(entries)
        self._key, self._campaign = key, campaign

    def __missing__(self, number: object) -> Any:
        known = ", ".join(map(str, self))
        raise InputError(f"{self._key} is {number!r}; expected one of {self._campaign}: {known}")


class Physics:
    """The farms, turbine types and wind of a campaign. places: of the farms in the campaign file."""

    def __init__(
        self, spec: CampaignSpec, source: Source, places: Mapping[int, Place], import_folders: Sequence[str]
    ) -> None:
        name = spec.name or "campaign"
        self.farms = Numbered("farm_idx", name, {farm.farm_idx or 0: farm for farm in spec.farm_list})
        self.types = Numbered("type_idx", name, {turbine.type_idx or 0: turbine for turbine in spec.type_list})
        self.places = places
        self.spacing = spec.spacing  # the minimum distance between two turbines, by its key
        self._spec, self._source, self._import_folders = spec, source, import_folders
        self.wake_model_is_known = ":" not in spec.wake_model["name"]  # custom code has to be imported first
        self._custom_model: WakeModel | None = None
        self._turbines: dict[int, Turbine] = {}
        self._problems: OrderedDict[tuple[int, int, bool], LayoutProblem] = OrderedDict()

    def n_turbines(self, farm_idx: int, type_idx: int) -> int:
        return turbine_count(self._spec, self.farms[farm_idx], self.types[type_idx])

    def capacity_wanted_mw(self, farm_idx: int) -> float | None:
        """Return the requested capacity (MW), or None if the number of turbines was given."""
        return capacity_wanted(self._spec, self.farms[farm_idx])

    def installed_mw(self, farm_idx: int, type_idx: int) -> float:
        """Return the installed power of a farm (MW): number of turbines × rated power."""
        return self.n_turbines(farm_idx, type_idx) * self.rated_power_mw(type_idx)

    def diameter(self, type_idx: int) -> float:
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
        with self._source.at("site"):
            return site_of(self._spec.site)

    def import_wake_model(self) -> None:
        """Import the wake model if it is custom code, which is needed to compute with it."""
        from leeward.wind.wake_models import custom_model

        options = {key: value for key, value in self._spec.wake_model.items() if key not in ("name", "sha256")}
        for code in custom_code(self._spec):
            if code.what == "wake model" and self._custom_model is None:
                with self._source.at(*code.place):
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
        """Return the wind farm of a turbine type, with neighbours. Arguments replace settings of the campaign."""
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
        return self._kept_problem(farm_idx, type_idx, True)

    def constraints(self, farm_idx: int, type_idx: int) -> "LayoutProblem":
        """Return a problem to check area and distances only, which needs no custom wake model."""
        return self._kept_problem(farm_idx, type_idx, self.wake_model_is_known)

    def check(self) -> None:
        """Make the problem of every farm and turbine type, and raise one InputError that lists the impossible ones."""
        found: list[tuple[Place, str]] = []
        for farm_idx in self.farms:
            for type_idx in self.types:
                try:
                    self._new_problem(farm_idx, type_idx, True)
                except InputError as error:
                    message = f"farm {farm_idx}, type {type_idx}: {error}"
                    found.append((self.places.get(farm_idx, ("farms",)), message))
        if found:
            raise self._source.document.errors(found)

    def _kept_problem(self, farm_idx: int, type_idx: int, with_wakes: bool) -> "LayoutProblem":
        which = farm_idx, type_idx, with_wakes
        if which not in self._problems:
            with self._source.at(*self.places.get(farm_idx, ("farms",))):
                self._problems[which] = self._new_problem(*which)
            if len(self._problems) > PROBLEMS_KEPT:
                self._problems.popitem(last=False)
        self._problems.move_to_end(which)
        return self._problems[which]

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
        with self._source.at("wake_model"):
            if ":" in spec["name"]:
                raise InputError(
                    f"is {spec['name']}, custom code that only `leeward run` and its workers import; expected a "
                    "built-in wake model for this (in Python, Campaign.import_custom() imports it)"
                )
            return type(wake_model(spec["name"]))(**{key: value for key, value in spec.items() if key != "name"})

    @functools.cached_property
    def _neighbours(self) -> "Neighbours | None":
        with self._source.at("neighbours"):
            return neighbours_of(self._spec.neighbours)
