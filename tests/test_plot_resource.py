"""`leeward plot resource`, and its figure: maps of wind that varies over the site."""

import shutil

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import EllipseCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch

import field_cases as cases
from foreign_files import write_own_file
from leeward import open_layouts, plots
from leeward.campaign import load
from leeward.errors import InputError
from leeward.layout import Area
from leeward.plots.resource import QUANTITIES
from leeward.wind import Site, Turbine, resource_map
from leeward.wind.field_data import Shear
from plot_cases import unreadable
from resource_cases import make_field_campaign
from run_cases import leeward_here, make_campaign

TURBINE = Turbine.generic(rated_power_mw=5, rotor_diameter_m=130, hub_height_m=100, name="five")
FEW = {"directions": cases.CENTRES, "speeds": [5.0, 8.0, 11.0, 14.0]}
EAST, NORTH = cases.EAST, cases.NORTH


def square(east, north, side):
    left, low = EAST + east, NORTH + north
    return Area.from_arrays([left, left + side, left + side, left], [low, low, low + side, low + side])


def everything(**options):
    """A site with all quantities that a map can show."""
    data = cases.with_elevation(cases.with_speed_up(cases.weibull_field(), heights=cases.HEIGHTS))
    return Site.from_dataset(data, **FEW, **options)


@pytest.fixture
def ax():
    figure = Figure(figsize=(6, 5))
    FigureCanvasAgg(figure)
    return figure.subplots()


def mesh_of(figure):
    (mesh,) = [c for c in figure.axes[0].collections if isinstance(c, QuadMesh)]
    return mesh


def discs(figure, colour="#ffffff"):
    """The turbines of each layout, in the order in which they were drawn."""
    found = [c for c in figure.axes[0].collections if isinstance(c, EllipseCollection)]
    return [c.get_offsets().tolist() for c in found if to_hex(c.get_facecolor()[0]) == colour]


def outlines(figure):
    return [p for p in figure.axes[0].patches if isinstance(p, PathPatch)]


# --- the figure ------------------------------------------------------------------------------------------------------


def test_what_is_drawn_is_what_was_given(ax):
    at_x, at_y = np.meshgrid(np.linspace(0.0, 3000.0, 4), np.linspace(0.0, 2000.0, 3))
    values = np.arange(12.0).reshape(3, 4)
    values[0, 0] = np.nan
    area = Area.from_arrays([500, 1500, 1500, 500], [500, 500, 1500, 1500])
    layouts = [([600.0, 700.0], [600.0, 900.0]), ([1200.0], [1200.0])]
    drawn = plots.plot_resource(
        ax, at_x, at_y, values, areas=[area], layouts=layouts, neighbours=([2500.0, 9e9], [100.0, 0.0]), title="wind"
    )
    shown = np.ma.filled(np.ma.reshape(drawn.get_array(), values.shape), np.nan)
    np.testing.assert_array_equal(shown, values)
    assert drawn.get_rasterized()  # else a vector file would hold every point of the map
    assert (drawn.norm.vmin, drawn.norm.vmax) == (1.0, 11.0)
    assert discs(ax.figure) == [[[600, 600], [700, 900]], [[1200, 1200]]]
    assert discs(ax.figure, plots.style.FAINT) == [[[2500, 100]]]
    (outline,) = outlines(ax.figure)
    assert outline.get_path().get_extents().bounds == (500, 500, 1000, 1000)
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 3000), (0, 2000))
    assert ax.get_xlabel() == "east, km\ngrey: existing turbines\nblank: the wind is not known"


def test_values_without_differences_have_colours(ax):
    at_x, at_y = np.meshgrid([0.0, 1.0], [0.0, 1.0])
    norm = plots.plot_resource(ax, at_x, at_y, np.full((2, 2), 8.0)).norm
    assert norm.vmin < norm.vmax
    assert "blank" not in ax.get_xlabel()


def test_a_map_needs_a_grid_of_values(ax):
    with pytest.raises(InputError, match=r"shapes \(3,\), \(3,\) and \(2,\)"):
        plots.plot_resource(ax, [1, 2, 3], [1, 2, 3], [1, 2])
    with pytest.raises(InputError, match="no point of the map has a value"):
        plots.plot_resource(ax, *np.meshgrid([0, 1], [0, 1]), np.full((2, 2), np.nan))


