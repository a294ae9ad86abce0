"""Pictures of campaigns and of the wind: what is drawn is what was given."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import EllipseCollection, LineCollection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from leeward import plots
from leeward.errors import InputError
from leeward.layout import Area, LayoutProblem
from leeward.plots import AepCell, Convergence, FarmLayout, style
from leeward.plots.style import FAINT
from leeward.wind import Neighbours, Site, Turbine, WindFarm, wind_rose
from plot_cases import farm_at


@pytest.fixture
def ax():
    figure = Figure(figsize=(6, 4))
    FigureCanvasAgg(figure)
    return figure.subplots()


@pytest.fixture
def polar():
    figure = Figure(figsize=(5, 4))
    FigureCanvasAgg(figure)
    return figure.subplots(subplot_kw={"projection": "polar"})


# --- AEP over the seeds ----------------------------------------------------------------------------------------------


def points_in(ax):
    """Of every cell: x and y of its seeds, then of its best one."""
    drawn = [c.get_offsets() for c in ax.collections if isinstance(c, PathCollection)]
    return list(zip(drawn[::2], drawn[1::2], strict=True))


def test_every_seed_is_a_point_and_the_best_is_marked(ax):
    cells = [AepCell("a", "t", {0: 10.0, 3: 12.0, 5: 11.0}), AepCell("b", "t", {1: 9.0})]
    plots.plot_aep_distribution(ax, cells)
    (first, best), (second, _) = points_in(ax)
    assert first[:, 1].tolist() == [10, 12, 11]
    assert best.tolist() == [first[1].tolist()]
    assert np.abs(first[:, 0]).max() < 0.5
    assert second.tolist() == [[1.0, 9.0]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b"]
    assert {text.get_text() for text in ax.texts} == {"seed 3", "seed 1"}
    assert ax.get_ylabel() == "AEP, GWh"


def test_boxes_from_five_seeds_on(ax):
    values = {seed: 100.0 + seed**2 for seed in range(5)}
    plots.plot_aep_distribution(ax, [AepCell("a", "t", values), AepCell("a", "u", dict(list(values.items())[:4]))])
    heights = [sorted(set(line.get_ydata())) for line in ax.lines if len(line.get_ydata()) == 2]
    assert [104.0] in heights  # the median
    assert [100.0, 101.0] in heights  # a whisker, from the lowest to the lower quartile
    assert [109.0, 116.0] in heights
    assert len([line for line in ax.lines if len(line.get_ydata()) == 5]) == 1  # one box: the other has four seeds


def test_types_stand_side_by_side_in_one_order_and_colour(ax):
    cells = [AepCell(f, t, {0: 1.0}) for f in ("a", "b") for t in ("small", "large")]
    plots.plot_aep_distribution(ax, cells)
    at = [float(best[0, 0]) for _, best in points_in(ax)]
    assert at[0] < 0 < at[1] < 0.5 < at[2] < 1 < at[3]
    assert at[2] - at[0] == pytest.approx(1.0)
    colours = [to_hex(c.get_facecolor()[0]) for c in ax.collections[1::2]]
    assert colours[0] == colours[2] != colours[1] == colours[3]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["small", "large", "best seed"]


def test_deviation_from_the_median(ax):
    plots.plot_aep_distribution(ax, [AepCell("a", "t", {0: 99.0, 1: 100.0, 2: 102.0})], relative=True)
    ((points, _),) = points_in(ax)
    assert np.allclose(points[:, 1], [-1, 0, 2])
    assert ax.get_ylabel().endswith("%")


def test_sixty_cells_of_fifty_seeds_and_one_of_three():
    rng = np.random.default_rng(0)
    many = [
        AepCell(f"a_rather_long_name_{f}", f"type {t}", dict(enumerate(5000 + rng.normal(size=50))))
        for f in range(10)
        for t in range(6)
    ]
    figure = plots.aep_distribution_figure(many, "many")
    figure.canvas.draw()
    above, below = figure.axes
    assert len(points_in(above)) == 60
    assert not above.texts  # numbers of seeds would lie over each other
    # no two names touch: they are turned, and each is narrower than the way to the next
    names = below.get_xticklabels()
    assert {name.get_rotation() for name in names} == {40.0}
    assert not above.title.get_window_extent().overlaps(above.get_legend().get_window_extent())
    one = plots.aep_distribution_figure([AepCell("a", "t", {0: 1.0, 1: 2.0, 2: 3.0})])
    assert len(one.axes) == 1
    assert one.axes[0].get_xticklabels()[0].get_rotation() == 0.0


def named_cells(farms, types):
    return [
        AepCell(f"dk{farm}_tender_{farm}", f"generic {10 + kind} MW", {0: 5200.0 + 30 * farm + kind, 1: 5199.0})
        for farm in range(farms)
        for kind in range(types)
    ]


@pytest.mark.parametrize(("farms", "types"), [(2, 6), (2, 7), (3, 2), (1, 6)])
def test_a_figure_of_few_farms_has_room_for_its_legend_and_names(farms, types):
    figure = plots.aep_distribution_figure(named_cells(farms, types))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns if the axes found no room
        figure.canvas.draw()
    ax = figure.axes[0]
    assert ax.bbox.width > 0.6 * figure.bbox.width
    assert figure.bbox.contains(*ax.get_legend().get_window_extent().p1)
    for texts in (ax.texts, figure.axes[1].get_xticklabels()):
        ends = sorted((text.get_window_extent().x0, text.get_window_extent().x1) for text in texts)
        if not any(text.get_rotation() for text in texts):
            assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))


def test_of_a_lone_farm_the_title_tells_the_name():
    assert plots.aep_distribution_figure(named_cells(1, 3)).axes[0].get_title() == "dk0_tender_0"
    assert plots.aep_distribution_figure(named_cells(1, 1), "own").axes[0].get_title() == "own"
    assert plots.aep_distribution_figure(named_cells(2, 1)).axes[0].get_title() == ""


def test_more_types_than_colours_that_are_apart(ax):
    plots.plot_aep_distribution(ax, [AepCell("a", f"type {t}", {0: 1.0}) for t in range(9)])
    assert len({to_hex(c.get_facecolor()[0]) for c in ax.collections[1::2]}) == 9


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize(
    "aeps", [[5287.9] * 6, 5287.9 * (1 + 2.3e-16 * np.arange(6)), [5287.9]], ids=["equal", "nearly", "one"]
)
def test_an_axis_shows_no_rounding_errors(ax, aeps, relative):
    """AEPs that differ in their last bit only made an axis from -1e-14 to 3e-14 per cent."""
    plots.plot_aep_distribution(ax, [AepCell("a", "t", dict(enumerate(aeps)))], relative=relative)
    assert_plain_labels(ax)


def assert_plain_labels(ax):
    """All labels of the vertical axis are short, and differ."""
    ax.figure.canvas.draw()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert len(set(labels)) == len(labels) > 1
    assert not [label for label in labels if "e" in label or len(label) > 10 or label == "-0"]
    assert not ax.yaxis.get_offset_text().get_text()


def test_no_aep_at_all(ax):
    with pytest.raises(InputError, match="no AEP to draw"):
        plots.plot_aep_distribution(ax, [AepCell("a", "t", {})])


# --- convergence -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("recorded", "style"), [(3, "--"), (50, "-")])
def test_what_nobody_recorded_is_dashed(ax, recorded, style):
    history = np.array([np.arange(recorded), 90.0 + np.arange(recorded)])
    plots.plot_convergence(ax, [Convergence("a", ["descent"], [90.0], history)])
    assert ax.lines[0].get_linestyle() == style


@pytest.mark.parametrize("aeps", [[5287.9] * 3, [5287.9, 5287.9 * (1 + 2.3e-16), 5287.9], [5287.9]])
def test_an_aep_that_hardly_rises(ax, aeps):
    history = np.array([np.arange(1.0, len(aeps) + 1), aeps])
    plots.plot_convergence(ax, [Convergence("a", ["random"], [5287.9], history)])
    assert_plain_labels(ax)


HISTORY = np.array([[0.0, 10.0, 20.0, 30.0], [100.0, 104.0, 108.0, 109.0]])


def curve(label, lift=0.0, history=True):
    return Convergence(
        label,
        ["start", "descent"],
        [100.0 + lift, 108.0 + lift],
        HISTORY + np.array([[0], [lift]]) if history else None,
    )


def long_lines(ax):
    return [line for line in ax.lines if len(line.get_xdata()) > 1]


def marks(ax):
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines if len(line.get_xdata()) == 1]


def test_over_the_steps(ax):
    plots.plot_convergence(ax, [curve("a"), curve("b", 1.0)], title="two")
    lower, upper = long_lines(ax)  # the best is on top
    assert lower.get_ydata().tolist() == [100, 104, 108, 109]
    assert upper.get_xdata().tolist() == [0, 10, 20, 30]
    assert marks(ax) == [(0, 100), (20, 108), (0, 101), (20, 109)]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["b", "a", "end of start", "end of descent"]
    assert ax.get_xlim()[0] == 0


def test_phases_are_marked_by_their_feasible_layouts(ax):
    """The layout in hand may have had more before, as long as it was not feasible."""
    history = np.array([[0.0, 10.0, 20.0, 21.0, 30.0], [100.0, 109.5, 110.0, 108.0, 108.5]])
    plots.plot_convergence(ax, [Convergence("a", ["start", "descent", "polish"], [100.0, 108.0, 108.5], history)])
    assert marks(ax) == [(0, 100), (21, 108), (30, 108.5)]
    assert "current layout, feasible or not" in ax.get_xlabel()


def test_over_the_phases_where_one_has_no_history(ax):
    plots.plot_convergence(ax, [curve("a"), curve("b", 1.0, history=False)])
    assert [line.get_ydata().tolist() for line in long_lines(ax)] == [[100, 108], [101, 109]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["start", "descent"]


def test_phases_that_differ_are_not_mixed_up(ax):
    other = Convergence("b", ["random", "descent"], [90.0, 107.0])
    plots.plot_convergence(ax, [curve("a"), other], over="phases")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["start", "descent", "random"]
    assert {tuple(line.get_xdata()) for line in long_lines(ax)} == {(0, 1), (2, 1)}


def test_the_best_of_many_stands_out(ax):
    plots.plot_convergence(ax, [curve(f"s{i}", float(i)) for i in range(20)])
    widths = [line.get_linewidth() for line in long_lines(ax)]
    assert widths[-1] > max(widths[:-1])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[0] == "s19, the\nbest of 20"
    assert len(texts) == 3


@pytest.mark.parametrize(
    ("curves", "over", "says"),
    [
        ([], None, "no results to draw"),
        ([curve("a", history=False)], "steps", "a has no history"),
        ([Convergence("theirs")], None, "theirs has no AEP by phase"),
        ([Convergence("a", ["one"], [1.0, 2.0])], None, "1 phases and 2 AEPs"),
    ],
)
def test_what_cannot_be_drawn(ax, curves, over, says):
    with pytest.raises(InputError, match=says):
        plots.plot_convergence(ax, curves, over=over)


# --- wind roses ------------------------------------------------------------------------------------------------------


def test_a_weibull_site_has_its_own_sectors():
    frequency, scale = np.array([0.05, 0.1, 0.15, 0.2, 0.1, 0.4]), np.array([8.0, 9.0, 10.0, 9.0, 8.0, 11.0])
    site = Site.from_weibull(frequency, scale, [2.0] * 6, 0.1)
    rose = wind_rose(site).frequency
    assert rose.shape == (6, 6)
    np.testing.assert_allclose(rose.sum(axis=1), frequency, rtol=1e-12)
    between = np.exp(-((5 / scale) ** 2)) - np.exp(-((10 / scale) ** 2))
    np.testing.assert_allclose(rose[:, 1], frequency * between, rtol=1e-12)


def test_other_sectors_of_a_weibull_site_are_counted():
    """From bins of 1 degree and 1 m/s, of which those at a border are shared."""
    frequency = np.array([0.05, 0.1, 0.15, 0.2, 0.1, 0.4])
    site = Site.from_weibull(frequency, [9.0] * 6, [2.0] * 6, 0.1)
    rose = wind_rose(site, 3).frequency
    covered = np.exp(-((2.5 / 9) ** 2)) - np.exp(-((25.5 / 9) ** 2))  # of the speeds, by the bins
    expected = frequency[::2] + 0.5 * (frequency[1::2] + np.roll(frequency[1::2], 1))
    np.testing.assert_allclose(rose.sum(axis=1), expected * covered, rtol=0.02)
    assert rose.sum() == pytest.approx(site.conditions.weight.sum(), rel=1e-12)
    between = np.exp(-((5 / 9) ** 2)) - np.exp(-((10 / 9) ** 2))
    assert rose.sum(axis=0)[1] == pytest.approx(between, rel=5e-3)
    linear = Site.from_weibull(frequency, [9.0] * 6, [2.0] * 6, 0.1, interpolation="linear")
    assert wind_rose(linear).frequency.sum() == pytest.approx(linear.conditions.weight.sum(), rel=1e-12)


def test_a_table_is_drawn_in_its_own_directions():
    probability = np.arange(1.0, 9.0).reshape(4, 2) / 36
    site = Site.from_table([0, 90, 180, 270], [4.0, 8.0], probability)
    rose = wind_rose(site, speed_classes=[0, 6, 12]).frequency
    np.testing.assert_allclose(rose, np.column_stack([probability, np.zeros(4)]), atol=1e-15)
    # twice as many sectors: every second one has half of what its two neighbours' bins had before
    finer = wind_rose(site, 8, [0, 6, 12]).frequency
    np.testing.assert_allclose(finer[::2], 0.5 * rose)
    np.testing.assert_allclose(finer[1::2], 0.25 * (rose + np.roll(rose, -1, axis=0)))


def test_a_time_series_is_counted():
    site = Site.from_time_series([359.0, 14.0, 16.0, 200.0], [3.0, 30.0, 7.0, 7.0])
    rose = wind_rose(site).frequency
    assert rose.shape == (12, 6)
    assert rose[0].tolist() == [0.25, 0, 0, 0, 0, 0.25]
    assert rose[1].tolist() == [0, 0.25, 0, 0, 0, 0]
    assert rose[7].tolist() == [0, 0.25, 0, 0, 0, 0]
    assert rose.sum() == 1.0


def test_bars_show_the_rose(polar):
    site = Site.from_table([0, 90, 180, 270], [4.0, 8.0], np.full((4, 2), 0.1))
    plots.plot_wind_rose(polar, site, title="some wind", speed_classes=[0, 6])
    bars = polar.patches
    assert [bar.get_height() for bar in bars] == pytest.approx([10.0] * 8)
    assert [bar.get_y() for bar in bars] == pytest.approx([0.0] * 4 + [10.0] * 4)  # one on the other
    assert polar.get_theta_direction() == -1
    assert polar.get_theta_offset() == pytest.approx(np.pi / 2)
    assert [text.get_text() for text in polar.get_legend().get_texts()] == ["6 or more", "0 to 6"]
    assert "20.0 % of the time" in polar.texts[-1].get_text()


def test_no_bar_hides_the_numbers_of_a_rose(polar):
    plots.plot_wind_rose(polar, Site.from_table([0, 90, 180, 270], [4.0, 8.0], np.full((4, 2), 0.125)))
    numbers = [text for text in polar.texts if text.get_text().endswith(" %")]
    assert [text.get_text() for text in numbers] == ["10 %", "20 %"]
    assert min(text.get_zorder() for text in numbers) > max(bar.get_zorder() for bar in polar.patches)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"sectors": 0}, "sectors is 0"), ({"speed_classes": [5, 3]}, "expected increasing speeds")],
)
def test_wrong_roses(polar, tiny_site, wrong, says):
    with pytest.raises(InputError, match=says):
        plots.plot_wind_rose(polar, tiny_site, **wrong)


def test_a_rose_needs_polar_axes(ax, tiny_site):
    with pytest.raises(InputError, match="needs polar axes"):
        plots.plot_wind_rose(ax, tiny_site)


# --- flow maps -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problem(tiny_site):
    area = Area.from_arrays([0, 4000, 4000, 0], [0, 0, 2000, 2000])
    return LayoutProblem(WindFarm(tiny_site, Turbine.generic(15, 240, 150)), area, 2, spacing_diameters=3)


def test_the_grid_covers_the_area(problem):
    at_x, at_y = plots.flow_grid(problem.area, 50)
    assert at_x.shape == at_y.shape == (29, 50)
    assert at_x.min() < 0 < 4000 < at_x.max()
    assert at_y.min() < 0 < 2000 < at_y.max()
    assert np.diff(at_x[0]) == pytest.approx(np.diff(at_y[:, 0])[0], rel=0.02)
    with pytest.raises(InputError, match="points is 1"):
        plots.flow_grid(problem.area, 1)


def test_a_flow_map_shows_the_wind_and_the_rotors(ax, problem):
    at_x, at_y = plots.flow_grid(problem.area, 30)
    speeds = problem.farm.flow([1000.0], [1000.0]).speed(at_x, at_y, direction_deg=90.0, speed_m_s=9.0)
    drawn = plots.plot_flow(
        ax, at_x, at_y, speeds, x=[1000.0], y=[1000.0], area=problem.area, rotor_diameter_m=240.0, direction_deg=90.0
    )
    assert np.array_equal(np.reshape(drawn.get_array(), speeds.shape), speeds)
    assert drawn.get_rasterized()  # else a vector file would hold every point of the map
    assert drawn.norm.vmax == 9.0
    rotors = [c for c in ax.collections if isinstance(c, LineCollection)][-1]
    (rotor,) = rotors.get_segments()
    assert np.allclose(sorted(rotor[:, 1]), [880, 1120])  # across a wind from the east
    assert np.allclose(rotor[:, 0], 1000)
    assert ax.get_xlim() == (at_x.min(), at_x.max())


def test_a_wake_is_downwind_on_the_map(problem):
    """West of the turbine, in a wind from the east."""
    at_x, at_y = plots.flow_grid(problem.area, 60)
    speeds = problem.farm.flow([2000.0], [1000.0]).speed(at_x, at_y, direction_deg=90.0, speed_m_s=9.0)
    slowest = np.unravel_index(np.argmin(speeds), speeds.shape)
    assert at_x[slowest] < 2000
    assert abs(at_y[slowest] - 1000) < 150


def test_the_mean_has_circles_for_turbines(ax, problem):
    at_x, at_y = plots.flow_grid(problem.area, 20)
    plots.plot_flow(ax, at_x, at_y, np.full(at_x.shape, 8.0), x=[1000.0, 2000.0], y=[500.0, 900.0])
    (dots,) = [c for c in ax.collections if isinstance(c, EllipseCollection)]
    assert dots.get_offsets().tolist() == [[1000, 500], [2000, 900]]


def test_colours_of_a_wind_without_wakes(ax, problem):
    at_x, at_y = plots.flow_grid(problem.area, 10)
    speeds = 9.0 + 1e-14 * np.arange(at_x.size).reshape(at_x.shape)
    norm = plots.plot_flow(ax, at_x, at_y, speeds).norm
    assert norm.vmax - norm.vmin == pytest.approx(0.01)


def test_neighbours_are_drawn_in_grey_where_they_are_near(problem, ax):
    """Within a third of the map's side; the map grows so that they are on it."""
    turbine = problem.turbines[0]
    left, low, right, high = problem.area.bounds
    far = right + 2.0 * (right - left)
    near_x, near_y = right + 0.3 * max(right - left, high - low), low
    others = Neighbours([near_x, far], [near_y, near_y], turbine)
    farm = WindFarm(problem.farm.site, turbine, problem.farm.wake_model, neighbours=others)
    beside = LayoutProblem(farm, problem.area, problem.n_turbines, spacing_m=100.0)
    x, y = [left + 300.0, left + 1200.0], [low + 300.0, low + 900.0]

    def grey_in(axes):
        found = [c for c in axes.collections if isinstance(c, EllipseCollection)]
        return [c.get_offsets().tolist() for c in found if to_hex(c.get_facecolor()[0]) == FAINT]

    layout = plots.layout_figure(beside, plots.PlacedTurbines(np.array(x), np.array(y), 1.0)).axes[0]
    flow = plots.flow_figure(beside, x, y, points=20).axes[0]
    here = FarmLayout("0", "here", problem.area, x, y, 1.0, 100.0)
    together = plots.best_layouts_figure([here], neighbours=([near_x, far], [near_y, near_y])).axes[0]
    for axes in (layout, flow, together):
        assert grey_in(axes) == [[[near_x, near_y]]]
        assert near_x < axes.get_xlim()[1] < far
        assert "grey: existing turbines" in axes.get_xlabel()
    plots.plot_layout(ax, problem.area, x, y)
    assert "grey" not in ax.get_xlabel()
    one = plots.flow_figure(beside, x, y, direction_deg=270.0, speed_m_s=9.0, points=20).axes[0]
    rotors = {to_hex(c.get_color()[0]): len(c.get_segments()) for c in one.collections if isinstance(c, LineCollection)}
    assert (rotors[FAINT], rotors["#000000"]) == (1, 2)


