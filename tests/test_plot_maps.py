"""The best layout of each farm on one map: of few farms and of very many."""

import itertools
import re

import numpy as np
import pytest
import shapely
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure

from leeward import plots
from leeward.errors import InputError
from plot_cases import farm_at, farms_in_rows


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
    key = figure.axes[0].get_legend().get_window_extent()
    assert figure.bbox.x0 <= key.x0 < key.x1 <= figure.bbox.x1
    assert not key.overlaps(figure.axes[0].get_window_extent())


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


def test_no_farm(ax):
    with pytest.raises(InputError, match="no farm to draw"):
        plots.plot_best_layouts(ax, [])
