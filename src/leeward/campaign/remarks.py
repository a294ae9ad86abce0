"""Remarks for summaries of a campaign, on power, comparison of types, recipe, wind, and places of the farms."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from leeward.capacity import HOURS_PER_YEAR, by_capacity_factor, comparison_remark, installed_power
from leeward.wording import count

if TYPE_CHECKING:
    from leeward.campaign.campaign import Campaign
    from leeward.store import Result

SUM_SLACK = 1e-6  # allowed rounding error of the sum of probabilities
HUB_HEIGHTS = (
    "The turbine types have different hub heights, but this does not change the wind: the wind speeds of the campaign "
    "apply at the hub height of every type."
)
LARGEST_KM2 = 20_000.0
FARTHEST_KM = 500.0
EARTH_RADIUS_KM = 6371.0
EUROPE = (-25.0, 45.0, 35.0, 72.0)  # west, east, south, north, degrees: most farms lie here
OUTSIDE_DEG = 3.0  # how far a farm may lie outside the area of use of its projection


def installed_of(campaign: "Campaign | None", result: "Result") -> float:
    """Return the installed power of a result (MW); NaN if neither the result nor the campaign gives it."""
    number = result.key.type_idx
    rated = None if campaign is None or number not in campaign.types else campaign.physics.rated_power_mw(number)
    return installed_power(result.details, result.n_turbines, rated)


def is_by_capacity_factor(campaign: "Campaign", farm_idx: int) -> bool:
    """Return whether the turbine types of a farm are compared by capacity factor instead of by AEP."""
    return by_capacity_factor(campaign.physics.installed_mw(farm_idx, number) for number in campaign.types)


def optimiser_words(campaign: "Campaign") -> str:
    """Return recipe and effort, or the budget that replaces it, and the device if it is a GPU, in words."""
    settings = campaign.optimiser
    effort = settings.get("effort", "")
    seconds, work = settings.get("time_budget_s"), settings.get("work")
    if seconds is not None:
        how = f"time budget {seconds:g} s per layout"
    elif work is not None:
        how = f"work budget {count(work, 'pair evaluation')} per layout"
    elif effort:
        how, effort = f"effort {effort}", ""
    else:
        how = "a custom function" if ":" in campaign.recipe else "without refinement"
    where = "" if campaign.device is None else ", on GPUs"
    return f"recipe {campaign.recipe}, {how}" + (f" (effort {effort})" if effort else "") + where


def wind_remarks(campaign: "Campaign") -> Iterator[str]:
    """Yield warnings about wrong wind data, with the effect on AEP."""
    site = campaign.physics.site
    excess = site.covered_hours / HOURS_PER_YEAR - 1.0
    if excess > SUM_SLACK:
        yield (
            f"The probabilities of the wind add up to {1.0 + excess:.6g}: every AEP is {100.0 * excess:.2g} % too "
            "high. Divide the probabilities by their sum."
        )
    if site.covered_degrees < 360.0 - 1e-6:
        yield (
            f"The bins of the wind rose cover {site.covered_degrees:g} of 360 degrees: the other directions have "
            "no wind."
        )


def comparison_remarks(campaign: "Campaign") -> Iterator[str]:
    """Yield sentences that explain how AEPs and turbine types can be compared."""
    differing = [f"{farm} {name}" for farm, name in campaign.farms.items() if is_by_capacity_factor(campaign, farm)]
    if differing:
        yield comparison_remark(differing, len(campaign.farms))
    yield from wind_remarks(campaign)
    field = campaign.physics.site.field
    if len({campaign.physics.hub_height_m(number) for number in campaign.types}) > 1 and not (
        field is not None and field.varies_with_height
    ):
        yield HUB_HEIGHTS


@dataclass(frozen=True)
class FarmPlace:
    """A farm's area (km²) and its centre in projected metres, and in degrees if the coordinate system is known."""

    farm_idx: int
    name: str
    area_km2: float
    x_m: float
    y_m: float
    longitude: float | None
    latitude: float | None

    def centre(self) -> str:
        """Return the centre as text: degrees if they are known, else metres."""
        if self.longitude is None or self.latitude is None:
            return f"x {self.x_m:.0f} m, y {self.y_m:.0f} m"
        return degrees(self.longitude, self.latitude)


def degrees(longitude: float, latitude: float) -> str:
    """Return a position as text, such as 56.12° N 6.20° E."""
    north, east = "N" if latitude >= 0 else "S", "E" if longitude >= 0 else "W"
    return f"{abs(latitude):.2f}° {north} {abs(longitude):.2f}° {east}"


