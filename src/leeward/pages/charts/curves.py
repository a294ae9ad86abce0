"""How AEP is spread over seeds, and how it grew in a task."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from leeward.pages.charts.axes import Scale, decimals, figure, horizontal_grid, padded, text
from leeward.pages.html import Attribute, Markup, join, tag
from leeward.store import Key

Array = npt.NDArray[np.float64]
Link = Callable[[Key], str | None]
Height = Callable[[float], float]  # from an AEP, GWh, to pixels

WIDTH, HEIGHT = 640.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 30.0, 34.0
FEW_POINTS = 20
MOST_DOTS = 400  # of one chart: more are drawn as a line


class Quantity(NamedTuple):
    """A quantity that layouts are compared in. order: its name as a column of tasks. scale: from there to the unit."""

    name: str
    unit: str
    order: Literal["aep", "capacity_factor"]
    scale: float


AEP = Quantity("AEP", "GWh", "aep", 1.0)
CAPACITY_FACTOR = Quantity("capacity factor", "%", "capacity_factor", 100.0)


def rank_chart(keys: Sequence[Key], aeps: Array, link: Link) -> Markup:
    """AEP of all seeds of a farm and turbine type over their rank, with the seed of the best one.

    keys, aeps: from the best to the worst.
    """
    across = Scale(1, max(len(aeps), 2), LEFT + 10, WIDTH - RIGHT - 10)
    up = padded(aeps.tolist(), HEIGHT - BOTTOM, TOP)
    middle = float(np.median(aeps))
    lower, upper = (float(q) for q in np.quantile(aeps, (0.25, 0.75)))
    band: dict[str, Attribute] = {
        "x": LEFT,
        "y": up(upper),
        "width": WIDTH - RIGHT - LEFT,
        "height": max(up(lower) - up(upper), 0.5),
        "class": "band",
    }
    drawn = _dots(keys, aeps, across, up, link) if len(aeps) <= MOST_DOTS else _line(aeps, across, up)
    ranks = [1, *(int(tick) for tick in across.ticks() if 1 < tick < len(aeps) and tick == int(tick)), len(aeps)]
    return figure(
        WIDTH,
        HEIGHT,
        f"AEP of {len(aeps)} seeds, from {aeps.max():.2f} to {aeps.min():.2f} GWh, median {middle:.2f}",
        tag("rect", band, tag("title", None, f"the middle half: {lower:.2f} to {upper:.2f} GWh")),
        join(horizontal_grid(up, LEFT, WIDTH - RIGHT, "AEP, GWh")),
        _level(up(middle), f"median {middle:.2f} GWh"),
        drawn,
        text(across(1), up(float(aeps[0])) - 9, f"seed {keys[0].seed}"),
        [text(across(rank), HEIGHT - 16, str(rank), anchor="middle") for rank in dict.fromkeys(ranks)],
        text((LEFT + WIDTH) / 2, HEIGHT - 2, "rank of the layout (1 = best)", anchor="middle"),
    )


def strip_chart(
    columns: Mapping[str, tuple[Sequence[Key], Array]],
    link: Link,
    width: float = WIDTH,
    *,
    relative: bool = False,
    of: Quantity = AEP,
) -> Markup:
    """AEP, or capacity factor, of all seeds side by side, by name; the best of each is marked. width: pixels.

    of: what the columns hold, in its unit. relative: by how many per cent they are above the median of their own
    column, so that seeds can be told apart where columns differ much.
    """
    shown = {name: column for name, column in columns.items() if len(column[1])}
    every = np.concatenate([aeps for _, aeps in shown.values()])
    heights = [100.0 * (aeps / np.median(aeps) - 1.0) if relative else aeps for _, aeps in shown.values()]
    up = padded(np.concatenate(heights).tolist(), HEIGHT - BOTTOM, TOP)
    each = (width - LEFT - RIGHT) / len(shown)
    strips, names = [], []
    room = max(3, int(each / 6.2))  # letters
    for place, (name, (keys, aeps)) in enumerate(shown.items()):
        x = LEFT + (place + 0.5) * each
        strips.append(_strip(x, each, keys, aeps, _from_median(up, aeps) if relative else up, link, of))
        for line, words in enumerate(name.split(" ", 1)):
            shown_words = words if len(words) <= room else f"{words[: room - 1]}…"
            names.append(text(x, HEIGHT - 18 + 14 * line, shown_words, anchor="middle"))
    words = f"{of.name} of {len(every)} layouts, in {len(shown)} groups, "
    words += f"from {every.min():.2f} to {every.max():.2f} {of.unit}"
    words += ", as per cent above the median of each group" if relative else ""
    grid = join(horizontal_grid(up, LEFT, width - RIGHT, "% above median" if relative else f"{of.name}, {of.unit}"))
    return figure(width, HEIGHT, words, grid, strips, names)


def convergence(names: Sequence[str], aeps: Sequence[float], history: Array | None) -> Markup:
    """AEP by phase of the optimisation, as steps; over its steps too, where that is known (shape (2, n))."""
    curve = history if history is not None and is_curve(history) else None
    values = [value for value in [*aeps, *([] if curve is None else curve[1].tolist())] if np.isfinite(value)]
    up = padded(values, HEIGHT - BOTTOM, TOP)
    digits = decimals(up.ticks()) + 1
    half = LEFT + (WIDTH - LEFT - RIGHT) * (0.42 if curve is not None else 1.0)
    width = (half - LEFT) / max(len(aeps), 1)
    phases = []
    for place, (name, aep) in enumerate(zip(names, aeps, strict=False)):
        x = LEFT + (place + 0.5) * width
        y = up(aep)
        foot = HEIGHT - BOTTOM
        phases.append(tag("path", {"d": f"M{x:g} {foot:g}V{y:g}", "class": "stem"}))
        phases.append(
            tag("circle", {"cx": x, "cy": y, "r": 4, "class": "dot"}, tag("title", None, f"{name}: {aep:.4f} GWh"))
        )
        phases.append(text(x, y - 8, f"{aep:.{digits}f}", anchor="middle"))
        phases.append(text(x, HEIGHT - 16, name, anchor="middle"))
    drawn = [] if curve is None else _history(curve, Scale(0, 1, half + 26, WIDTH - RIGHT), up)
    steps = ", ".join(f"{name} {aep:.2f} GWh" for name, aep in zip(names, aeps, strict=False))
    grid = join(horizontal_grid(up, LEFT, WIDTH - RIGHT, "AEP, GWh"))
    return figure(WIDTH, HEIGHT, f"AEP by phase: {steps or 'not known'}", grid, phases, drawn)


def is_curve(history: Array) -> bool:
    """Whether there is anything to draw between two steps at least."""
    return int(np.isfinite(history).all(axis=0).sum()) > 1


def _history(curve: Array, room: Scale, up: Scale) -> list[Markup]:
    steps, aeps = curve[:, np.isfinite(curve).all(axis=0)]
    across = Scale(float(steps[0]), float(steps[-1]), room.start, room.end)
    points = list(zip(map(across, steps.tolist()), map(up, aeps.tolist()), strict=True))
    line = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    dots = [tag("circle", {"cx": x, "cy": y, "r": 2, "class": "dot"}) for x, y in points if len(points) <= 60]
    ends = [
        text(across(float(s)), HEIGHT - 16, f"{s:.0f}", anchor=anchor)
        for s, anchor in ((steps[0], "start"), (steps[-1], "end"))
    ]
    label = text((room.start + room.end) / 2, HEIGHT - 2, "step of the optimiser", anchor="middle")
    kind = "line sparse" if len(points) <= FEW_POINTS else "line"  # between them nothing was recorded
    return [tag("path", {"d": line, "class": kind}), *dots, *ends, label]


def _dots(keys: Sequence[Key], aeps: Array, across: Scale, up: Scale, link: Link) -> Markup:
    dots = []
    for rank, (key, aep) in enumerate(zip(keys, aeps.tolist(), strict=True), start=1):
        words = f"rank {rank}: seed {key.seed}, {aep:.2f} GWh"
        dots.append(_dot(across(rank), up(aep), key, words, link, is_best=rank == 1))
    return join(dots)


def _from_median(up: Scale, aeps: Array) -> Height:
    """From an AEP to pixels, on a scale of per cent above the median of these."""
    middle = float(np.median(aeps))
    return lambda aep: up(100.0 * (aep / middle - 1.0))


def _strip(x: float, width: float, keys: Sequence[Key], aeps: Array, up: Height, link: Link, of: Quantity) -> Markup:
    """Dots, or of many a band from the least to the largest with its quartiles; the best is a dot always."""
    best = int(np.argmax(aeps))
    words = [f"{key}: {aep:.2f} {of.unit}" for key, aep in zip(keys, aeps.tolist(), strict=True)]
    top = _dot(x, up(float(aeps[best])), keys[best], words[best], link, is_best=True)
    half = min(0.3 * width, 26.0)
    lower, middle, upper = (up(float(q)) for q in np.quantile(aeps, (0.25, 0.5, 0.75)))
    parts = [
        tag("path", {"d": f"M{x:g} {up(float(aeps.min())):g}V{up(float(aeps.max())):g}", "class": "stem"}),
        tag(
            "rect",
            {
                "x": round(x - half, 2),
                "y": upper,
                "width": round(2 * half, 2),
                "height": max(lower - upper, 0.5),
                "class": "band",
            },
        ),
        tag("path", {"d": f"M{x - half:g} {middle:g}H{x + half:g}", "class": "median"}),
    ]
    if len(aeps) <= MOST_DOTS / 4:
        others = [i for i in range(len(aeps)) if i != best]
        parts += [_dot(x, up(float(aeps[i])), keys[i], words[i], link, is_best=False) for i in others]
    return join([*parts, top])


def _dot(x: float, y: float, key: Key, words: str, link: Link, *, is_best: bool) -> Markup:
    circle = tag(
        "circle",
        {"cx": round(x, 2), "cy": y, "r": 5 if is_best else 3, "class": "dot best" if is_best else "dot"},
        tag("title", None, words),
    )
    address = link(key)
    if address is None:
        return circle
    # hundreds of stops would be in the way of the Tab key; the same links stand in the list of tasks
    return tag("a", {"href": address, "aria-label": words, "tabindex": -1}, circle)


def _line(aeps: Array, across: Scale, up: Scale) -> Markup:
    points = zip(map(across, range(1, len(aeps) + 1)), (up(aep) for aep in aeps.tolist()), strict=True)
    every = list(points)
    step = max(1, len(every) // 1000)
    kept = [*every[::step], every[-1]]
    return tag("path", {"d": "M" + "L".join(f"{x:g} {y:g}" for x, y in kept), "class": "line"})


def _level(y: float, words: str) -> Markup:
    line = tag("path", {"d": f"M{LEFT:g} {y:g}H{WIDTH - RIGHT:g}", "class": "median"}, tag("title", None, words))
    return join([line, text(WIDTH - RIGHT, y - 4, words, anchor="end")])
