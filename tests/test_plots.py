"""Pictures of layouts: what is drawn, and the files."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from leeward import plots
from leeward.errors import InputError
from leeward.layout import Area, LayoutProblem, optimise
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
    sea, white = pytest.approx(to_rgb(plots.SEA), abs=0.01), pytest.approx((1, 1, 1))
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
    assert ticks[5000] == "5"


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
        ({"start": ([1, 2], [3])}, "start has x and y of the shapes"),
    ],
)
def test_wrong_shapes(ax, wrong, says):
    with pytest.raises(InputError, match=says):
        plots.plot_layout(ax, ISLANDS, X, Y, **wrong)


def test_before_and_after(problem, solution):
    start = (X - 100, Y, problem.farm.aep(X - 100, Y))
    figure = plots.layout_figure(problem, solution, start)
    assert [ax.get_title().split(":")[0] for ax in figure.axes[:2]] == ["start", "optimised"]
    headline = figure.get_suptitle()
    assert f"{start[2]:.1f}" in headline
    assert f"{solution.aep_gwh:.1f}" in headline
    assert len(plots.layout_figure(problem, solution).axes) == 2  # one panel, one colour bar


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


def test_matplotlib_stays_as_it_was():
    program = (
        "import sys, leeward, leeward.layout, leeward.cli, leeward.campaign.builtin; "
        "assert 'matplotlib' not in sys.modules; "
        # as they are: a copy, or asking for the backend, would choose one and import pyplot
        "import matplotlib; before = str(dict.items(matplotlib.rcParams)); import leeward.plots; "
        "print(str(dict.items(matplotlib.rcParams)) == before, 'matplotlib.pyplot' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert result.stdout.strip() == "True False", result.stderr
