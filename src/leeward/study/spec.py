"""The shape of a study file. docs/studies.md describes it key by key."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from leeward.campaign.execution import (
    Count,
    Device,
    Execution,
    Name,
    Positive,
    check_device,
    none_as_empty,
)
from leeward.campaign.site_spec import Numbers, SiteSpec
from leeward.campaign.spec import Index, wake_model_section
from leeward.campaign.validation import Strict, not_both, one_of
from leeward.store import CASES

KEPT = ("aep", "windows", "farm_power", "turbine_power")
CALENDAR = ("months", "years")  # a window for each month or year of the series
LONGEST_NAME = 100
NAME = r"[^:,\n\r\x00]+"
LONGEST_STEP_H = 8784.0  # a leap year
LARGEST = 1_000_000_000  # of the numbers of a distribution

ShortName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=f"^{NAME}$")]
Step = Annotated[int, Field(ge=0)]
Limited = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]


def _as_section(key: str) -> BeforeValidator:
    """Return a validator that takes a text as the value of this key."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


class LayoutsSpec(Strict):
    """A file of layouts. campaign: the source of turbine types, for a file that does not hold its campaign."""

    file: Name
    campaign: Name | None = None


class TargetsSpec(Strict):
    """A selection of layouts of one file, such as the best of each farm and turbine type."""

    layouts: ShortName | None = None
    only: Name | None = None
    best: Literal["of each farm and type", "of each farm", "of all"] | None = None


class ColumnSpec(Strict):
    """A column of a table. Each value is looked up in `map`, if given; then `add` is added."""

    column: Annotated[str, Field(max_length=200)]
    add: int = 0
    map: dict[int, int] | None = None


def _column(value: Any) -> Any:
    return {"column": value} if isinstance(value, str) else value


Column = Annotated[ColumnSpec, BeforeValidator(_column)]


class WindSpec(Strict):
    """The wind: a site as in a campaign, or a time series in a file or in lists.

    hours_per_step, start: of a time series, also of one on a grid that `site` names.
    columns: for a file, the columns of time, wind_direction_deg, wind_speed_m_s and turbulence_intensity.
    """

    site: Annotated[SiteSpec, _as_section("built_in")] | None = None
    file: Name | None = None
    columns: dict[Literal["time", "wind_direction_deg", "wind_speed_m_s", "turbulence_intensity"], str] = Field(
        default_factory=dict
    )
    wind_direction_deg: Numbers | None = None
    wind_speed_m_s: Numbers | None = None
    turbulence_intensity: Annotated[float, Field(gt=0, lt=1)] | None = None
    hours_per_step: Annotated[float, Field(gt=0, le=LONGEST_STEP_H)] | None = None
    start: Name | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        one_of(self, ("site", "file", "wind_speed_m_s"), "the wind")
        if self.wind_speed_m_s is not None and self.wind_direction_deg is None:
            raise ValueError("has wind_speed_m_s without wind_direction_deg; give both")
        if self.columns and self.file is None:
            raise ValueError("has columns without a file; remove them, or name the file")
        if self.site is not None and self.turbulence_intensity:
            raise ValueError("has a site, so turbulence_intensity does not apply; move it into the site")
        if self.wind_speed_m_s is None and self.wind_direction_deg is not None:
            raise ValueError("has wind_direction_deg without wind_speed_m_s; give both, or neither")
        if self.site is None and self.hours_per_step is None:
            raise ValueError("has no hours_per_step; give the length of a step in hours, such as 24 for daily means")
        not_both(self, "file", "start")
        return self


class NeighbourSpec(Strict):
    """A neighbour of a scenario: a layout of a file, or positions with a turbine type, and when it stands."""

    layouts: ShortName | None = None
    farm: Index | None = None
    type: Index | None = None
    seed: Step | None = None
    x_m: Numbers | None = None
    y_m: Numbers | None = None
    turbine: Index | None = None
    from_step: Step | None = None
    from_date: Name | None = None
    until_step: Step | None = None
    until_date: Name | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        by_key = (self.farm, self.type, self.seed)
        by_place = (self.x_m, self.y_m, self.turbine)
        if not ((None not in by_key and by_place == (None,) * 3) or (None not in by_place and by_key == (None,) * 3)):
            raise ValueError("expected farm, type and seed of a layout, or x_m, y_m and turbine (a type number)")
        not_both(self, "from_step", "from_date")
        not_both(self, "until_step", "until_date")
        if self.x_m is not None and self.layouts is not None:
            raise ValueError("has x_m and y_m, so layouts does not apply; remove it")
        return self


class ScenarioSpec(Strict):
    """A scenario that is written in the study file."""

    name: ShortName | None = None
    weight: Annotated[float, Field(ge=0)] = 1.0
    neighbours: list[NeighbourSpec] = Field(default_factory=list)
    turbulence_intensity: Annotated[float, Field(gt=0, lt=1)] | None = None
    wind: ShortName | None = None
    wake_model: dict[str, float] = Field(default_factory=dict)


