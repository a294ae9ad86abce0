"""The method and the settings of a campaign."""

from collections.abc import Iterator, Mapping
from typing import Any

from leeward import __version__
from leeward.campaign import Campaign
from leeward.pages.html import Child, Markup, tag
from leeward.pages.parts import facts, section, table
from leeward.watch.drawings import FarmShape

MOST_ROWS = 200


def settings(campaign: Campaign | None, shapes: Mapping[int, FarmShape], versions: str = "") -> Markup:
    """What the layouts depend on. versions: of the programs that made the results, as these tell it."""
    if campaign is None:
        return section("settings", "Method and settings", tag("p", None, "The campaign is not known."))
    farm, kind = next(iter(campaign.farms)), next(iter(campaign.types))
    known = campaign.settings(farm, kind)
    return section(
        "settings",
        "Method and settings",
        facts(_common(campaign, known, versions)),
        tag("h3", None, "Turbine types"),
        _types(campaign, farm),
        tag("h3", None, "Farms"),
        _farms(campaign, shapes),
        tag(
            "details", {"id": "frozen"}, tag("summary", None, "the whole campaign"), tag("pre", None, _frozen(campaign))
        ),
    )


def _common(campaign: Campaign, known: Mapping[str, Any], versions: str) -> Iterator[tuple[Child, Child]]:
    yield "campaign", campaign.name
    yield "tasks", f"{len(campaign.farms)} farms × {len(campaign.types)} types × {len(campaign.seeds)} seeds"
    yield "coordinates", campaign.crs or "projected metres, no name given"
    yield "wake model", _words(known["wake_model"])
    yield "least spacing", _words(known["spacing"])
    yield "optimiser", _words(known["optimiser"])
    yield "wind", _site(known["site"])
    yield "neighbours", _neighbours(known["neighbours"])
    yield "method version", known["method_version"]
    yield "made with", versions or "not told"
    yield "shown by", f"leeward {__version__}"


def _words(settings: Mapping[str, Any]) -> str:
    values = dict(settings)
    name = values.pop("name", values.pop("recipe", None))
    rest = ", ".join(f"{key.replace('_', ' ')} {_value(value)}" for key, value in values.items())
    return rest if name is None else f"{name}: {rest}" if rest else str(name)


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _site(figures: Mapping[str, Any]) -> str:
    """What kind of wind, and in how many parts."""
    inner = next((value for value in figures.values() if isinstance(value, Mapping)), figures)
    if "weibull_a_m_s" in inner:
        return f"Weibull distributions of {len(inner['weibull_a_m_s'])} sectors"
    counts = [f"{len(value)} {name.replace('_', ' ')}" for name, value in inner.items() if isinstance(value, list)]
    return f"table: {', '.join(counts)}" if counts else "table"


def _neighbours(figures: object) -> str:
    if not figures:
        return "none"
    return f"{len(figures)} groups" if isinstance(figures, list) else "some"


def _types(campaign: Campaign, farm: int) -> Markup:
    rows: list[list[Child]] = []
    for kind, name in list(campaign.types.items())[:MOST_ROWS]:
        turbine = campaign.settings(farm, kind)["turbine"]
        shown = {key: value for key, value in turbine.items() if isinstance(value, int | float)}
        rows.append([f"t{kind}", name, *(_value(shown.get(key, "–")) for key in _TURBINE)])
    header = ["", "name", "rated power, MW", "rotor, m", "hub height, m"]
    return table(header, rows, right=(2, 3, 4), caption="turbine types")


_TURBINE = ("rated_power_mw", "rotor_diameter_m", "hub_height_m")


def _farms(campaign: Campaign, shapes: Mapping[int, FarmShape]) -> Markup:
    kinds = list(campaign.types)[:20]
    rows: list[list[Child]] = []
    for farm, name in list(campaign.farms.items())[:MOST_ROWS]:
        size = "–" if farm not in shapes else f"{_km2(shapes[farm]):.1f}"
        rows.append([farm, name, size, *(campaign.n_turbines(farm, kind) for kind in kinds)])
    header = ["farm", "name", "km²", *(f"turbines of t{kind}" for kind in kinds)]
    return table(header, rows, right=range(2, len(header)), caption="farms")


def _km2(shape: FarmShape) -> float:
    """By the shoelace formula; holes are taken off."""
    total = 0.0
    for outer, *inner in shape.polygons:
        total += _ring_m2(outer) - sum(map(_ring_m2, inner))
    return total / 1e6


def _ring_m2(ring: Any) -> float:
    x, y = (ring - ring[0]).T
    return abs(float((x[:-1] * y[1:] - x[1:] * y[:-1]).sum())) / 2.0


def _frozen(campaign: Campaign) -> str:
    text = campaign.study_text()
    return text if len(text) < 200_000 else f"{text[:200_000]}\n... ({len(text)} characters in all)"
