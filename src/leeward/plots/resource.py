"""Maps of the wind resource: mean wind speed, gross yield, Weibull distributions and others, without wakes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from leeward.charts import Array, Bounds
from leeward.errors import InputError
from leeward.layout import Area
from leeward.plots import ground
from leeward.plots.style import EVEN, INK, Look, colour_bar, new_figure
from leeward.wind import Site, Turbine, resource_map

POINTS = 150  # grid points along the longer side
SMALLEST_SPAN = 1e-6  # of the largest value: smaller differences are rounding errors
PER_CENT = 100.0
BLANK = "blank: the wind is not known"


@dataclass(frozen=True)
class Wanted:
    """The settings of a map. sector: None for all together. height_m: above the ground."""

    site: Site
    turbine: Turbine
    sector: int | None
    height_m: float
    threads: int


@dataclass(frozen=True)
class Quantity:
    """A quantity of a map. label: of the colour bar. values: a function of the settings, x and y.

    of_all: title of a map of all sectors together; None if the quantity has no sectors, "" if it needs one.
    """

    label: str
    unit: str
    values: Callable[[Wanted, Array, Array], Array]
    of_all: str | None
    has_height: bool = True


def _mean_speed(wanted: Wanted, x: Array, y: Array) -> Array:
    return resource_map.mean_speed_m_s(wanted.site, x, y, wanted.height_m, wanted.sector, threads=wanted.threads)


def _turbulence(wanted: Wanted, x: Array, y: Array) -> Array:
    site, height, sector = wanted.site, wanted.height_m, wanted.sector
    return PER_CENT * resource_map.turbulence_intensity(site, x, y, height, sector, threads=wanted.threads)


def _gross_yield(wanted: Wanted, x: Array, y: Array) -> Array:
    return resource_map.gross_aep_gwh(wanted.site, wanted.turbine, x, y, wanted.sector, threads=wanted.threads)


def _weibull_a(wanted: Wanted, x: Array, y: Array) -> Array:
    return resource_map.weibull_a_m_s(wanted.site, x, y, wanted.height_m, wanted.sector)


def _weibull_k(wanted: Wanted, x: Array, y: Array) -> Array:
    return resource_map.weibull_k(wanted.site, x, y, wanted.height_m, wanted.sector)


def _speed_up(wanted: Wanted, x: Array, y: Array) -> Array:
    return resource_map.speed_up(wanted.site, x, y, wanted.height_m, wanted.sector)


def _frequency(wanted: Wanted, x: Array, y: Array) -> Array:
    if wanted.sector is None:
        raise InputError("frequency is that of one sector; name the sector")
    return PER_CENT * resource_map.sector_frequency(wanted.site, x, y, wanted.height_m, wanted.sector)


def _elevation(wanted: Wanted, x: Array, y: Array) -> Array:
    return resource_map.elevation_m(wanted.site, x, y)


WEIGHTED = "mean of all sectors, weighted by frequency"
QUANTITIES = {
    "mean-speed": Quantity("mean free wind speed", "m/s", _mean_speed, "all directions"),
    "gross-yield": Quantity("gross yield", "GWh a year", _gross_yield, "all directions"),
    "weibull-a": Quantity("Weibull scale A", "m/s", _weibull_a, WEIGHTED),
    "weibull-k": Quantity("Weibull shape k", "", _weibull_k, WEIGHTED),
    "frequency": Quantity("frequency", "% of the time", _frequency, ""),
    "speed-up": Quantity("speed-up", "", _speed_up, WEIGHTED),
    "turbulence": Quantity("mean turbulence intensity", "%", _turbulence, "all directions"),
    "elevation": Quantity("elevation of the terrain", "m", _elevation, None, has_height=False),
}


def plot_resource(
    ax: Axes,
    at_x: npt.ArrayLike,
    at_y: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    areas: Sequence[Area] = (),
    layouts: Sequence[ground.Positions] = (),
    neighbours: ground.Positions | None = None,
    rotor_diameter_m: float | None = None,
    title: str | None = None,
) -> QuadMesh:
    """Draw values on a grid, with areas and layouts on top; return the mesh, for a colour bar.

    at_x, at_y, values: shape (rows, columns), m and any unit, as from `leeward.wind.resource_map`. NaN is left blank.
    layouts: x and y of turbines. neighbours: x and y of existing turbines, drawn in grey. rotor_diameter_m: turbines
    are to scale, with a minimum size. In .svg and .pdf files the map is a bitmap; the rest are lines and text.
    """
    grid_x, grid_y, known = (np.asarray(each, dtype=np.float64) for each in (at_x, at_y, values))
    if grid_x.ndim != 2 or not grid_x.shape == grid_y.shape == known.shape:
        raise InputError(
            f"at_x, at_y and values have the shapes {grid_x.shape}, {grid_y.shape} and {known.shape}; expected one "
            "shape (rows, columns)"
        )
    if np.isnan(known).all():
        raise InputError("no point of the map has a value: all are outside the grid of the wind, or NaN")
    low, high = float(np.nanmin(known)), float(np.nanmax(known))
    span = max(high - low, SMALLEST_SPAN * max(abs(low), abs(high)))
    look: Look = {"cmap": EVEN, "vmin": high - span, "vmax": high, "rasterized": True, "zorder": 0}
    drawn = ax.pcolormesh(grid_x, grid_y, np.ma.masked_invalid(known), shading="gouraud", **look)
    shown = (float(grid_x.min()), float(grid_y.min()), float(grid_x.max()), float(grid_y.max()))
    for area in areas:
        outline = ground.draw_area(ax, area, facecolor="none", linewidth=1.0, edgecolor=INK)
        outline.set_path_effects([withStroke(linewidth=2.6, foreground="white")])  # visible on all colours
    size = max(rotor_diameter_m or 0.0, 0.75 * ground.SMALLEST_DOT * ground.longer_side(shown))
    legend, _ = ground.draw_neighbours(ax, shown, neighbours, size)
    for layout in layouts:
        ground.circles(ax, *ground.pair(layout, "a layout"), size, face="white", edge=INK, linewidth=0.7, zorder=4)
    legend = "\n".join(filter(None, (legend, BLANK if np.isnan(known).any() else "")))
    crs = areas[0].crs if areas else None
    ground.finish_map(ax, shown, None, margin=0.0, crs=crs, legend=legend, title=title)
    return drawn


def resource_figure(
    site: Site,
    turbine: Turbine,
    areas: Sequence[Area],
    *,
    quantity: str = "mean-speed",
    sector: int | None = None,
    height_m: float | None = None,
    points: int | None = None,
    layouts: Sequence[ground.Positions] = (),
    neighbours: ground.Positions | None = None,
    threads: int = 1,
    name: str | None = None,
) -> Figure:
    """Return a map of the wind over some areas, without wakes. Raise InputError if the wind is the same everywhere.

    quantity: one of `QUANTITIES`. sector: number of a sector from 0 (north); by default all together. height_m: above
    the ground, by default the hub height of the turbine, whose gross yield is drawn. points: along the longer side, by
    default 150. layouts: x and y of turbines. neighbours: of existing turbines.
    """
    what = _checked(site, quantity, sector, height_m)
    wanted = Wanted(site, turbine, sector, turbine.hub_height_m if height_m is None else height_m, threads)
    at_x, at_y = ground.grid(_bounds(site, areas, neighbours), points or POINTS)
    values = what.values(wanted, at_x, at_y)
    shown = (float(at_x.min()), float(at_y.min()), float(at_x.max()), float(at_y.max()))
    size = ground.map_size(shown)
    figure = new_figure(size[0] + 2.0, size[1] + 2.0)  # large; `fit` shrinks it
    ax = figure.subplots()
    drawn = plot_resource(
        ax,
        at_x,
        at_y,
        values,
        areas=areas,
        layouts=layouts,
        neighbours=neighbours,
        rotor_diameter_m=turbine.rotor_diameter_m,
        title=_title(wanted, quantity),
    )
    height = f" at {wanted.height_m:g} m above ground" if what.has_height else ""
    label = ", ".join(filter(None, (f"{what.label}{height}", what.unit)))
    colour_bar(figure, drawn, ax, label, location=ground.bar_side(shown))
    ground.fit(figure, [ax], size, name=name)
    return figure


def _checked(site: Site, quantity: str, sector: int | None, height_m: float | None) -> Quantity:
    """Return the quantity of this name, or raise InputError if it cannot be drawn with these settings."""
    if quantity not in QUANTITIES:
        raise InputError(f"quantity is {quantity!r:.40}; expected one of {', '.join(QUANTITIES)}")
    if not resource_map.varies_over_site(site):
        raise InputError(
            "the wind of this site is the same everywhere, so a map of it shows nothing; draw the wind rose instead"
        )
    what = QUANTITIES[quantity]
    if what.of_all == "" and sector is None:
        raise InputError(
            f"{quantity} is that of one sector; give a sector from 0 to {resource_map.sector_count(site) - 1}"
        )
    if what.of_all is None and sector is not None:
        raise InputError(f"{quantity} does not depend on the wind direction; leave the sector out")
    if height_m is not None and (quantity == "gross-yield" or not what.has_height):
        which = "is that at the hub height of the turbine" if what.has_height else "does not depend on the height"
        raise InputError(f"{quantity} {which}; leave the height out")
    return what


def _bounds(site: Site, areas: Sequence[Area], neighbours: ground.Positions | None) -> Bounds:
    """Return the bounds of the map: those of areas and nearby neighbours, with a margin as far as the wind is known."""
    if not areas:
        raise InputError("no areas to draw; expected at least one")
    every: Bounds = shapely.total_bounds([shapely.box(*area.bounds) for area in areas]).tolist()
    *_, inner = ground.near_neighbours(every, neighbours)
    return resource_map.map_bounds(site, inner)


def _title(wanted: Wanted, quantity: str) -> str:
    """Return what the values are means of."""
    what, words = QUANTITIES[quantity], []
    if quantity == "gross-yield":
        words.append(f"one {wanted.turbine.name} without wakes")
    if wanted.sector is None:
        words.append(what.of_all or "")
    else:
        width = 360.0 / resource_map.sector_count(wanted.site)
        centre = wanted.sector * width
        words.append(f"wind from {(centre - 0.5 * width) % 360.0:g}° to {centre + 0.5 * width:g}°")
    speeds = wanted.site.conditions.speed
    if quantity in ("mean-speed", "turbulence") and speeds.shape[1] > 1:
        words.append(f"wind speeds of {speeds.min():g} to {speeds.max():g} m/s")
    return ", ".join(filter(None, words))
