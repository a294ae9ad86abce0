"""Drawings of a study as SVG text: build-out map, power series, losses and their distribution."""

from collections.abc import Mapping, Sequence

import numpy as np

from leeward.charts import LOST_COLOURS, Array, Scale, colour, colours_apart, decimals, lost_power, shortened
from leeward.pages.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, figure, horizontal_grid, path_through, text
from leeward.pages.html import Attribute, Markup, tag
from leeward.pages.maps import Frame
from leeward.pages.parts import captioned
from leeward.watch import EvaluationView, FarmSeen

SIDE = 640.0  # longer side of the map, pixels
RADIUS = 3.4  # of a turbine, pixels
MOST_POINTS = 120  # points of a line; longer series are shown as means of several steps
MOST_MARKS = 40  # vertical lines of construction steps
BAR_LEFT, BAR_HEIGHT, BAR_STEP = 110.0, 18.0, 30.0  # bars of losses, pixels
BINS = 24  # of a histogram
LETTERS = 60  # longest name in a key


def farm_colour(farm: FarmSeen, n_steps: int) -> str | None:
    """Return the colour of a neighbour by the step from which it stands; None for the target."""
    return None if farm.first is None else colour(farm.first / (n_steps - 1) if n_steps > 1 else 0.0)


def build_out_map(view: EvaluationView) -> Markup:
    """Return a map of the target and its neighbours, coloured by the step from which each stands."""
    if not view.farms:
        return tag("p", None, "The layouts are not known, because the study is not known.")
    frame = Frame(np.concatenate([farm.points for farm in view.farms]), np.zeros((2, 0)), 16.0, SIDE)
    picture = figure(
        round(frame.width, 1),
        round(frame.height + 46, 1),
        f"map of the target and {len(view.farms) - 1} neighbours",
        [_farm(frame, farm, view.n_steps) for farm in reversed(view.farms)],
        frame.foot(16, 10, 14),
        kind="plan",
    )
    neighbours = len(view.farms) > 1
    words = "Dark rim: the target. Neighbours are coloured by the step from which they stand." if neighbours else ""
    return captioned(picture, _step_scale(view) if neighbours and view.n_steps > 1 else None, tag("p", None, words))


def _farm(frame: Frame, farm: FarmSeen, n_steps: int) -> Markup:
    words = f"{farm.name}: {len(farm.points)} turbines, {built(farm)}"
    look: dict[str, Attribute] = {"r": RADIUS, "fill": farm_colour(farm, n_steps)}
    look["class"] = "target" if farm.first is None else "turbine"
    circles = [tag("circle", {"cx": x, "cy": y, **look}) for x, y in frame.places(farm.points)]
    return tag("g", None, tag("title", None, words), circles)


def built(farm: FarmSeen) -> str:
    """Return from when to when a farm stands, in words."""
    if farm.first is None:
        return "the target"
    since = f"from step {farm.first}{f' ({farm.since})' if farm.since else ''}"
    return since if farm.end is None else f"{since} until step {farm.end}"


def _step_scale(view: EvaluationView) -> Markup:
    """Return the colour scale of construction steps."""
    last = view.n_steps - 1
    bars = [
        tag("rect", {"x": 10 + 5 * i, "y": 4, "width": 5.4, "height": 10, "fill": colour(i / 43)}) for i in range(44)
    ]
    ends = [(10, "start", _moment(view, 0)), (230, "end", _moment(view, last))]
    ticks = [text(x, 27, words, anchor=anchor) for x, anchor, words in ends]
    title = f"first step, from {_moment(view, 0)} (light) to {_moment(view, last)} (dark)"
    return figure(290, 32, title, bars, ticks, text(236, 13, "built"), kind="key")


def _moment(view: EvaluationView, step: int) -> str:
    """Return the date of a step, or its number."""
    return view.times[step][:10] if step < len(view.times) else f"step {step}"


# --- power -----------------------------------------------------------------------------------------------------------


