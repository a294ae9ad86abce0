"""Boundaries and exclusions of windIO sites."""

from pathlib import Path
from typing import Any, NamedTuple

from leeward.errors import InputError
from leeward.readers.document import Document, Place

WHAT = "a windIO site or plant with boundaries"


class WindioArea(NamedTuple):
    """Regions and exclusions as shapes of a campaign file: `polygon_m` or `circle_m`. crs: None if it is not named."""

    name: str
    crs: str | None
    regions: list[dict[str, Any]]
    exclusions: list[dict[str, Any]]


def read_area(path: Path) -> WindioArea:
    """Return the area of a file: a site, or a plant with its site."""
    document = Document.with_includes(path, WHAT)
    for place in ((), ("site",)):
        if document.value((*place, "boundaries")):
            return area_of(document, place)
    raise InputError(f"{path}: has no boundaries; expected {WHAT}")


def area_of(document: Document, place: Place) -> WindioArea:
    """Return the area of the site at a place of the document."""
    systems: dict[str, Place] = {}
    regions = _shapes(document, (*place, "boundaries"), systems)
    has_exclusions = document.value((*place, "exclusions"))
    exclusions = _shapes(document, (*place, "exclusions"), systems) if has_exclusions else []
    if len(systems) > 1:
        raise document.error(list(systems.values())[1], f"has another crs than the rest: {' and '.join(systems)}")
    name = document.value((*place, "name"))
    return WindioArea(str(name) if name else "site", next(iter(systems), None), regions, exclusions)


def _shapes(document: Document, place: Place, systems: dict[str, Place]) -> list[dict[str, Any]]:
    """Return a circle or polygons. systems: gets the coordinate systems that they name."""
    circle = (*place, "circle")
    if document.value(circle):
        _note_crs(document, (*circle, "center"), systems)
        centre = {axis: document.number((*circle, "center", axis)) for axis in ("x", "y")}
        return [{"circle_m": {**centre, "radius": document.number((*circle, "radius"))}}]
    given = document.value((*place, "polygons"))
    if not isinstance(given, list) or not given:
        raise document.error(place, "has neither polygons nor a circle; expected one of them")
    found = []
    for number in range(len(given)):
        at = (*place, "polygons", number)
        x, y = (document.numbers((*at, axis)) for axis in ("x", "y"))
        if len(x) != len(y):
            raise document.error(at, f"has {len(x)} x and {len(y)} y; expected as many")
        _note_crs(document, at, systems)
        found.append({"polygon_m": [list(point) for point in zip(x, y, strict=True)]})
    return found


def _note_crs(document: Document, place: Place, systems: dict[str, Place]) -> None:
    crs = document.value((*place, "crs"))
    if isinstance(crs, str) and crs:
        systems.setdefault(crs, place)