def test_a_long_name_is_not_cut_off(problem):
    name = "a name as people write them in shapefiles: Hollandse Kust (west) Kavel VI, noordelijk deel, 15 MW, seed 2"
    placed = plots.PlacedTurbines(np.array([1000.0, 2500.0]), np.array([500.0, 600.0]), 1.0)
    flow = plots.flow_figure(problem, placed.x, placed.y, direction_deg=270.0, speed_m_s=9.0, points=20, name=name)
    for figure in (plots.layout_figure(problem, placed, name=name), flow):
        figure.canvas.draw()
        (words,) = (text for text in figure.texts if "shapefiles" in text.get_text())
        assert words.get_text().split() == name.split()
        assert figure.bbox.x0 <= words.get_window_extent().x0 < words.get_window_extent().x1 <= figure.bbox.x1
    farm = replace(farm_at(0, 0.0), name=3 * name)
    assert plots.best_layouts_figure([farm]).get_figwidth() < 13.0


@pytest.mark.parametrize(
    "name", [10 * "a long name of a campaign ", 60 * "風", 12 * "NORTH_SEA_"], ids=["words", "wide", "a word"]
)
def test_a_long_name_of_a_campaign_is_not_cut_off(name):
    site = Site.from_table([270.0], [9.0], [[1.0]])
    farms = [farm_at(i, 9000.0 * i, [0.1, 0.2, 0.1]) for i in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no font may know these letters
        for figure in (plots.best_layouts_figure(farms, name), plots.wind_rose_figure(site, name)):
            figure.draw_without_rendering()
            title = figure.axes[0].title
            assert "".join(title.get_text().split()) == "".join(name.split())
            extent = title.get_window_extent()
            assert 0.0 <= extent.x0 < extent.x1 <= figure.bbox.x1
            assert extent.y1 <= figure.bbox.y1


LETTER = "\u1d81"  # which matplotlib's own font does not have, and another one that comes with it has


def titled(words):
    figure = Figure(figsize=(2, 1))
    figure.suptitle(words, fontweight="bold")
    return figure


def test_letters_are_taken_from_fonts_that_are_there(tmp_path, monkeypatch):
    """Only from those: of others matplotlib would warn."""
    monkeypatch.setattr(style, "FALLBACKS", ("No Such Font", "STIXGeneral"))
    plain, odd = titled("plain ×"), titled(f"odd {LETTER}")
    for ending in ("png", "svg"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plots.save_figure(tmp_path / f"plain.{ending}", plain)
            plots.save_figure(tmp_path / f"odd.{ending}", odd)
    assert odd.texts[0].get_fontfamily() == [*plain.texts[0].get_fontfamily(), "STIXGeneral"]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_letters_that_no_font_has_are_told_once(tmp_path, monkeypatch, ending):
    """Of an SVG file whoever shows it has the fonts."""
    monkeypatch.setattr(style, "FALLBACKS", ())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plots.save_figure(tmp_path / f"a.{ending}", titled(f"\U000e0f0f{LETTER}\n{LETTER} and 35 °"))
    assert [warning.category for warning in told] == ([] if ending == "svg" else [style.MissingLettersWarning])
    assert all(f"characters {LETTER}," in str(warning.message) for warning in told)


def test_dollars_in_names_are_no_formulas(problem):
    """Of "$x_1$" the dollars vanished, and "$\\nothing$" ended in an error of matplotlib's."""
    name = r"costs $\nothing$ at all"
    placed = plots.PlacedTurbines(np.array([1000.0, 2500.0]), np.array([500.0, 600.0]), 1.0)
    farm = replace(farm_at(0, 0.0), label=name, name=name)
    for figure in (
        plots.layout_figure(problem, placed, name=name),
        plots.best_layouts_figure([farm], name),
        plots.aep_distribution_figure([AepCell(f, t, {0: 1.0}) for f in (name, "b") for t in (name, "u")], name),
        plots.wind_rose_figure(problem.farm.site, name),
    ):
        figure.canvas.draw()


def test_whole_flow_figures(problem):
    x, y = np.array([1000.0, 2500.0]), np.array([500.0, 600.0])
    one = plots.flow_figure(problem, x, y, direction_deg=630.0, speed_m_s=9.0, height_m=40.0, points=40)
    assert one.axes[0].get_title() == "wind from 270°, 9 m/s"
    assert one.axes[1].get_ylabel() == "wind speed 40 m above ground, m/s"
    mean = plots.flow_figure(problem, x, y, points=40, name="a farm")
    free = problem.farm.flow(x, y).free_mean_speed()
    assert f"free wind: {free:.2f} m/s" in mean.axes[0].get_title()
    assert mean.axes[1].get_ylabel() == "wind speed 150 m above ground, m/s"
    with pytest.raises(InputError, match="must be given together"):
        plots.flow_figure(problem, x, y, direction_deg=270.0)


def test_a_flow_map_needs_a_grid(ax):
    with pytest.raises(InputError, match=r"shapes \(3,\), \(3,\) and \(2,\)"):
        plots.plot_flow(ax, [1, 2, 3], [1, 2, 3], [1, 2])
