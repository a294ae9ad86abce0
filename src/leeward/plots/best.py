"""The best layout of each farm, all on one map."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from leeward.capacity import capacity_factor
from leeward.charts import apart, label_place, loss_range, shortened
from leeward.errors import InputError
from leeward.layout import Area
from leeward.plots import ground
from leeward.plots.style import INK, LEGEND, PLAIN, SEA, SMALL, TINY, Look, colour_bar, literal, new_figure

BELOW = 12  # with at most this many farms, the legend is always below the map
DOT = 0.006  # fraction of the map's longer side; smaller rotors are drawn this large
DOT_IN_AREA = 0.12  # fraction of an area's longer side; limits DOT, so that turbines do not hide small areas
FEW_LINES = 20  # lines of the legend that always fit, even beside a low map
KEY_LETTER, KEY_LINE = 0.056, 0.16  # width of a letter and height of a line of the legend, inches
LABEL_LETTER, LABEL_LINE = 0.85, 1.25  # width and height of a letter, relative to the font size
LONGEST_KEY = 60  # largest number of lines of the legend
LONGEST_NAME = 72  # characters of a name
MANY, MOST_LARGER = 100, 2.0  # with more farms than this the map grows, at most to twice its side
MAP_INCHES = 6.6  # side of a square map
NARROW = 3.2  # inches: a narrower map has no room for a colour bar below it
KEY: Look = {**LEGEND, "fontsize": TINY, "handlelength": 0, "handletextpad": 0, "columnspacing": 1.0}
BY_FACTOR = ["Types are compared by capacity factor:", "their installed power differs by more than 0.5 %."]


@dataclass(frozen=True)
class FarmLayout:
    """A farm with its best layout: x, y (m), AEP (GWh) and, if known, the wake loss of each turbine as a fraction.

    label: a few characters on the map. name: its explanation in the legend. installed_mw: NaN if unknown. is_by_factor:
    the layout is the best of several turbine types by capacity factor, not by AEP.
    """

    label: str
    name: str
    area: Area
    x: npt.ArrayLike
    y: npt.ArrayLike
    aep_gwh: float
    rotor_diameter_m: float
    wake_loss: npt.ArrayLike | None = None
    installed_mw: float = math.nan
    is_by_factor: bool = False


def plot_best_layouts(
    ax: Axes,
    farms: Sequence[FarmLayout],
    *,
    neighbours: ground.Positions | None = None,
    key: bool = True,
    title: str | None = None,
) -> EllipseCollection | None:
    """Draw all farm areas with a layout in each, north up, to scale, in metres with ticks in kilometres.

    neighbours: x and y of existing turbines; nearby ones are drawn in grey. key: add a legend with names and AEPs
    beside the axes. Return the turbines of the last farm, for a colour bar of all farms; None if a farm has no wake
    losses.
    """
    drawn = _draw_farms(ax, farms, neighbours, title)
    if key:
        _add_key(ax, farms, LONGEST_KEY)
    _draw_labels(ax, farms)
    return drawn


def _draw_farms(
    ax: Axes, farms: Sequence[FarmLayout], neighbours: ground.Positions | None, title: str | None
) -> EllipseCollection | None:
    """Draw everything except the labels and the legend."""
    if not farms:
        raise InputError("no farms to draw; expected at least one")
    areas = shapely.union_all([farm.area.to_shapely() for farm in farms])
    longer = ground.longer_side(areas.bounds)
    dot = min(DOT * longer, DOT_IN_AREA * float(np.median([ground.longer_side(farm.area.bounds) for farm in farms])))
    losses = [None if farm.wake_loss is None else np.asarray(farm.wake_loss, dtype=float) for farm in farms]
    span = loss_range(losses)
    for farm, loss in zip(farms, losses, strict=True):
        ground.draw_area(ax, farm.area, linewidth=0.8)
        x, y = ground.pair((farm.x, farm.y), f"the layout of {farm.name}")
        size = max(farm.rotor_diameter_m, dot)
        drawn = ground.circles(ax, x, y, size, face=PLAIN, edge="none", linewidth=0.0, zorder=3)
        if loss is not None:
            ground.colour_by_loss(drawn, loss, span)
    size = max(dot, *(farm.rotor_diameter_m for farm in farms))
    legend, shown = ground.draw_neighbours(ax, areas.bounds, neighbours, size)
    ground.finish_map(ax, shown, areas, margin=0.03 * longer, crs=farms[0].area.crs, legend=legend, title=title)
    return None if any(loss is None for loss in losses) else drawn


def best_layouts_figure(
    farms: Sequence[FarmLayout], title: str | None = None, *, neighbours: ground.Positions | None = None
) -> Figure:
    """Return the map with a colour bar and a legend. A short legend, or that of a narrow map, is below the map."""
    side = MAP_INCHES * min(max(len(farms) / MANY, 1.0) ** 0.5, MOST_LARGER)
    figure = new_figure(side + 3.0, side + 3.0)
    ax = figure.subplots()
    drawn = _draw_farms(ax, farms, neighbours, title)
    shown = ax.viewLim.extents
    width, height = ground.map_size(shown, side)
    narrow = width < NARROW
    below = narrow or len(farms) <= BELOW or ground.bar_side(shown) == "bottom"
    if drawn is not None:
        colour_bar(figure, drawn, ax, "wake loss of each turbine, %", location="right" if narrow else "bottom")
    if below:
        _add_key_below(figure, farms, LONGEST_KEY // 2 if narrow else LONGEST_KEY, max(width, NARROW) + 0.4)
    else:
        lines = max(int(height / KEY_LINE), FEW_LINES)
        columns = -(-len(farms) // lines) if len(farms) <= LONGEST_KEY else 1
        _add_key(ax, farms, lines * columns, columns)
    ground.fit(figure, [ax], (width, height), least_width=NARROW + 0.5 if below else 0.0)
    _draw_labels(ax, farms)
    return figure


def _draw_labels(ax: Axes, farms: Sequence[FarmLayout]) -> None:
    """Write labels inside the areas, away from turbines and borders; omit labels that would overlap."""
    scale = min(ax.bbox.width / ax.viewLim.width, ax.bbox.height / ax.viewLim.height)  # pixels per metre
    points = 72.0 * scale / ax.figure.dpi
    places = [label_place(farm.area.to_shapely(), farm.x, farm.y) for farm in farms]
    widths = [LABEL_LETTER * SMALL * len(farm.label) / points for farm in farms]
    for i in apart(places, widths, LABEL_LINE * SMALL / points):
        words = ax.text(*places[i], literal(farms[i].label), ha="center", va="center", zorder=6)
        words.set(fontsize=SMALL, fontweight="bold", color=INK, in_layout=False)
        words.set_path_effects([withStroke(linewidth=2.0, foreground=SEA)])


def _key_line(farm: FarmLayout, longest: int) -> str:
    """Return a line of the legend. longest: largest number of characters of the name."""
    factor = capacity_factor(farm.aep_gwh, farm.installed_mw)
    power = "" if math.isnan(factor) else f", {farm.installed_mw:.6g} MW, {100.0 * factor:.1f} %"
    return f"{farm.label}  {shortened(farm.name, longest)}: {farm.aep_gwh:.1f} GWh{power}"


def _add_key(ax: Axes, farms: Sequence[FarmLayout], most: int, columns: int = 1) -> None:
    key = _key(farms, most, LONGEST_NAME // columns)
    # the padding leaves room for the north arrow
    ax.legend(*key, loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=2.6, ncols=columns, **KEY)


def _add_key_below(figure: Figure, farms: Sequence[FarmLayout], most: int, width: float) -> None:
    """Add the legend below the map, in as many columns as fit into the width (inches)."""
    letters = int(width / KEY_LETTER)
    longest = min(LONGEST_NAME, letters - max(len(_key_line(farm, 0)) for farm in farms))
    handles, lines = _key(farms, most, longest)
    columns = max(letters // (max(map(len, lines)) + 3), 1)
    figure.legend(handles, lines, loc="outside lower left", ncols=columns, **KEY)


def _key(farms: Sequence[FarmLayout], most: int, longest: int) -> tuple[list[Line2D], list[str]]:
    """Return the handles and texts of the legend."""
    lines = [_key_line(farm, longest) for farm in farms[:most]]
    if len(farms) > most:
        lines.append(f"and {len(farms) - most} more")
    lines += ["%: capacity factor"] if any(not math.isnan(farm.installed_mw) for farm in farms) else []
    lines += BY_FACTOR if any(farm.is_by_factor for farm in farms) else []
    return [Line2D([], [], linestyle="none") for _ in lines], [literal(line) for line in lines]
