"""Pictures of layouts: what is drawn, and the files."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from leeward import plots
from leeward.errors import InputError
from leeward.layout import Area, LayoutProblem, optimise
from leeward.plots.style import SEA, new_figure
from leeward.wind import WindFarm

ISLANDS = Area.union(
    [
        Area.from_arrays([0, 6000, 6000, 0], [0, 0, 4000, 4000], holes=[([2000, 3000, 3000], [1000, 1000, 3000])]),
        Area.circle(9000, 2000, 1800),
    ]
)
X, Y = np.array([500.0, 5000.0, 9000.0]), np.array([500.0, 3000.0, 2500.0])


@pytest.fixture(scope="module")
def problem(tiny_site, turbine):
    return LayoutProblem(WindFarm(tiny_site, turbine), ISLANDS, 3, spacing_diameters=3)


@pytest.fixture(scope="module")
def solution(problem):
    return optimise(problem, 0, recipe="start", start=(X, Y))


@pytest.fixture
def ax():
    figure = Figure(figsize=(8, 5))
    FigureCanvasAgg(figure)
    return figure.subplots()


def colour_at(ax, x, y):
    """Of the drawing, at a point of the map."""
    ax.figure.canvas.draw()
    picture = np.asarray(ax.figure.canvas.buffer_rgba())
    column, row = ax.transData.transform((x, y)).astype(int)
    return tuple(picture[picture.shape[0] - 1 - row, column, :3] / 255.0)


def test_the_area_is_drawn_with_its_holes_and_regions(ax):
    plots.plot_layout(ax, ISLANDS, X, Y)
    sea, white = pytest.approx(to_rgb(SEA), abs=0.01), pytest.approx((1, 1, 1))
    assert colour_at(ax, 1000, 2000) == sea
    assert colour_at(ax, 9500, 1500) == sea
    assert colour_at(ax, 2800, 1500) == white  # the hole
    assert colour_at(ax, 6600, 2000) == white  # between the regions
    assert ax.get_aspect() == 1.0
    assert ax.get_xlim()[0] < ax.get_xlim()[1]
    assert ax.get_ylim()[0] < ax.get_ylim()[1]


def test_the_turbines_are_where_they_stand(ax):
    loss = [0.01, 0.05, 0.03]
    dots = plots.plot_layout(ax, ISLANDS, X, Y, wake_loss=loss, rotor_diameter_m=240, title="three")
    assert np.array_equal(dots.get_offsets(), np.column_stack([X, Y]))
    assert np.allclose(dots.get_array(), [1, 5, 3])
    assert dots.get_clim() == (1, 5)
    assert ax.get_title() == "three"
    assert len({colour_at(ax, x, y) for x, y in zip(X, Y, strict=True)}) == 3


def test_ticks_are_kilometres(ax):
    plots.plot_layout(ax, ISLANDS, X, Y)
    ax.figure.canvas.draw()
    ticks = {int(t): label.get_text() for t, label in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)}
    assert ticks[4000] == "4"


def test_lines_lead_from_the_start_where_it_corresponds(ax):
    plots.plot_layout(ax, ISLANDS, X, Y, start=(X + 300, Y))
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert [s.tolist() for s in lines.get_segments()] == [[[x + 300, y], [x, y]] for x, y in zip(X, Y, strict=True)]
    ax.clear()
    plots.plot_layout(ax, ISLANDS, X, Y, start=(X[:2], Y[:2]))
    assert not any(isinstance(c, LineCollection) for c in ax.collections)


def test_spacing_is_drawn_where_it_can_be_seen(ax):
    plots.plot_layout(ax, ISLANDS, X, Y, spacing_m=720)
    assert len(ax.collections) == 2
    assert "720 m" in ax.get_xlabel()
    ax.clear()
    plots.plot_layout(ax, ISLANDS, X, Y, spacing_m=100)
    assert len(ax.collections) == 1


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"wake_loss": [0.1, 0.2]}, "wake_loss has the shape"),
        ({"start": ([1, 2], [3])}, "start has x and y of shapes"),
    ],
)
def test_wrong_shapes(ax, wrong, says):
    with pytest.raises(InputError, match=says):
        plots.plot_layout(ax, ISLANDS, X, Y, **wrong)


def test_before_and_after(problem, solution):
    start = (X - 100, Y, problem.farm.aep_gwh(X - 100, Y))
    figure = plots.layout_figure(problem, solution, start)
    assert [ax.get_title().split("\n")[0] for ax in figure.axes[:2]] == ["start", "optimised"]
    headline = figure.get_suptitle()
    assert f"{start[2]:.1f}" in headline
    assert f"{solution.aep_gwh:.1f}" in headline
    alone = plots.layout_figure(problem, solution, name="three")
    assert len(alone.axes) == 2  # one panel, one colour bar
    assert alone.get_suptitle() == "three"
    assert alone.axes[0].get_title() == f"3 turbines of 15 MW\n{solution.aep_gwh:.1f} GWh a year, wake loss " + (
        f"{100 * solution.wake_loss:.2f} %\n45 MW installed, capacity factor {solution.aep_gwh / 45 / 8.76:.2%}"
    )


@pytest.mark.parametrize(
    ("name", "begins"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("a.b.PNG", b"\x89PNG")]
)
def test_files(tmp_path, problem, solution, name, begins):
    plots.save_layout_picture(tmp_path / name, problem, solution)
    assert (tmp_path / name).read_bytes().startswith(begins)
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["layout.gif", "layout", ".png"])
def test_other_endings(tmp_path, problem, solution, name):
    with pytest.raises(InputError, match=r"expected one of \.png, \.svg, \.pdf"):
        plots.save_layout_picture(tmp_path / name, problem, solution)
    assert not list(tmp_path.iterdir())


def test_a_single_turbine(tmp_path, tiny_site, turbine):
    alone = LayoutProblem(WindFarm(tiny_site, turbine), Area.circle(0, 0, 500), 1, spacing_diameters=3)
    plots.save_layout_picture(tmp_path / "one.png", alone, optimise(alone, 0, recipe="start", start=([0.0], [0.0])))
    assert (tmp_path / "one.png").stat().st_size > 1000


def test_text_stays_text(tmp_path):
    """Vector files can be searched and edited; and one picture is one file, whenever it is made."""
    for name in ("a.svg", "b.svg", "a.pdf", "b.pdf"):
        figure = new_figure(3, 2)
        figure.subplots().set_title("north, km (Ærø)")
        plots.save_figure(tmp_path / name, figure)
    assert ">north, km (Ærø)</text>" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert b"CIDFontType2" in (tmp_path / "a.pdf").read_bytes()  # a font of letters, not of drawings
    for ending in ("svg", "pdf"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_saving_in_threads_leaves_no_setting_behind(tmp_path):
    before = dict(dict.items(matplotlib.rcParams))
    with ThreadPoolExecutor(4) as pool:
        figures = [new_figure(2, 2) for _ in range(8)]
        list(pool.map(lambda i: plots.save_figure(tmp_path / f"{i}.svg", figures[i]), range(8)))
    assert dict(dict.items(matplotlib.rcParams)) == before


def test_north_is_beside_an_area_that_fills_its_corners(ax):
    square = Area.from_arrays([0, 1000, 1000, 0], [0, 0, 1000, 1000])
    plots.plot_layout(ax, square, [500.0], [500.0], title="a title that is so wide that it goes from corner to corner")
    ax.figure.canvas.draw()
    (letter,) = [text for text in ax.texts if text.get_text() == "N"]
    assert letter.get_window_extent().x0 > ax.get_window_extent().x1
    assert not letter.get_window_extent().overlaps(ax.title.get_window_extent())


def test_matplotlib_stays_as_it_was():
    program = (
        "import sys, leeward, leeward.layout, leeward.cli, leeward.campaign.builtin; "
        "assert 'matplotlib' not in sys.modules; "
        # as they are: a copy, or asking for the backend, would choose one and import pyplot
        "import matplotlib; before = str(dict.items(matplotlib.rcParams)); import leeward.plots; "
        "print(str(dict.items(matplotlib.rcParams)) == before, 'matplotlib.pyplot' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert result.stdout.strip() == "True False", result.stderr
