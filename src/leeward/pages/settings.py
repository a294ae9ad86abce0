"""The method and the settings of a campaign."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import shapely

from leeward import __version__
from leeward.campaign import Campaign
from leeward.campaign.remarks import comparison_remarks, optimiser_words
from leeward.pages.html import Child, Markup, tag
from leeward.pages.parts import facts, folded, megawatts, section, table
from leeward.watch import FarmShape
from leeward.wording import count

MOST_ROWS = 200
LONGEST_TEXT = 200_000  # characters of the campaign file
LONGEST_LINE, LINE_START = 1000, 80  # characters of a line: longer ones are cut to this many
SHOWN = ("recipe", "effort", "time_budget_s", "work")  # settings that `optimiser_words` shows


def settings(campaign: Campaign | None, shapes: Mapping[int, FarmShape], versions: str = "") -> Markup:
    """Return the settings of a campaign. versions: the program versions that computed the results."""
    if campaign is None:
        return section("settings", "Method and settings", tag("p", None, "The campaign is not known."))
    text = "\n".join(_shortened(line) for line in campaign.study_text().split("\n"))
    if len(text) >= LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]}\n... ({len(text)} characters in total)"
    return section(
        "settings",
        "Method and settings",
        facts(_common(campaign, versions)),
        tag("h3", None, "Turbine types"),
        _types(campaign),
        [tag("p", None, remark) for remark in comparison_remarks(campaign)],
        tag("h3", None, "Farms"),
        _farms(campaign, shapes),
        folded("campaign file", tag("pre", None, text), name="frozen"),
    )


def _shortened(line: str) -> str:
    """Return a line of the campaign file; the packed values of wind on a grid are cut short."""
    return line if len(line) <= LONGEST_LINE else f"{line[:LINE_START]}... ({len(line)} characters)"


def _common(campaign: Campaign, versions: str) -> Iterator[tuple[Child, Child]]:
    known = campaign.settings(next(iter(campaign.farms)), next(iter(campaign.types)))
    yield "campaign", campaign.name
    yield "tasks", f"{len(campaign.farms)} farms × {len(campaign.types)} types × {len(campaign.seeds)} seeds"
    yield "coordinates", campaign.crs or "projected, in metres; no coordinate system given"
    yield "wake model", f"{known['wake_model']['name']}{_others(known['wake_model'], ['name'], ': ')}"
    yield "minimum spacing", _spacing(known["spacing"])
    yield "optimiser", f"{optimiser_words(campaign)}{_others(known['optimiser'], SHOWN, '; ')}"
    is_field = campaign.physics.site.field is not None
    yield "wind", campaign.physics.site.describe() if is_field else _site(known["site"])
    yield "neighbours", _neighbours(known["neighbours"])
    yield "method version", known["method_version"]
    yield "made with", versions or "not known"
    yield "shown by", f"leeward {__version__}"


def _others(settings: Mapping[str, Any], shown: Sequence[str], before: str) -> str:
    """Return the settings that are not in `shown`, after the text `before`; "" if there are none."""
    others = [f"{name.replace('_', ' ')} {_value(value)}" for name, value in settings.items() if name not in shown]
    return f"{before}{', '.join(others)}" if others else ""


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _spacing(settings: Mapping[str, float]) -> str:
    metres = settings.get("spacing_m")
    return f"{settings['spacing_diameters']:g} rotor diameters" if metres is None else f"{metres:g} m"


def _site(figures: Mapping[str, Any]) -> str:
    """Return a description of the wind data: type, resolution and turbulence intensity."""
    kind, inner = next(((kind, inner) for kind, inner in figures.items() if isinstance(inner, Mapping)), ("", {}))
    counts = [len(inner.get(f"wind_{name}", ())) for name in ("directions_deg", "speeds_m_s", "direction_deg")]
    grid = f"{counts[0]} directions × {counts[1]} speeds" if counts[0] and counts[1] else ""
    words = {
        "weibull": [f"Weibull distributions in {len(inner.get('weibull_a_m_s', ()))} sectors", grid],
        "table": [f"table of {grid}", "bins" if inner.get("kind") == "bins" else "exact conditions"],
        "time_series": [f"time series of {counts[2]} values"],
    }.get(kind, ["not known"])
    if inner.get("interpolation") == "linear":
        words.append("interpolated linearly")
    turbulence = np.asarray(inner.get("turbulence_intensity", ()), dtype=float)
    if turbulence.size:
        low, high = float(turbulence.min()), float(turbulence.max())
        words.append(f"turbulence intensity {low:g}" + (f" to {high:g}" if high > low else ""))
    return ", ".join(filter(None, words))


def _neighbours(figures: Sequence[Mapping[str, Any]]) -> str:
    if not figures:
        return "none"
    return count(sum(len(group["x_m"]) for group in figures), "turbine")


def _types(campaign: Campaign) -> Markup:
    rows: list[list[Child]] = []
    physics = campaign.physics
    for kind, name in list(campaign.types.items())[:MOST_ROWS]:
        figures = physics.rated_power_mw(kind), physics.rotor_diameter_m(kind), physics.hub_height_m(kind)
        rows.append([f"t{kind}", name, *map(_value, figures)])
    header = ["", "name", "rated power, MW", "rotor, m", "hub height, m"]
    return table(header, rows, right=(2, 3, 4), caption="turbine types")


def _farms(campaign: Campaign, shapes: Mapping[int, FarmShape]) -> Markup:
    kinds, physics = list(campaign.types)[:20], campaign.physics
    rows: list[list[Child]] = []
    for farm, name in list(campaign.farms.items())[:MOST_ROWS]:
        polygons = [(outer, holes) for outer, *holes in shapes[farm].polygons] if farm in shapes else []
        size = f"{shapely.MultiPolygon(polygons).area / 1e6:.1f}" if polygons else "–"
        powers = {kind: megawatts(physics.installed_mw(farm, kind)) for kind in kinds}
        counts = (f"{physics.n_turbines(farm, kind)} ({power} MW)" for kind, power in powers.items())
        rows.append([farm, name, size, megawatts(physics.capacity_wanted_mw(farm)), *counts])
    header = ["farm", "name", "km²", "target, MW", *(f"turbines of t{kind}" for kind in kinds)]
    return table(header, rows, right=range(2, len(header)), caption="farms")
