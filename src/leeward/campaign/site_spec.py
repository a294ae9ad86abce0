"""The shape of the section `site` of a campaign file."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from leeward.campaign.execution import Name, Positive
from leeward.campaign.validation import Strict, one_of

Numbers = Annotated[list[float], Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


def _as_floats(value: Any, depth: int = 2) -> Any:
    """Return a number, a list of numbers, or a list of such lists, as floats."""
    if isinstance(value, list) and value and depth:
        return [_as_floats(item, depth - 1) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"contains {value!r:.60}; expected a number, or a list of numbers")
    if not abs(value) < float("inf"):
        raise ValueError(f"contains {value}; expected finite numbers")
    return float(value)


FloatOrLists = Annotated[Any, BeforeValidator(lambda value: _as_floats(value))]


class WeibullSpec(Strict):
    """Weibull distributions of equal sectors, the first one centred on north."""

    sector_frequency: Numbers = Field(description="the frequency of each sector, a fraction")
    weibull_a_m_s: Numbers = Field(description="the Weibull scale of each sector, m/s")
    weibull_k: Numbers = Field(description="the Weibull shape of each sector")
    turbulence_intensity: FloatOrLists = Field(description="a fraction, such as 0.06, or one for each sector")
    wind_directions_deg: Numbers | None = None
    wind_speeds_m_s: Numbers | None = None
    interpolation: Literal["nearest", "linear"] = "nearest"


class TableSpec(Strict):
    """A wind rose: probabilities by direction and speed."""

    wind_directions_deg: Numbers = Field(description="the directions, degrees")
    wind_speeds_m_s: Numbers = Field(description="the wind speeds, m/s")
    probability: FloatOrLists = Field(description="a row of probabilities, one for each speed, for each direction")
    turbulence_intensity: FloatOrLists = 0.1
    kind: Literal["bins", "exact"] | None = None
    speed_bins: Literal["centres", "edges"] = "centres"


class TimeSeriesSpec(Strict):
    """A time series of wind conditions, given here or in a CSV, NetCDF or Parquet file."""

    file: Name | None = None
    columns: dict[Literal["wind_direction_deg", "wind_speed_m_s", "turbulence_intensity", "weight"], Name] = Field(
        default_factory=dict, description="names of columns in the file"
    )
    wind_direction_deg: Numbers | None = None
    wind_speed_m_s: Numbers | None = None
    turbulence_intensity: FloatOrLists | None = None
    weight: Numbers | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        series = (self.wind_direction_deg, self.wind_speed_m_s)
        if self.file is None and None in series:
            raise ValueError("expected wind_direction_deg and wind_speed_m_s, or a file with these columns (file)")
        if self.file is None and self.columns:
            raise ValueError("has columns, which apply only to a file; remove them")
        if self.file is not None and (series != (None, None) or self.weight is not None):
            raise ValueError("has both a file and values; give one or the other, not both")
        return self


class ShearSpec(Strict):
    """The increase of the wind speed with height: a power law or a logarithmic law."""

    exponent: FloatOrLists | None = None
    roughness_length_m: FloatOrLists | None = None
    reference_height_m: Positive = Field(description="the height at which the wind speeds apply, m")

    @model_validator(mode="after")
    def _one_law(self) -> Self:
        one_of(self, ("exponent", "roughness_length_m"), "the law of the shear")
        return self


class PackedSpec(Strict):
    """An array, compressed."""

    shape: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=4, max_length=4)]
    sha256: Sha256
    data: str


class PackedShear(Strict):
    """The shear of a field."""

    kind: Literal["power", "logarithmic"]
    values: Numbers
    reference_height_m: Positive


class GridSpec(Strict):
    """Wind that varies over the site, as `leeward.wind.field_settings.field_settings` writes it."""

    source: str
    kind: Literal["weibull", "table", "list", "series"]
    x_m: Numbers
    y_m: Numbers
    heights_m: Numbers
    wind_directions_deg: Numbers
    wind_speeds_m_s: list[float]
    weight: Numbers | None = None
    interpolation: Literal["nearest", "linear"]
    local_bins: bool
    turbulence_at_15: bool
    distances: Literal["straight", "elevated", "terrain_following"]
    extrapolate: bool
    shear: PackedShear | None = None
    crs: str | None = None  # may be WKT, which is long
    covered_degrees: Positive | None = None
    values: dict[str, PackedSpec]


class SiteSpec(Strict):
    """The wind, in exactly one form."""

    forms: ClassVar[tuple[str, ...]] = ("built_in", "file", "weibull", "table", "time_series", "field")
    built_in: Name | None = None
    file: Name | None = None
    wind_directions_deg: Numbers | None = None  # this key and the next three apply only to a file
    wind_speeds_m_s: Numbers | None = None
    interpolation: Literal["nearest", "linear"] | None = None
    turbulence_intensity: Positive | None = None
    weibull: WeibullSpec | None = None
    table: TableSpec | None = None
    time_series: TimeSeriesSpec | None = None
    field: GridSpec | None = None
    shear: ShearSpec | None = None
    distances: Literal["straight", "elevated", "terrain_following"] | None = None  # only for a file, as the next two
    extrapolate: bool | None = None
    crs: Name | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.field is not None and self.shear is not None:
            raise ValueError("has shear beside field, which has its own; remove it")
        if self.file is None:
            bins = ("wind_directions_deg", "wind_speeds_m_s", "interpolation", "turbulence_intensity")
            for name in (*bins, "distances", "extrapolate", "crs"):
                if getattr(self, name) is not None:
                    what = "move it into the section with the wind data" if name in bins else "remove it"
                    raise ValueError(f"has {name}, which applies only to a site file (file); {what}")
        return self