EXPECTED = {
    "mean-speed": (lambda s, x, y: resource_map.mean_speed_m_s(s, x, y, 100.0), "mean free wind speed{}, m/s"),
    "gross-yield": (lambda s, x, y: resource_map.gross_aep_gwh(s, TURBINE, x, y), "gross yield{}, GWh a year"),
    "weibull-a": (lambda s, x, y: resource_map.weibull_a_m_s(s, x, y, 100.0), "Weibull scale A{}, m/s"),
    "weibull-k": (lambda s, x, y: resource_map.weibull_k(s, x, y, 100.0), "Weibull shape k{}"),
    "frequency": (lambda s, x, y: 100 * resource_map.sector_frequency(s, x, y, 100.0, 2), "frequency{}, % of the time"),
    "speed-up": (lambda s, x, y: resource_map.speed_up(s, x, y, 100.0), "speed-up{}"),
    "turbulence": (
        lambda s, x, y: 100 * resource_map.turbulence_intensity(s, x, y, 100.0),
        "mean turbulence intensity{}, %",
    ),
    "elevation": (lambda s, x, y: resource_map.elevation_m(s, x, y), "elevation of the terrain, m"),
}


SOME = ("mean-speed", "frequency")  # the others are drawn in the same way


@pytest.mark.parametrize("quantity", [q if q in SOME else pytest.param(q, marks=pytest.mark.slow) for q in QUANTITIES])
def test_every_quantity(quantity):
    site, sector = everything(), 2 if quantity == "frequency" else None
    areas = [square(500.0, 500.0, 1500.0), square(3500.0, 2000.0, 2000.0)]
    figure = plots.resource_figure(
        site, TURBINE, areas, quantity=quantity, sector=sector, points=12, threads=2, name="a site"
    )
    values, label = EXPECTED[quantity]
    mesh = mesh_of(figure)
    at_x, at_y = np.moveaxis(mesh.get_coordinates(), 2, 0)
    shown = np.ma.filled(np.ma.reshape(mesh.get_array(), at_x.shape), np.nan)
    np.testing.assert_allclose(shown, values(site, at_x, at_y), rtol=1e-12)
    assert figure.axes[1].get_ylabel() == label.format(" at 100 m above ground")
    assert len(outlines(figure)) == 2
    assert not discs(figure)
    assert figure.get_suptitle() == "a site"
    assert not unreadable(figure)


def titled(quantity, **options):
    return plots.resource_figure(
        everything(), TURBINE, [square(500, 500, 1500)], quantity=quantity, points=5, **options
    )


@pytest.mark.slow
def test_titles_say_what_is_averaged():
    titles = {
        ("mean-speed", None): "all directions, wind speeds of 5 to 14 m/s",
        ("mean-speed", 0): "wind from 337.5° to 22.5°, wind speeds of 5 to 14 m/s",
        ("gross-yield", 3): "one five without wakes, wind from 112.5° to 157.5°",
        ("weibull-a", None): "mean of all sectors, weighted by frequency",
        ("elevation", None): "",
    }
    for (quantity, sector), title in titles.items():
        assert titled(quantity, sector=sector).axes[0].get_title() == title
    higher = titled("weibull-k", height_m=150.0)
    assert higher.axes[1].get_ylabel() == "Weibull shape k at 150 m above ground"


@pytest.mark.slow
def test_the_margin_ends_with_the_grid():
    inside, at_border, beyond = square(2000, 1500, 1000), square(100, 1500, 1000), square(-300, 1500, 1000)
    limits = {}
    for name, area in (("inside", inside), ("border", at_border), ("beyond", beyond)):
        figure = plots.resource_figure(everything(), TURBINE, [area], points=30)
        limits[name] = figure.axes[0].get_xlim()
        assert np.ma.is_masked(mesh_of(figure).get_array()) is (name == "beyond")
    assert limits["inside"] == pytest.approx((EAST + 1850, EAST + 3150))
    assert limits["border"] == pytest.approx((EAST, EAST + 1250))
    assert limits["beyond"] == pytest.approx((EAST - 450, EAST + 850))
    wide = plots.resource_figure(everything(extrapolate=True), TURBINE, [at_border], points=5)
    assert wide.axes[0].get_xlim() == pytest.approx((EAST - 50, EAST + 1250))


