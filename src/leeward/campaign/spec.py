"""The shape of a campaign file. docs/campaigns.md describes it key by key."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from leeward.campaign.execution import (
    Count,
    Device,
    Execution,
    Name,
    Positive,
    check_device,
    matched,
    none_as_empty,
)
from leeward.campaign.seeds import parse_seeds
from leeward.campaign.shapes import Exclusion, Pieces, Shape
from leeward.campaign.site_spec import Numbers, Sha256, SiteSpec
from leeward.campaign.validation import Strict, known_name, not_both, one_of, suggestion
from leeward.layout import registry as layout_registry

FORMAT_VERSION = 1
RECIPES = tuple(name for name, recipe in layout_registry.RECIPES.items() if recipe.takes != "start")
DEFAULT_OBJECTIVE = "aep"
LARGEST_INDEX = 999_999_999  # the limit of nine digits in a key

Index = Annotated[int, Field(ge=0, le=LARGEST_INDEX)]


class TurbineBase(Strict):
    """The keys that all turbines share."""

    name: Name | None = None
    type_idx: Index | None = None
    rotor_diameter_m: Positive = Field(description="the rotor's diameter, m")
    hub_height_m: Positive = Field(description="the hub's height above the ground or sea, m")


class GenericTurbine(TurbineBase):
    """The arguments of `Turbine.generic`."""

    rated_power_mw: Positive = Field(description="the rated power, MW")
    turbulence_intensity: float = 0.1
    air_density_kg_m3: Positive = 1.225
    max_power_coefficient: Positive = 0.49
    constant_thrust: Positive = 0.8


class CubicTurbine(TurbineBase):
    """The arguments of `Turbine.cubic`."""

    rated_power_mw: Positive = Field(description="the rated power, MW")
    cut_in_m_s: float = Field(description="the wind speed at which it starts, m/s")
    rated_speed_m_s: float = Field(description="the wind speed at which it reaches its rated power, m/s")
    cut_out_m_s: float = Field(description="the wind speed at which it stops, m/s")
    thrust_coefficient: float = 8.0 / 9.0


class TabulatedTurbine(TurbineBase):
    """The arguments of `Turbine`: power and thrust curves."""

    wind_speeds_m_s: Numbers = Field(description="the wind speeds of the curves, m/s")
    power_mw: Numbers = Field(description="the power at each wind speed, MW")
    thrust_coefficient: Numbers = Field(description="the thrust coefficient at each wind speed")

    @property
    def rated_power_mw(self) -> float:
        return max(self.power_mw)


class TurbineFile(Strict):
    """A turbine in a file: see `leeward.readers.turbine_file`. A CSV file needs diameter and hub height."""

    file: Name
    power_unit: Literal["W", "kW", "MW"] | None = None
    mode: Annotated[int, Field(ge=0)] | None = None
    name: Name | None = None
    type_idx: Index | None = None
    rotor_diameter_m: Positive | None = None
    hub_height_m: Positive | None = None


TURBINE_FORMS: dict[str, type[GenericTurbine] | type[CubicTurbine] | type[TabulatedTurbine]] = {
    "=generic": GenericTurbine,
    "=cubic": CubicTurbine,
    "=tabulated": TabulatedTurbine,
}


def turbine_form(value: Any) -> str:
    """Return the form of a turbine with these keys."""
    keys = value if isinstance(value, Mapping) else vars(value) if isinstance(value, Strict) else {}
    if "file" in keys:
        return "=file"
    if "wind_speeds_m_s" in keys or "power_mw" in keys:
        return "=tabulated"
    return "=cubic" if {"cut_in_m_s", "rated_speed_m_s", "cut_out_m_s"} & set(keys) else "=generic"


FullTurbine = (
    Annotated[GenericTurbine, Tag("=generic")]
    | Annotated[CubicTurbine, Tag("=cubic")]
    | Annotated[TabulatedTurbine, Tag("=tabulated")]
)
TurbineSpec = Annotated[FullTurbine | Annotated[TurbineFile, Tag("=file")], Discriminator(turbine_form)]


class FarmSpec(Shape):
    """A farm: its shape, and settings that differ from those of the campaign."""

    forms: ClassVar[tuple[str, ...]] = (*Shape.forms, "regions", "area")
    name: Name | None = None
    farm_idx: Index | None = None
    n_turbines: Count | None = None
    capacity_mw: Positive | None = None
    regions: Annotated[list[Shape], Field(min_length=1)] | None = None
    exclude: list[Exclusion] = Field(default_factory=list)
    area: Pieces | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        not_both(self, "n_turbines", "capacity_mw")
        return self


class FarmsFile(Strict):
    """All features of a GeoJSON file, or those in `only`."""

    file: Name
    only: Annotated[list[Index], Field(min_length=1)] | None = None
    exclude: list[Exclusion] = Field(default_factory=list)


class BuiltIn(Strict):
    """The name of a built-in set of farms or turbines."""

    built_in: Name


def _is_list(value: Any) -> str:
    if isinstance(value, list):
        return "=list"
    keys = value if isinstance(value, Mapping) else vars(value) if isinstance(value, Strict) else ()
    return "=built-in" if "built_in" in keys else "=file"


def _name_as_section(value: Any) -> Any:
    return {"built_in": value} if isinstance(value, str) else value


class NeighboursSpec(Strict):
    """Existing turbines, all of one type."""

    file: Name | None = None
    x_m: Numbers | None = None
    y_m: Numbers | None = None
    turbine: Annotated[
        Annotated[Annotated[int, Field(ge=0)], Tag("=index")] | Annotated[TurbineSpec, Tag("=turbine")],
        Discriminator(lambda value: "=index" if isinstance(value, int) else "=turbine"),
    ] = Field(description="the type_idx of one of the campaign's types, or a turbine")

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.file is None and (self.x_m is None or self.y_m is None):
            raise ValueError("expected x_m and y_m, or a CSV file with these columns (file)")
        if self.file is not None and not (self.x_m is None and self.y_m is None):
            raise ValueError("has both a file and coordinates; give one or the other, not both")
        return self


class OptimiserSpec(Strict):
    """The recipe that finds each layout, and its settings. device: None for CPUs; the engine gpu sets it."""

    device: Device | None = None
    recipe: Name = RECIPES[0]
    objective: Name = DEFAULT_OBJECTIVE
    effort: Literal["fast", "normal", "thorough"] = "normal"
    time_budget_s: Positive | None = None
    work: Count | None = None
    grid_size: Annotated[int, Field(ge=2, le=2000)] = 18
    random_pct: Annotated[float, Field(ge=0, le=100)] = 30.0
    recipe_sha256: Sha256 | None = None
    objective_sha256: Sha256 | None = None

    @field_validator("recipe")
    @classmethod
    def _known_recipe(cls, recipe: str) -> str:
        if recipe in ("start", "start+refine"):
            raise ValueError(
                f"is {recipe!r}, which needs an initial layout and cannot be used in a campaign; "
                f"{suggestion('', RECIPES)}"
            )
        return known_name(recipe, RECIPES, "module:function", "my_recipes:in_rows")

    @field_validator("objective")
    @classmethod
    def _known_objective(cls, objective: str) -> str:
        return known_name(objective, tuple(layout_registry.OBJECTIVES), "module:Class", "my_objectives:Profit")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        not_both(self, "time_budget_s", "work")
        if self.is_custom and (self.time_budget_s is not None or self.work is not None):
            raise ValueError(f"has time_budget_s or work, which the custom recipe {self.recipe} cannot use; remove it")
        if self.is_custom and self.objective != DEFAULT_OBJECTIVE:
            raise ValueError(f"has an objective, which the custom recipe {self.recipe} cannot use; remove it")
        for name in ("recipe", "objective"):
            value = getattr(self, name)
            if getattr(self, f"{name}_sha256") is not None and ":" not in value:
                raise ValueError(f"has {name}_sha256, which does not apply to the built-in {name} {value}; remove it")
        return self

    @property
    def is_custom(self) -> bool:
        """True if the recipe is a custom function."""
        return ":" in self.recipe

    @property
    def reproducible(self) -> bool:
        """True if a task always gives the same layout. A time budget makes it False."""
        return self.time_budget_s is None


def wake_model_section(value: Any) -> Any:
    """Return a wake model, given by its name alone or with options, as a dict."""
    value = {"name": value} if isinstance(value, str) else value
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise ValueError(f"is {value!r:.60}; expected a name, or {{name: jensen, expansion: 0.05}}")
    if ":" in value["name"]:
        known_name(value["name"], (), "module:Class", "my_wakes:Wide")
    for option, setting in value.items():
        if isinstance(setting, bool) or not isinstance(setting, int | float | str):
            raise ValueError(f"has {option} = {setting!r:.60}; expected a number or text")
    return value


class CampaignSpec(Strict):
    """A campaign file."""

    format_version: int = FORMAT_VERSION
    frozen: bool = False  # True if `Campaign.frozen_text` wrote this: it refers to no file
    name: Name | None = None
    crs: Name | None = None
    site: Annotated[SiteSpec, BeforeValidator(_name_as_section)] = Field(
        description="the wind: a file, weibull, table or time_series"
    )
    farms: Annotated[
        Annotated[
            Annotated[list[FarmSpec], Field(min_length=1), Tag("=list")]
            | Annotated[FarmsFile, Tag("=file")]
            | Annotated[BuiltIn, Tag("=built-in")],
            Discriminator(_is_list),
        ],
        BeforeValidator(_name_as_section),
    ] = Field(description="a list of farms, or a GeoJSON file of them")
    turbines: Annotated[
        Annotated[
            Annotated[list[TurbineSpec], Field(min_length=1), Tag("=list")] | Annotated[BuiltIn, Tag("=built-in")],
            Discriminator(lambda value: "=list" if isinstance(value, list) else "=built-in"),
        ],
        BeforeValidator(_name_as_section),
    ] = Field(description="a list of turbine types")
    turbines_per_farm: Count | None = None
    capacity_mw: Positive | None = None
    spacing_diameters: Positive | None = None
    spacing_m: Positive | None = None
    neighbours: list[NeighboursSpec] = Field(default_factory=list)
    wake_model: Annotated[dict[str, Any], BeforeValidator(wake_model_section)] = Field(default={"name": "nygaard_2022"})
    seeds: Annotated[Any, BeforeValidator(parse_seeds)] = range(1)
    optimiser: Annotated[OptimiserSpec, BeforeValidator(none_as_empty)] = OptimiserSpec()
    execution: Annotated[Execution, BeforeValidator(none_as_empty)] = Execution()

    @field_validator("format_version")
    @classmethod
    def _readable(cls, version: int) -> int:
        if version != FORMAT_VERSION:
            raise ValueError(f"is {version}; expected {FORMAT_VERSION}: this file is for another version of leeward")
        return version

    @model_validator(mode="after")
    def _fits(self) -> Self:
        one_of(self, ("spacing_diameters", "spacing_m"), "the minimum distance between turbines")
        not_both(self, "turbines_per_farm", "capacity_mw")
        check_device(self.execution, self.optimiser.device)
        return self

    @property
    def spacing(self) -> dict[str, float]:
        """The minimum distance between two turbines, as a dict with the key that was given."""
        if self.spacing_m is not None:
            return {"spacing_m": self.spacing_m}
        return {"spacing_diameters": float(self.spacing_diameters or 0.0)}

    def with_table_kind(self) -> Self:
        """Return the campaign with the `kind` of its table set.

        A frozen table without a kind comes from an older version, in which all tables were exact.
        """
        table = self.site.table
        if not self.frozen or table is None or table.kind is not None:
            return self
        exact = table.model_copy(update={"kind": "exact"})
        return self.model_copy(update={"site": self.site.model_copy(update={"table": exact})})

    def with_device(self) -> Self:
        """Return the campaign with the device of its engine; see `matched`."""
        execution, device = matched(self.execution, self.optimiser.device)
        optimiser = self.optimiser.model_copy(update={"device": device})
        return self.model_copy(update={"execution": execution, "optimiser": optimiser})

    @property
    def is_complete(self) -> bool:
        """True if no file has to be read and no name has to be looked up."""
        farms, types = self.farms, self.turbines
        if not (self.frozen and isinstance(farms, list) and isinstance(types, list) and self.name):
            return False
        return (
            all(farm.area is not None and farm.farm_idx is not None and not farm.exclude for farm in farms)
            and not any(isinstance(turbine, TurbineFile) or turbine.type_idx is None for turbine in types)
            and any(form is not None for form in (self.site.weibull, self.site.table, self.site.field))
            and all(entry.file is None and isinstance(entry.turbine, TurbineBase) for entry in self.neighbours)
        )

    @property
    def farm_list(self) -> list[FarmSpec]:
        """The farms of a complete campaign."""
        return self.farms if isinstance(self.farms, list) else []

    @property
    def type_list(self) -> list[FullTurbine]:
        """The turbine types of a complete campaign."""
        turbines = self.turbines if isinstance(self.turbines, list) else []
        return [turbine for turbine in turbines if not isinstance(turbine, TurbineFile)]
