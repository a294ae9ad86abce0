"""The best layout of each farm on one map: of few farms and of very many."""

import itertools
import re
import warnings

import numpy as np
import pytest
import shapely
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure

from leeward import plots
from leeward.errors import InputError
from leeward.layout import Area, LayoutProblem
from leeward.plots import FarmLayout, PlacedTurbines
from leeward.wind import WindFarm
from plot_cases import blank_share, farm_at, farms_in_rows, unreadable


@pytest.fixture
def ax():
    figure = Figure(figsize=(6, 4))
    FigureCanvasAgg(figure)
    return figure.subplots()


def test_all_farms_are_on_one_map(ax):
    farms = [farm_at(0, 0.0, [0.01, 0.02, 0.03]), farm_at(1, 9000.0, [0.05, 0.04, 0.07])]
    drawn = plots.plot_best_layouts(ax, farms, title="both")
    dots = [c for c in ax.collections if isinstance(c, EllipseCollection)]
    assert [d.get_offsets().tolist() for d in dots] == [np.column_stack([f.x, f.y]).tolist() for f in farms]
    assert np.allclose(drawn.get_array(), [5, 4, 7])
    assert {tuple(np.round(d.get_clim(), 9)) for d in dots} == {(1.0, 7.0)}  # one colour bar holds for all
    assert ax.get_xlim()[0] < 0 < 13000 < ax.get_xlim()[1]
    assert ax.get_aspect() == 1.0
    key = [text.get_text() for text in ax.get_legend().get_texts()]
    assert key == ["0  farm 0: 100.5 GWh", "1  farm 1: 101.5 GWh"]


def test_labels_are_in_their_areas_and_hide_no_turbine(ax):
    farms = [farm_at(0, 0.0), farm_at(1, 9000.0)]
    assert plots.plot_best_layouts(ax, farms) is None  # nothing for a colour bar to say
    for farm in farms:
        (label,) = [text for text in ax.texts if text.get_text() == farm.label]
        assert farm.area.to_shapely().contains(shapely.Point(*label.get_position()))
        away = np.hypot(farm.x - label.get_position()[0], farm.y - label.get_position()[1])
        assert away.min() > 600


def test_the_key_of_many_farms_ends_somewhere(ax):
    plots.plot_best_layouts(ax, [farm_at(i, 9000.0 * i) for i in range(63)])
    assert len(ax.get_legend().get_texts()) == 61
    assert ax.get_legend().get_texts()[-1].get_text() == "and 3 more"


def test_labels_of_very_many_farms_do_not_lie_over_each_other(ax):
    farms = farms_in_rows(20, 6)
    plots.plot_best_layouts(ax, farms, key=False)
    names = {farm.label for farm in farms}
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text() in names]
    assert 30 < len(boxes) < 120
    assert not [1 for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]


@pytest.mark.slow
def test_a_map_of_very_many_farms_fills_the_figure():
    figure = plots.best_layouts_figure(farms_in_rows(11, 10))
    figure.draw_without_rendering()
    (ax,) = figure.axes
    shown, whole, key = ax.get_window_extent(), figure.bbox, ax.get_legend().get_window_extent()
    assert shown.width * shown.height > 0.5 * whole.width * whole.height
    assert 0.0 <= key.y0 < key.y1 <= whole.y1
    assert re.fullmatch(r"and \d+ more", ax.get_legend().get_texts()[-1].get_text())


def test_the_key_is_on_the_picture():
    figure = plots.best_layouts_figure([farm_at(i, 9000.0 * i, [0.1, 0.2, 0.1]) for i in range(3)], "a campaign")
    figure.canvas.draw()
    (key,) = figure.legends
    assert figure.bbox.x0 <= key.get_window_extent().x0 < key.get_window_extent().x1 <= figure.bbox.x1
    assert key.get_window_extent().y1 < figure.axes[0].get_window_extent().y0  # below the map, which is wide
    assert len(key.get_texts()) == 3


@pytest.mark.parametrize("loss", [-1e-14, 0.02])
def test_colours_show_no_rounding_errors(ax, loss):
    """One turbine, or wind without wakes: a scale from -1.05e-12 to -0.87e-12 per cent told nothing."""
    noise = loss + np.array([1e-15, -1e-15, 0.0])
    drawn = plots.plot_best_layouts(ax, [farm_at(0, 0.0, noise)])
    dots = plots.plot_layout(ax, farm_at(0, 0.0).area, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], wake_loss=noise)
    for lowest, highest in (drawn.get_clim(), dots.get_clim()):
        assert lowest >= 0.0
        assert lowest <= 100.0 * max(loss, 0.0) <= highest
        assert highest - lowest == pytest.approx(0.01)


NAME = "Hollandse Kust (west) Kavel VI, noordelijk deel, generic 15 MW, seed 2"


@pytest.mark.parametrize("size", [(30e3, 3e3), (3e3, 30e3), (12e3, 12e3)], ids=["wide", "tall", "square"])
@pytest.mark.parametrize(
    "kind",
    ["layout", "map", pytest.param("start", marks=pytest.mark.slow), pytest.param("flow", marks=pytest.mark.slow)],
)
def test_the_figure_follows_the_shape_of_the_area(tiny_site, turbine, kind, size):
    """Title, caption and labels neither touch nor end at the border, and no stripe of the figure is blank."""
    width, height = size
    area = Area.from_arrays(
        [5e5, 5e5 + width, 5e5 + width, 5e5], [6e6, 6e6, 6e6 + height, 6e6 + height], crs="EPSG:25831"
    )
    problem = LayoutProblem(WindFarm(tiny_site, turbine), area, 80, spacing_m=100.0)
    rng = np.random.default_rng(0)
    x, y = 5e5 + width * rng.random(80), 6e6 + height * rng.random(80)
    placed = PlacedTurbines(x, y, 1234.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns if the axes found no room
        if kind == "layout":
            figure = plots.layout_figure(problem, placed, name=NAME)
        elif kind == "start":
            figure = plots.layout_figure(problem, placed, (x, y, 1200.0))
        elif kind == "flow":
            figure = plots.flow_figure(problem, x, y, direction_deg=270.0, speed_m_s=9.0, points=30, name=NAME)
        else:
            figure = plots.best_layouts_figure([FarmLayout("0", NAME, area, x, y, 1.0, 240.0, rng.random(80))], NAME)
        assert unreadable(figure) == []
    assert blank_share(figure) < 0.06
    shown = figure.axes[0].get_window_extent()
    assert max(shown.width, shown.height) >= 4.9 * figure.dpi
    assert max(figure.get_size_inches()) < 12.5


@pytest.mark.parametrize(("east", "north"), [(6000.0, 0.0), (0.0, 5000.0)], ids=["wide", "tall"])
def test_a_map_of_farms_in_a_row(east, north):
    farms = [farm_at(i, east * i, [0.1, 0.2, 0.1], north * i) for i in range(20)]
    figure = plots.best_layouts_figure(farms, NAME)
    assert unreadable(figure) == []
    assert len(figure.legends[0].get_texts()) == 20


def test_no_farm(ax):
    with pytest.raises(InputError, match="no farms to draw"):
        plots.plot_best_layouts(ax, [])