def farm_places(campaign: "Campaign") -> list[FarmPlace]:
    """Return the place of each farm."""
    import pyproj

    transformer = None
    if campaign.crs is not None:
        transformer = pyproj.Transformer.from_crs(campaign.crs, "EPSG:4326", always_xy=True)
    places = []
    for farm_idx, name in campaign.farms.items():
        area = campaign.physics.area(farm_idx)
        centre = area.to_shapely().centroid
        longitude = latitude = None
        if transformer is not None:
            longitude, latitude = map(float, transformer.transform(centre.x, centre.y))
        places.append(FarmPlace(farm_idx, name, area.area_m2 / 1e6, centre.x, centre.y, longitude, latitude))
    return places


def projection(campaign: "Campaign") -> str:
    """Return the name of the coordinate system of the farms."""
    import pyproj

    if campaign.crs is None:
        return "metres, without a coordinate system"
    return f"{campaign.crs}, {pyproj.CRS.from_user_input(campaign.crs).name}"


def place_remarks(campaign: "Campaign", places: Sequence[FarmPlace]) -> list[str]:
    """Return warnings about farms that are huge, far apart, outside their projection, or seem to have swapped axes."""
    remarks = [
        f"farm {place.farm_idx} {place.name}: its area is {place.area_km2:.0f} km², more than {LARGEST_KM2:.0f} km²: "
        "check the coordinates"
        for place in places
        if place.area_km2 > LARGEST_KM2
    ]
    remarks += [remark for place in places if (remark := _swapped(place) or _outside(campaign, place))]
    distance, first, second = _farthest(places)
    if distance > FARTHEST_KM:
        remarks.append(
            f"farms {places[first].farm_idx} and {places[second].farm_idx} are {distance:.0f} km apart, more than "
            f"{FARTHEST_KM:.0f} km, and share one wind climate and one projection: check the coordinates"
        )
    return remarks


def _swapped(place: FarmPlace) -> str | None:
    if place.longitude is None or place.latitude is None:
        return None
    if _is_in_europe(place.longitude, place.latitude) or not _is_in_europe(place.latitude, place.longitude):
        return None
    return (
        f"farm {place.farm_idx} {place.name}: its centre is {place.centre()}. Latitude and longitude look swapped: "
        f"swapped back, it is {degrees(place.latitude, place.longitude)}. GeoJSON has the longitude first"
    )


def _is_in_europe(longitude: float, latitude: float) -> bool:
    west, east, south, north = EUROPE
    return west <= longitude <= east and south <= latitude <= north


def _outside(campaign: "Campaign", place: FarmPlace) -> str | None:
    """Return a warning if the farm lies outside the area of use of its projection."""
    import pyproj

    if place.longitude is None or place.latitude is None or campaign.crs is None:
        return None
    use = pyproj.CRS.from_user_input(campaign.crs).area_of_use
    if use is None:
        return None
    west, east = use.west - OUTSIDE_DEG, use.east + OUTSIDE_DEG
    east += 0.0 if use.west <= use.east else 360.0  # areas of use may cross the 180th meridian
    is_within_degrees = any(west <= longitude <= east for longitude in (place.longitude, place.longitude + 360.0))
    if is_within_degrees and use.south - OUTSIDE_DEG <= place.latitude <= use.north + OUTSIDE_DEG:
        return None
    return (
        f"farm {place.farm_idx} {place.name}: its centre, {place.centre()}, lies outside the area of use of "
        f"{campaign.crs} ({use.name}): check the coordinates and `crs`"
    )


def _farthest(places: Sequence[FarmPlace]) -> tuple[float, int, int]:
    """Return the largest distance between two farms (km), and the indices of these farms."""
    is_global = all(place.longitude is not None and place.latitude is not None for place in places)
    points = np.array([[place.x_m, place.y_m, 0.0] for place in places]) / 1e3
    if is_global:
        longitude, latitude = np.radians([[place.longitude or 0.0, place.latitude or 0.0] for place in places]).T
        east, north, up = np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)
        points = EARTH_RADIUS_KM * np.array([east, north, up]).T
    chord, first, second = 0.0, 0, 0
    for i in range(len(points)):
        chords: npt.NDArray[np.float64] = np.linalg.norm(points[i:] - points[i], axis=1)
        j = int(np.argmax(chords))
        if chords[j] > chord:
            chord, first, second = float(chords[j]), i, i + j
    if is_global:
        chord = 2.0 * EARTH_RADIUS_KM * float(np.arcsin(min(1.0, chord / (2.0 * EARTH_RADIUS_KM))))
    return chord, first, second