UNIFORM = Site.from_dataset(cases.uniform_weibull(), **FEW)


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("site", [UNIFORM, UNIFORM.with_shear(Shear.power(0.1, 100.0))], ids=["uniform", "shear"])
def test_wind_that_is_the_same_everywhere_has_no_map(site, quantity):
    with pytest.raises(InputError, match="the wind of this site is the same everywhere"):
        plots.resource_figure(site, TURBINE, [square(500, 500, 1500)], quantity=quantity, sector=1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"quantity": "cake"}, "quantity is 'cake'; expected one of mean-speed, gross-yield, weibull-a"),
        ({"quantity": "frequency"}, "frequency is that of one sector; give a sector from 0 to 7"),
        ({"quantity": "elevation", "sector": 1}, "elevation does not depend on the wind direction"),
        ({"quantity": "elevation", "height_m": 90.0}, "elevation does not depend on the height"),
        ({"quantity": "gross-yield", "height_m": 90.0}, "gross-yield is that at the hub height of the turbine"),
        ({"sector": 8}, "sector is 8; expected a whole number from 0 to 7"),
        ({"height_m": 20.0}, "height_m is 20, but the wind in .* from 80 to 160 m above ground"),
        ({"points": 1}, "points is 1"),
    ],
)
def test_wrong_settings(options, says):
    with pytest.raises(InputError, match=says):
        plots.resource_figure(everything(), TURBINE, [square(500, 500, 1500)], **options)