class ScenarioFile(Strict):
    """A table with a row for each scenario and neighbour. columns: names of its columns, if they differ."""

    file: Name
    columns: dict[str, Column] = Field(default_factory=dict)
    only: Annotated[str, Field(pattern=r"^\d*:\d*$")] | None = None


class Spread(Strict):
    """A distribution of whole numbers: uniform or normal between low and high, or a choice with probabilities."""

    low: Limited | None = None
    high: Limited | None = None
    mean: float | None = None
    standard_deviation: Positive | None = None
    choices: Annotated[list[Limited], Field(min_length=1)] | None = None
    probabilities: list[Annotated[float, Field(ge=0)]] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.choices is None) == (self.low is None or self.high is None):
            raise ValueError("expected low and high, or choices")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"has low {self.low} above high {self.high}")
        if (self.mean is None) != (self.standard_deviation is None):
            raise ValueError("has only one of mean and standard_deviation; give both or none")
        if self.choices is not None and (self.low, self.high, self.mean) != (None, None, None):
            raise ValueError("has choices together with low, high or mean; give one or the other, not both")
        shares = self.probabilities
        if shares is not None and (len(shares) != len(self.choices or ()) or abs(sum(shares) - 1.0) > 1e-9):
            raise ValueError("has probabilities that do not fit: expected one for each choice, with the sum 1")
        return self


def _spread(value: Any) -> Any:
    if isinstance(value, list):
        return {"choices": value}
    return {"choices": [value]} if isinstance(value, int) and not isinstance(value, bool) else value


Drawn = Annotated[Spread, BeforeValidator(_spread)]


class DrawSpec(Strict):
    """Scenarios drawn at random: for each of the farms its type, seed and first step.

    probability: that a farm is built at all. The n-th scenario does not depend on the number of scenarios.
    """

    draw: Count
    random_seed: Step = 0
    layouts: ShortName | None = None
    farms: Annotated[list[Index], Field(min_length=1)]
    type: Drawn
    seed: Drawn
    from_step: Drawn = Spread(choices=[0])
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0


def _scenario_form(value: Any) -> str:
    if isinstance(value, list):
        return "=list"
    keys = value if isinstance(value, Mapping) else vars(value) if isinstance(value, Strict) else ()
    return "=draw" if "draw" in keys else "=file"


def _window(value: Any) -> Any:
    """Return the steps of a window, such as 0:360, or one of the words of CALENDAR."""
    if value == "all":
        return ":"
    if value in CALENDAR:
        return value
    parts = str(value).split(":")
    if not (
        isinstance(value, str)
        and len(parts) == 2
        and all(part == "" or (part.isascii() and part.isdigit()) for part in parts)
    ):
        raise ValueError(f"is {value!r:.60}; expected steps such as '0:360', all, months or years")
    return value


class StudySpec(Strict):
    """A study file."""

    format_version: Literal[1] = 1
    name: Name | None = None
    layouts: Annotated[dict[ShortName, Annotated[LayoutsSpec, _as_section("file")]], Field(min_length=1)] = Field(
        description="files of layouts, each with a short name"
    )
    targets: Annotated[
        list[
            Annotated[
                Annotated[Name, Tag("=name")] | Annotated[TargetsSpec, Tag("=section")],
                Discriminator(lambda value: "=name" if isinstance(value, str) else "=section"),
            ]
        ],
        Field(min_length=1),
        BeforeValidator(lambda value: value if isinstance(value, list) else [value]),
    ] = Field(description="the layouts to evaluate, such as alone:farm0_t5_s0")
    wind: WindSpec | None = None
    winds: Annotated[dict[ShortName, WindSpec], Field(min_length=1)] | None = None
    wake_model: Annotated[dict[str, Any], BeforeValidator(wake_model_section)] | None = None
    scenarios: Annotated[
        Annotated[list[ScenarioSpec], Field(min_length=1), Tag("=list")]
        | Annotated[ScenarioFile, Tag("=file")]
        | Annotated[DrawSpec, Tag("=draw")],
        Discriminator(_scenario_form),
    ] = Field(description="a list of scenarios, a table (file), or draw")
    cases: Annotated[list[Literal[CASES]], Field(min_length=1)] = Field(  # type: ignore[valid-type]
        default=["all", "external"]
    )
    keep: list[Literal[KEPT]] = Field(default=["aep", "windows"])  # type: ignore[valid-type]
    windows: dict[ShortName, Annotated[str, BeforeValidator(_window)]] = Field(default={"all": ":"})
    device: Device | None = None  # None for CPUs; the engine gpu sets it
    execution: Annotated[Execution, BeforeValidator(none_as_empty)] = Execution()

    @field_validator("cases")
    @classmethod
    def _in_order(cls, cases: list[str]) -> list[str]:
        return [case for case in CASES if case in cases]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        not_both(self, "wind", "winds")
        check_device(self.execution, self.device)
        return self
