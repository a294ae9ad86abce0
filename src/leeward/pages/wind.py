"""The wind of a campaign: its rose, and a map of its mean speed where it varies over the site."""

from collections.abc import Mapping, Sequence

import numpy as np

from leeward.charts import Array, colour
from leeward.pages.charts import figure, rose_chart
from leeward.pages.html import Child, Markup, tag
from leeward.pages.maps import MAP_SIDE, Frame, colour_scale, rings_of
from leeward.pages.parts import captioned, section
from leeward.store import Result
from leeward.watch import FarmShape, ResourceView
from leeward.wind import WindRose

BANDS = 24  # colours of the map
MARGIN = 8.0  # around the map, pixels
DOT = 2.2  # radius of a turbine, pixels: smaller rotors are drawn this large
SMALLEST_SPAN = 1e-3  # m/s: smaller differences are rounding errors
OVER = 0.4  # pixels by which cells overlap, so that no gaps show between them


def wind_section(rose: WindRose, *resource: Child, live: bool = False) -> Markup:
    """Return a section with the wind rose. resource: what follows it. live: the script of the page updates it."""
    return section("wind", "Wind", rose_chart(rose), *resource, live=live)


def resource_plan(
    view: ResourceView, shapes: Sequence[FarmShape], best: Mapping[int, Result], neighbours: Array
) -> Markup:
    """Return a map of the mean wind speed with areas, layouts and nearby neighbours, shape (2, neighbours).

    best: layouts by farm_idx.
    """
    left, low, right, high = view.bounds
    frame = Frame(np.array([[left, low], [right, high]]), neighbours, MARGIN, MAP_SIDE)
    known = view.speed[~np.isnan(view.speed)]
    ends = float(known.min()), float(max(known.max(), known.min() + SMALLEST_SPAN))
    fills = [colour(1.0 - band / (BANDS - 1)) for band in range(BANDS)]  # light: fast, as in the plots
    rings = [rings_of(shape) for shape in shapes]
    layouts = [
        tag("circle", {"cx": x, "cy": y, "r": round(max(DOT, result.rotor_diameter_m / 2 * frame.scale), 2)})
        for result in best.values()
        for x, y in frame.places(result.layout.T)
    ]
    picture = figure(
        round(frame.width, 1),
        round(frame.height + 40, 1),
        f"map of the mean wind speed, from {ends[0]:.2f} to {ends[1]:.2f} m/s, with {len(shapes)} farm areas",
        tag("g", {"class": "resource"}, _cells(frame, view, ends, fills)),
        [frame.outline(each, kind) for each in rings for kind in ("halo", "outline")],
        tag("g", {"class": "placed"}, layouts),
        frame.neighbours(DOT),
        frame.foot(14, 4, 16),
        kind="map",
    )
    name = "mean, m/s"
    words = f"mean wind speed, from {ends[0]:.2f} m/s (dark) to {ends[1]:.2f} m/s (light)"
    caption = [
        f"Mean free wind speed at {view.height_m:g} m above ground, over wind speeds of {view.speeds[0]:g} to "
        f"{view.speeds[1]:g} m/s",
        ", with the best layout of each farm." if best else ".",
        " Blank: the wind is not known." if len(known) < view.speed.size else "",
        " Grey: existing turbines." if len(frame.others) else "",
    ]
    return captioned(picture, colour_scale(ends, fills, ".2f", name, words), tag("p", None, "".join(caption)))


def _cells(frame: Frame, view: ResourceView, ends: tuple[float, float], fills: Sequence[str]) -> list[Markup]:
    """Return the cells of the map as one path for each colour, with neighbouring cells of a row in one piece."""
    rows, columns = view.speed.shape
    left, low, right, high = view.bounds
    across = [frame.place(x, low)[0] for x in np.linspace(left, right, columns + 1)]
    up = [frame.place(left, y)[1] for y in np.linspace(low, high, rows + 1)]
    share = (view.speed - ends[0]) / (ends[1] - ends[0])
    bands = np.where(np.isnan(share), -1, np.clip(np.nan_to_num(share) * BANDS, 0, BANDS - 1)).astype(int)
    pieces: list[list[str]] = [[] for _ in fills]
    for row in range(rows):
        starts = np.flatnonzero(np.diff(bands[row], prepend=-2))
        for start, end in zip(starts, [*starts[1:], columns], strict=True):
            if (band := bands[row, start]) >= 0:
                width, height = across[end] - across[start] + OVER, up[row] - up[row + 1] + OVER
                pieces[band].append(f"M{across[start]:g} {up[row + 1]:g}h{width:.2f}v{height:.2f}h-{width:.2f}z")
    return [
        tag("path", {"d": "".join(found), "fill": fill}) for found, fill in zip(pieces, fills, strict=True) if found
    ]