def power_chart(view: EvaluationView) -> Markup | None:
    """Return charts of the farm power of each case, and of the power lost to wakes; None if the series was not kept."""
    power = view.result.farm_power_mw
    if power is None or power.shape[1] < 2:
        return None
    by_case = dict(zip(view.result.cases, power, strict=True))
    lost = lost_power(by_case)
    size = -(-power.shape[1] // MOST_POINTS)
    words = f"Farm power{f', means of {size} steps' if size > 1 else ''}. Dotted lines: a neighbour is built."
    return tag(
        "div",
        None,
        _series_chart(view, by_case, "power, MW", colours_apart(len(by_case)), size),
        _series_chart(view, lost, "power lost, MW", LOST_COLOURS, size) if lost else None,
        tag("p", None, words),
    )


def _series_chart(
    view: EvaluationView, power: Mapping[str, Array], quantity: str, colours: Sequence[str], size: int
) -> Markup:
    """Return a chart of power (MW) over the steps, by name. size: number of steps that a point is the mean of."""
    means = np.array([_means(row, size) for row in power.values()])
    n_steps = len(next(iter(power.values())))
    across = Scale(0, n_steps - 1, LEFT, WIDTH - RIGHT)
    up = Scale(0.0, float(means.max()) * 1.05 or 1.0, HEIGHT - BOTTOM, TOP)
    steps = np.minimum(np.arange(means.shape[1]) * size + (size - 1) / 2, n_steps - 1)
    hues = dict(zip(power, colours, strict=False))
    lines = [
        tag(
            "path",
            {
                "d": path_through(zip(map(across, steps), map(up, row), strict=True)),
                "class": "series",
                "stroke": hues[name],
            },
            tag("title", None, f"{name}: mean {power[name].mean():.2f} MW"),
        )
        for name, row in zip(power, means.tolist(), strict=True)
    ]
    first = [farm for farm in view.farms if farm.first is not None and farm.first > 0][:MOST_MARKS]
    marks = [_mark(across(farm.first or 0), farm) for farm in first]
    ticks = [int(tick) for tick in across.ticks(4) if tick == int(tick)]
    below = [
        text(across(step), HEIGHT - 16, _moment(view, step), anchor="middle" if step else "start") for step in ticks
    ]
    title = f"{quantity}, over {n_steps} steps: {', '.join(power)}"
    grid = horizontal_grid(up, LEFT, WIDTH - RIGHT, quantity)
    return captioned(figure(WIDTH, HEIGHT, title, grid, marks, lines, below), _key(hues))


def _means(row: Array, size: int) -> Array:
    starts = np.arange(0, len(row), size)
    return np.asarray(np.add.reduceat(row, starts) / np.diff(np.r_[starts, len(row)]))


def _mark(x: float, farm: FarmSeen) -> Markup:
    line: dict[str, Attribute] = {"x1": x, "x2": x, "y1": TOP, "y2": HEIGHT - BOTTOM, "class": "built"}
    return tag("line", line, tag("title", None, f"{farm.name} {built(farm)}"))


def _key(colours: Mapping[str, str]) -> Markup:
    """Return the names of colours."""
    entries = []
    for name, hue in colours.items():
        square = tag("rect", {"width": 10, "height": 10, "fill": hue})
        entries.append(tag("li", None, figure(10, 10, "", square, kind="swatch"), " ", shortened(name, LETTERS)))
    return tag("ul", {"class": "key-list"}, *entries)


# --- losses ----------------------------------------------------------------------------------------------------------


def loss_bars(losses: Mapping[str, float]) -> Markup | None:
    """Return a bar for each loss (fraction of the gross yield); None if there is none."""
    if not losses:
        return None
    height = BAR_STEP * len(losses) + 8
    across = Scale(0.0, max(*losses.values(), 1e-4), 0.0, WIDTH - BAR_LEFT - 90)
    bars = []
    for place, (name, loss) in enumerate(losses.items()):
        y = 6 + BAR_STEP * place
        size: dict[str, Attribute] = {"x": BAR_LEFT, "y": y, "width": max(across(loss), 0.0), "height": BAR_HEIGHT}
        bars += [
            text(BAR_LEFT - 8, y + 13, name, anchor="end"),
            tag("rect", {**size, "class": "band"}, tag("title", None, f"{name}: {loss:z.4%}")),
            text(BAR_LEFT + max(across(loss), 0.0) + 6, y + 13, f"{loss:z.2%}"),
        ]
    words = ", ".join(f"{name} {loss:z.2%}" for name, loss in losses.items())
    return figure(WIDTH, height, f"losses: {words}", bars)


def loss_histogram(losses: Mapping[str, Sequence[float]], width: float = WIDTH) -> Markup | None:
    """Return the distribution of losses (fractions) as outlines, one for each name; None without losses."""
    known = {name: np.asarray(values) for name, values in losses.items() if len(values)}
    if not known:
        return None
    every = np.concatenate(list(known.values()))
    low, high = float(every.min()), float(every.max())
    if high - low < 1e-4:  # a scale over a smaller range would show rounding errors
        low, high = max(low - 5e-4, 0.0), high + 5e-4
    edges = np.linspace(low, high, BINS + 1)
    shares = {name: np.histogram(values, edges)[0] / len(values) for name, values in known.items()}
    across = Scale(100 * low, 100 * high, LEFT, width - RIGHT)
    up = Scale(0.0, 105.0 * max(float(share.max()) for share in shares.values()), HEIGHT - BOTTOM, TOP)
    colours = dict(zip(known, colours_apart(len(known)), strict=True))
    outlines = [
        tag(
            "path",
            {"d": _outline(100 * edges, 100 * share, across, up), "class": "series", "stroke": colours[name]},
            tag("title", None, f"{name}: {len(known[name])} scenarios, mean {known[name].mean():.2%}"),
        )
        for name, share in shares.items()
    ]
    ticks = across.ticks()
    below = [text(across(tick), HEIGHT - 16, f"{tick:.{decimals(ticks)}f}", anchor="middle") for tick in ticks]
    picture = figure(
        width,
        HEIGHT,
        f"distribution of the losses of {len(every)} evaluations, from {low:.2%} to {high:.2%}",
        horizontal_grid(up, LEFT, width - RIGHT, "% of scenarios"),
        outlines,
        below,
        text((LEFT + width) / 2, HEIGHT - 2, "loss, % of the gross yield", anchor="middle"),
    )
    return captioned(picture, _key(colours))


def _outline(edges: Array, heights: Array, across: Scale, up: Scale) -> str:
    """Return the path of the upper edge of a histogram."""
    corners = [(across(edges[0]), up(0.0))]
    for left, right, height in zip(edges[:-1], edges[1:], heights, strict=True):
        corners += [(across(left), up(height)), (across(right), up(height))]
    return path_through([*corners, (across(edges[-1]), up(0.0))])