def test_maps_without_areas_or_wind():
    with pytest.raises(InputError, match="no areas to draw"):
        plots.resource_figure(everything(), TURBINE, [])
    with pytest.raises(InputError, match="no point of the map has a value"):
        plots.resource_figure(everything(), TURBINE, [square(90_000, 0, 1000)], points=5)


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a small run of two farms, two types and two seeds, that nobody changes."""
    folder = tmp_path_factory.mktemp("run")
    make_field_campaign(folder)
    done = leeward_here("run", "campaign.yaml", "--engine", "inline", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def plot(folder, *arguments):
    return leeward_here("plot", *arguments, "--points", "10", cwd=folder)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        pytest.param("a.png", b"\x89PNG", id="png"),
        pytest.param("a.svg", b"<?xml", id="svg", marks=pytest.mark.slow),
        pytest.param("a.pdf", b"%PDF", id="pdf", marks=pytest.mark.slow),
    ],
)
def test_every_format(made, tmp_path, name, start):
    before = sorted(made.rglob("*"))
    done = plot(made, "resource", "-o", tmp_path / name)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"written: {tmp_path / name}\n", "")
    assert (tmp_path / name).read_bytes().startswith(start)
    assert sorted(made.rglob("*")) == before


def best_layouts(made, kind=None):
    """Positions of the best layout of each farm, in the order of the farms."""
    with open_layouts(made / "layouts.h5") as layouts:
        every = [r for r in layouts.results() if kind in (None, r.key.type_idx)]
    best = [max((r for r in every if r.key.farm_idx == farm), key=lambda r: r.aep_gwh) for farm in (0, 1)]
    return [result.layout.T.tolist() for result in best]


@pytest.mark.slow
def test_the_best_layouts_are_on_top(made, tmp_path, drawn):
    for source in ("layouts.run", "layouts.h5"):
        assert plot(made, "resource", source, "-o", tmp_path / "a.svg").returncode == 0
    for figure in drawn:
        assert discs(figure) == best_layouts(made)
        assert discs(figure, plots.style.FAINT) == [[[EAST + 7900, NORTH + 600]]]
        assert len(outlines(figure)) == 2
        assert figure.get_suptitle() == "campaign"
        assert figure.axes[1].get_ylabel() == "mean free wind speed at 100 m above ground, m/s"
    assert plot(made, "resource", "--type", "high", "-o", tmp_path / "a.svg").returncode == 0
    assert discs(drawn[2]) == best_layouts(made, 1)
    assert drawn[2].axes[1].get_ylabel() == "mean free wind speed at 140 m above ground, m/s"


@pytest.mark.slow
def test_one_layout_by_its_key(made, tmp_path, drawn):
    wanted = ["--quantity", "gross-yield", "--sector", "2"]
    assert plot(made, "resource", "--key", "east/high/1", *wanted, "-o", tmp_path / "a.svg").returncode == 0
    with open_layouts(made / "layouts.h5") as layouts:
        assert discs(drawn[0]) == [layouts["farm1_t1_s1"].layout.T.tolist()]
    (outline,) = outlines(drawn[0])
    assert outline.get_path().get_extents().x0 == EAST + 9000
    assert drawn[0].get_suptitle() == "east, high, seed 1"
    assert drawn[0].axes[0].get_title() == "one high without wakes, wind from 67.5° to 112.5°"
    assert drawn[0].axes[1].get_ylabel() == "gross yield at 140 m above ground, GWh a year"
    keys = ["--key", "0,0,0", "--key", "1,0,1"]
    assert plot(made, "resource", *keys, "-o", tmp_path / "a.svg").returncode == 0
    assert (len(discs(drawn[1])), len(outlines(drawn[1]))) == (2, 2)


def test_a_campaign_is_enough(made, tmp_path, drawn):
    words = ["resource", "--campaign", made / "campaign.yaml", "--height-m", "120"]
    assert plot(tmp_path, *words, "--farm", "west", "-o", "a.svg").returncode == 0
    assert not discs(drawn[0])
    (outline,) = outlines(drawn[0])
    assert outline.get_path().get_extents().x0 == EAST + 300
    mesh = mesh_of(drawn[0])
    at_x, at_y = np.moveaxis(mesh.get_coordinates(), 2, 0)
    site = load(made / "campaign.yaml").physics.site
    expected = resource_map.mean_speed_m_s(site, at_x, at_y, 120.0)
    np.testing.assert_allclose(np.ma.reshape(mesh.get_array(), at_x.shape), expected, rtol=1e-12)


@pytest.mark.slow
def test_no_results_yet_is_no_hindrance(made, tmp_path, drawn):
    write_own_file(tmp_path / "none.h5", [])
    done = plot(tmp_path, "resource", "none.h5", "--campaign", made / "campaign.yaml", "-o", "a.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert not discs(drawn[0])
    assert len(outlines(drawn[0])) == 2


def test_a_damaged_file_is(made, tmp_path):
    content = (made / "layouts.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(content[: len(content) // 2])
    done = plot(tmp_path, "resource", "cut.h5", "--campaign", made / "campaign.yaml", "-o", "a.png")
    assert done.returncode == 1
    assert "truncated" in done.stderr


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_a_campaign_of_uniform_wind_has_none(tmp_path, quantity):
    make_campaign(tmp_path)
    done = plot(tmp_path, "resource", "--campaign", "campaign.yaml", "--quantity", quantity, "-o", "a.png")
    assert done.returncode == 2
    assert done.stderr.startswith("leeward: the wind of this site is the same everywhere")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--quantity", "cake"], 2, "quantity is 'cake'; expected one of mean-speed"),
        (["--quantity", "speed-up"], 2, "has no speed-up"),
        (["--quantity", "frequency"], 2, "give a sector from 0 to 7"),
        (["--sector", "8"], 2, "sector is 8"),
        (["--height-m", "20"], 2, "height_m is 20"),
        (["--type", "0", "--type", "1"], 2, "2 turbine types are given for one map; give one --type"),
        (["--key", "0,0,9"], 1, "farm0_t0_s9 is missing"),
        (["--farm", "7"], 2, "farm_idx is 7"),
        (["--key", "0,0,0", "--campaign", "campaign.yaml"], 2, "--key needs the run or file that has the layout"),
        (["--direction", "90"], 2, "--direction has no effect on resource; it belongs to flow"),
    ],
)
def test_wrong_use(made, tmp_path, arguments, code, says):
    done = plot(made, "resource", *arguments, "-o", tmp_path / "a.png")
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "a.png").exists()


def test_its_options_belong_to_it(made, tmp_path):
    for option in (["--sector", "1"], ["--quantity", "elevation"]):
        done = leeward_here("plot", "map", *option, "-o", tmp_path / "a.png", cwd=made)
        assert done.returncode == 2
        assert f"{option[0]} has no effect on map; it belongs to resource" in done.stderr


def test_the_file_of_the_wind_is_not_needed_again(made, tmp_path):
    shutil.copytree(made / "layouts.run", tmp_path / "layouts.run")
    assert plot(tmp_path, "resource", "-o", "a.png").returncode == 0
