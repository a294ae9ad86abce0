"""What pages are made of: escaped text, charts of few and of many, and the wind rose that one of them shows."""

import itertools
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely

from foreign_files import own_result
from leeward.charts import colour, label_place, loss_range
from leeward.errors import InputError
from leeward.pages import settings as settings_page
from leeward.pages.charts import convergence, rank_chart, rose_chart, share_bar, strip_chart
from leeward.pages.frame import asset, live_page, report_page
from leeward.pages.html import join, tag
from leeward.pages.maps import BELOW, Frame, farm_map, layout_plan, loss_scale
from leeward.pages.parts import Links, gwh, percent, shown, table
from leeward.pages.task import comparison, phases, result_facts
from leeward.pages.tasks import best_list
from leeward.pages.wind import resource_plan
from leeward.store.format.keys import Key
from leeward.watch import FarmShape, LayoutView, ResourceView
from leeward.wind import Site, WindRose, wind_rose
from web_cases import HOSTILE, Checked

LINKS = Links(is_live=True)
SQUARE = (np.array([[0.0, 0.0], [9000.0, 0.0], [9000.0, 9000.0], [0.0, 9000.0], [0.0, 0.0]]),)


def numbers(picture):
    """All numbers of attributes that place something; none may be infinite or none at all."""
    assert not re.search(r"\b(nan|inf)\b", picture, re.IGNORECASE), picture
    Checked(picture)
    return [float(text) for text in re.findall(r' (?:x|y|x1|x2|y1|y2|cx|cy|r|width|height)="([^"]+)"', picture)]


def size_of(picture):
    return [float(text) for text in re.search(r'viewBox="0 0 (\S+) (\S+)"', picture).groups()]


def view(result, *, shape=None, losses=None, spacing=600.0):
    return LayoutView(result, "a farm", "a type", shape, losses, spacing, np.zeros((2, 0)))


# --- text ------------------------------------------------------------------------------------------------------------


def test_everything_is_escaped():
    assert tag("p", {"title": "\"'<>&"}, "\"'<>&") == (
        '<p title="&quot;&#x27;&lt;&gt;&amp;">&quot;&#x27;&lt;&gt;&amp;</p>'
    )
    assert (
        tag("p", None, tag("b", None, "<"), ["<", (tag("i"), None, 5, 0.1 + 0.2)])
        == "<p><b>&lt;</b>&lt;<i></i>50.3</p>"
    )
    page = Checked(tag("p", {"title": HOSTILE, "id": HOSTILE}, HOSTILE, [HOSTILE]))
    assert page.elements == ["p"]


def test_what_no_page_can_hold():
    shown = tag("p", None, "a\x00b\x1bc\ud800d\u2028e\x7f\x85\n\t")
    assert shown == "<p>a�b�c�d�e��\n\t</p>"
    shown.encode()


def test_attributes():
    assert tag("input", {"required": True, "checked": False, "value": None, "size": 3}) == '<input required size="3">'
    assert tag("br") == "<br>"
    assert join(["<", tag("br"), None]) == "&lt;<br>"


def test_numbers_in_words():
    assert (gwh(None), gwh(math.nan), gwh(1234.5678)) == ("–", "–", "1234.57")
    assert (percent(None), percent(0.12345), shown(719.6, "{:.0f} m")) == ("–", "12.35%", "720 m")
    assert percent(-1e-15) == "0.00%"  # a turbine alone loses nothing, and not minus nothing


def test_tables():
    page = Checked(table(["a", "<b>"], [["1", "<i>"], ["2", None]], right=(1,), caption="<c>"))
    assert page.elements.count("td") == 4
    assert "<i>" in page.text


def test_whole_pages():
    Checked(live_page(HOSTILE, "/", HOSTILE, [HOSTILE], 2.0))
    report = report_page(HOSTILE, [("name", HOSTILE, tag("p", None, HOSTILE))])
    assert report.count("<script") == 0
    assert "</style" not in asset("style.css").decode().lower()


def test_the_assets_are_in_the_package():
    """An installed leeward has them too."""
    settings = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert "pages/assets/*" in settings
    for name in ("style.css", "live.js", "icon.svg"):
        assert len(asset(name)) > 100


def test_links():
    assert LINKS.task(Key(1, 2, 3)) == "/task/farm1_t2_s3"
    assert LINKS.tasks({"farm": 1, "state": None, "sort": "-aep_gwh"}) == "/tasks?farm=1&sort=-aep_gwh"
    report = Links(is_live=False, keys=frozenset({Key(1, 2, 3)}))
    assert (report.task(Key(1, 2, 3)), report.task(Key(0, 0, 0)), report.tasks({})) == ("#farm1_t2_s3", None, None)


# --- charts ----------------------------------------------------------------------------------------------------------


def keys(count):
    return [Key(0, 0, seed) for seed in range(count)]


@pytest.mark.parametrize("aeps", [[5.0], [5.0] * 7, [9.0, 5.0], np.linspace(90, 80, 1000), np.full(1000, 3.0)])
def test_a_chart_of_ranks(aeps):
    aeps = np.array(aeps)
    picture = rank_chart(keys(len(aeps)), aeps, LINKS)
    width, height = size_of(picture)
    assert all(-1 <= number <= max(width, height) + 1 for number in numbers(picture))
    assert picture.count("<circle") == (len(aeps) if len(aeps) <= 400 else 0)
    assert f"AEP of {len(aeps)} seeds" in picture
    assert len(picture) < 200_000
    if len(aeps) == 1000:
        assert picture.count('class="line"') == 1


def test_ranks_are_no_seeds():
    order = [Key(0, 0, seed) for seed in (7, 3, 5)]
    picture = rank_chart(order, np.array([9.0, 8.0, 7.0]), LINKS)
    assert ">rank of the layout (1 = best)</text>" in picture
    assert ">seed 7</text>" in picture  # beside the best one
    assert "<title>rank 2: seed 3, 8.00 GWh</title>" in picture


@pytest.mark.parametrize("aeps", [[5287.9] * 3, 5287.9 * (1 + 2.3e-16 * np.arange(3)), [5287.9]])
def test_charts_do_not_magnify_rounding_errors(aeps):
    aeps = np.array(aeps)
    columns = {"a": (keys(len(aeps)), aeps)}
    charts = [strip_chart(columns, LINKS, relative=is_relative) for is_relative in (False, True)]
    charts += [rank_chart(keys(len(aeps)), aeps, LINKS), convergence({"random": aeps[0]}, None)]
    for picture in charts:
        labels = re.findall(r'text-anchor="end" class="label">(-?[0-9.e-]+)</text>', picture)
        assert len(set(labels)) == len(labels) > 1
        assert not [label for label in labels if "e" in label or len(label) > 8]


@pytest.mark.parametrize("count", [1, 2, 50, 1000])
def test_a_chart_of_strips(count):
    rng = np.random.default_rng(count)
    columns = {f"<t{i}>": (keys(count), rng.normal(100, 1, count)) for i in range(3)}
    picture = strip_chart({**columns, "none": ([], np.zeros(0)), "flat": (keys(2), np.full(2, 5.0))}, LINKS)
    numbers(picture)
    assert picture.count("dot best") == 4  # of each that has any
    assert "none" not in picture
    for _, (_, aeps) in columns.items():
        assert f"{aeps.max():.2f} GWh" in picture


def test_strips_that_are_far_apart_can_be_looked_at_closely():
    """Each from its own median; what they yield is still said in GWh."""
    columns = {
        "small": (keys(3), np.array([101.0, 100.0, 99.0])),
        "large": (keys(3), np.array([1010.0, 1000.0, 990.0])),
    }
    picture = strip_chart(columns, LINKS, relative=True)
    heights = [float(y) for y in re.findall(r'cy="([^"]+)"', picture)]
    assert heights[:3] == pytest.approx(heights[3:])
    assert len(set(heights)) == 3
    assert max(heights) - min(heights) > 100  # pixels; on one scale in GWh it is two for the small one
    assert "1010.00 GWh" in picture
    assert "% above median" in picture


def test_a_plan_of_a_narrow_area_has_room_for_its_scale():
    """The length of the bar and the north arrow lay over each other."""
    result = replace(own_result(turbines=2), layout=np.array([[0.0, 300.0], [0.0, 60_000.0]]))
    picture = layout_plan(view(result))
    width, _ = size_of(picture)
    bar = float(re.search(r'<text x="([^"]+)"[^>]*>[0-9]+ k?m</text>', picture)[1])
    assert bar + 40 < float(re.search(r'<text x="([^"]+)"[^>]*>N</text>', picture)[1]) < width
    turbines = [float(x) for x in re.findall(r'<circle cx="([^"]+)"[^>]*class="turbine"', picture)]
    assert sum(turbines) / 2 == pytest.approx(width / 2, abs=0.1)  # in the middle


def test_how_aep_grew():
    picture = convergence({"placing": 90.0, "descent": 95.5}, np.array([[0.0, 10.0, 20.0], [90.0, 95.0, 95.5]]))
    numbers(picture)
    assert "placing 90.00 GWh, descent 95.50 GWh" in picture
    numbers(convergence({"placing": 90.0}, None))
    numbers(convergence({}, np.array([[0.0, 10.0], [90.0, 90.0]])))


def test_how_aep_grew_without_numbers():
    nothing = np.full((2, 5), np.nan)
    assert phases(replace(own_result(), details={}, history=nothing)) is None
    one = np.array([[0.0, 1.0, 2.0], [np.nan, 7.0, np.inf]])
    numbers(phases(replace(own_result(), details={"aep_by_phase": np.array([7.0, np.nan])}, history=one)))


def test_steps_are_told_of_where_they_are_drawn():
    """Of one turbine there is one step, and no line."""
    details = {"phases": "smart_start", "aep_by_phase": np.array([7.0])}
    one = replace(own_result(aep=7.0), details=details, history=np.array([[1.0], [7.0]]))
    assert "over the steps" not in phases(one)
    assert phases(replace(one, details={})) is None
    many = replace(one, history=np.array([[1.0, 2.0], [6.0, 7.0]]))
    assert "Right: AEP over the steps, of the current layout" in phases(many)


def test_where_there_is_no_layout_yet():
    """A table of headings only told nothing."""
    listed = best_list({}, {}, None, LINKS)
    assert "<table" not in listed
    assert "There are no layouts yet." in listed
    picture = farm_map(
        [FarmShape(0, "x", (SQUARE,), None)], {}, np.zeros((2, 0)), "The best layout of each.", LINKS, {}
    )
    assert "The best layout" not in picture
    assert "The areas of the farms, to scale." in picture


def test_work_has_a_unit():
    told = result_facts(view(replace(own_result(), details={"work": 374188320})))
    assert "374188320 pair evaluations (wake of one turbine on another in one wind condition)" in told
    assert "work" not in result_facts(view(replace(own_result(), details={"work": 0})))


def test_a_plan_with_an_area():
    result = own_result(turbines=40)
    inside = replace(result, layout=result.layout / result.layout.max() * 9000.0)
    shape = FarmShape(0, "a farm", (SQUARE,), None)
    losses = np.linspace(0.01, 0.2, 40)
    picture = layout_plan(view(inside, shape=shape, losses=losses), loss_range([losses]))
    width, height = size_of(picture)
    assert abs(width - 640) < 1
    assert abs(height - 640 - 46) < 1
    assert picture.count('class="turbine"') == 40
    assert len(set(re.findall(r'fill="(#\w+)"', picture))) > 30
    places = re.findall(r'<circle cx="(\S+)" cy="(\S+)" r="\S+" class="turbine"', picture)
    scale = (640 - 32) / 9000.0
    for (x, y), (east, north) in zip(places, inside.layout.T, strict=True):  # north is up
        assert float(x) == pytest.approx(16 + east * scale, abs=0.02)
        assert float(y) == pytest.approx(16 + (9000.0 - north) * scale, abs=0.02)


def test_a_plan_shows_neighbours_beside_the_area():
    """Those within a third of its side; the others would make the farm small."""
    result = own_result(turbines=2)
    inside = replace(result, layout=np.array([[1000.0, 8000.0], [1000.0, 8000.0]]))
    beside = replace(
        view(inside, shape=FarmShape(0, "a farm", (SQUARE,), None)),
        neighbours=np.array([[12000.0, 12000.0, 40000.0], [3000.0, 4000.0, 3000.0]]),
    )
    picture = layout_plan(beside)
    numbers(picture)
    width, _ = size_of(picture)
    places = re.findall(r'<circle cx="(\S+)" cy="\S+" r="\S+" class="neighbour"', picture)
    assert [float(x) for x in places] == pytest.approx([width - 16] * 2, abs=0.1)
    assert "Rings: existing turbines" in picture
    assert "Rings" not in layout_plan(view(inside))


@pytest.mark.parametrize("turbines", [1, 2])
def test_a_plan_of_few_turbines_and_no_area(turbines):
    result = replace(own_result(turbines=turbines), layout=np.array([[5.0] * turbines, [7.0] * turbines]))
    picture = layout_plan(view(result, losses=np.zeros(turbines)), (0.0, 0.0))
    width, height = size_of(picture)
    numbers(picture)
    ends = [float(x) for x in re.findall(r'<path d="M10 \S+V\S+H(\S+)V\S+" class="rule"', picture)]
    assert ends
    assert ends[0] <= width
    assert min(width, height) > 60
    Checked(loss_scale((0.0, 0.0)))
    found = loss_range([np.full(turbines, -1e-15)])
    said = re.findall(r">([^<>]*%)</text>", loss_scale(found))
    assert said == ["0.000%", "0.005%", "0.010%"]  # rounding errors are no wake losses
    Checked(comparison(view(result), view(result)))


def test_names_of_many_farms_do_not_lie_over_each_other():
    """Each farm is still told by its title."""
    shapes = [FarmShape(i, "x", ((SQUARE[0] + [3000.0 * i, 0.0],),), None) for i in range(100)]
    picture = farm_map(shapes, {}, np.zeros((2, 0)), "Where.", LINKS, {})
    names = re.findall(r'<text x="(\S+)" y="\S+" text-anchor="middle" class="place">(\d+)<', picture)
    assert 20 < len(names) < 100
    assert all(float(b[0]) - float(a[0]) >= 6.0 * len(b[1]) for a, b in itertools.pairwise(names))
    assert len(re.findall("<title>farm ", picture)) == 100


@pytest.mark.parametrize("inner", [True, False])
def test_names_are_in_their_areas(inner):
    """Not in a hole, not between two parts, and clear of turbines."""
    hole = 0.4 * SQUARE[0] + 2700.0
    polygons = ((SQUARE[0], hole),) if inner else (SQUARE, (SQUARE[0] + [30_000.0, 0.0],))
    area = shapely.MultiPolygon([(outer, holes) for outer, *holes in polygons])
    result = replace(own_result(), layout=np.array([[1350.0, 4500.0, 7650.0], [1350.0, 1350.0, 1350.0]]))
    picture = farm_map([FarmShape(0, "x", polygons, None)], {0: result}, np.zeros((2, 0)), "Where.", LINKS, {})
    x, y = map(float, re.search(r'<text x="(\S+)" y="(\S+)" text-anchor="middle" class="place">', picture).groups())
    corners = np.concatenate([ring for polygon in polygons for ring in polygon])
    frame = Frame(corners, np.zeros((2, 0)), margin=20.0, side=760.0)
    place = shapely.Point(*(np.array([x, y - BELOW]) - frame.place(0.0, 0.0)) * [1.0, -1.0] / frame.scale)
    assert area.contains(place)
    assert area.boundary.distance(place) > 1000.0
    assert np.hypot(*(result.layout.T - [place.x, place.y]).T).min() > 1000.0


def test_the_name_of_an_area_narrower_than_all_places():
    area = shapely.Polygon([(0.0, 0.0), (9000.0, 300.0), (9000.0, 300.5), (0.0, 0.1)])
    assert area.contains(shapely.Point(*label_place(area)))


def test_a_map():
    shapes = [FarmShape(i, HOSTILE, ((SQUARE[0] + 20_000.0 * i,),), None) for i in range(3)]
    best = {0: own_result(), 2: replace(own_result(), aep_gwh=math.nan)}
    picture = farm_map(shapes, best, np.array([[-9e3, -90e3], [0.0, 0.0]]), "Where.", LINKS, {})
    numbers(picture)
    assert picture.count('class="neighbour"') == 1  # the other one is far away
    assert "Where. Rings: existing turbines." in picture
    assert "Rings" not in farm_map(shapes, best, np.zeros((2, 0)), "Where.", LINKS, {})
    assert picture.count("no layout yet") == 1
    assert picture.count("<a ") == 2
    numbers(farm_map([], {}, np.zeros((2, 0)), "", LINKS, {}))


def test_a_bar_of_shares():
    picture = share_bar({"done": 3, "failed": 0, "running": 1}, 8, "half")
    assert re.findall(r'width="(\S+)" height="8" class="fill-(\w+)"', picture) == [
        ("120", "missing"),
        ("45", "done"),
        ("15", "running"),
    ]
    numbers(share_bar({"done": 0}, 0, "none"))


# --- wind ------------------------------------------------------------------------------------------------------------


def counted(conditions, sectors, begins, parts=60):
    """The slow, obvious way: every bin cut into small parts, each put where it lies. Bins are even; so is the count."""
    rose = np.zeros((sectors, len(begins)))
    width = 360.0 / len(conditions.direction)
    offsets = (np.arange(parts) + 0.5) / parts - 0.5
    for i, direction in enumerate(conditions.direction.tolist()):
        step = float(conditions.speed[i, 1] - conditions.speed[i, 0])
        for turned in (direction + width * offsets).tolist():
            sector = int((turned + 180.0 / sectors) % 360.0 // (360.0 / sectors)) % sectors
            for j, speed in enumerate(conditions.speed[i].tolist()):
                for level, share in Counter(np.searchsorted(begins, speed + step * offsets, "right") - 1).items():
                    if level >= 0:
                        rose[sector, level] += conditions.weight[i, j] * share / parts**2
    return rose


def test_a_rose_against_a_plain_count(small_site):
    """Twelve directions into sectors of other widths, speeds into classes that cut bins in two."""
    wind = small_site.conditions
    for sectors, begins in ((12, (0.0, 5.0, 10.0)), (6, (0.0, 8.0)), (8, (0.0, 6.5, 9.5, 11.0, 12.5)), (36, (0.0,))):
        rose = wind_rose(small_site, sectors, begins)
        np.testing.assert_allclose(
            rose.frequency, counted(wind, sectors, begins), rtol=0, atol=0.01 * wind.weight.max()
        )
        assert rose.frequency.sum() == pytest.approx(float(wind.weight.sum()), abs=1e-12)
        assert rose.directions.tolist() == [360.0 / sectors * i for i in range(sectors)]


def test_a_rose_of_distributions(site, site_figures):
    """In its own sectors: shares of each, and the distributions added up in small steps."""
    rose = wind_rose(site, speed_classes=(0.0, 5.0, 10.0, 15.0))
    frequency, scale, shape = (site_figures[name] for name in ("sector_frequency", "weibull_a_m_s", "weibull_k"))
    assert rose.frequency.shape == (len(frequency), 4)
    assert rose.frequency.sum() == pytest.approx(sum(frequency), abs=1e-9)
    speeds = np.arange(0.0005, 60.0, 0.001)
    classes = ((0, 5), (5, 10), (10, 15), (15, 60))
    for sector, (share, a, k) in enumerate(zip(frequency, scale, shape, strict=True)):
        density = k / a * (speeds / a) ** (k - 1) * np.exp(-((speeds / a) ** k)) * 0.001
        by_class = [density[(speeds >= low) & (speeds < high)].sum() for low, high in classes]
        np.testing.assert_allclose(rose.frequency[sector], share * np.array(by_class), rtol=0, atol=1e-5)


def test_what_is_no_rose(tiny_site):
    for options in ({"sectors": 0}, {"sectors": 1.5}, {"speed_classes": ()}, {"speed_classes": (5.0, 5.0)}):
        with pytest.raises(InputError, match="expected"):
            wind_rose(tiny_site, **options)


@pytest.mark.parametrize("sectors", [1, 4, 12, 36, 360])
def test_a_drawing_of_a_rose(site, sectors):
    rose = wind_rose(site, sectors=sectors)
    picture = rose_chart(rose)
    numbers(picture)
    assert picture.count('class="wedge"') == int((rose.frequency > 0).sum())
    assert f"{rose.speed_classes[-1]:g} m/s or more" in Checked(picture).text


def test_a_drawing_of_no_wind():
    numbers(rose_chart(WindRose(np.zeros((12, 5)), (0.0, 5.0, 10.0, 15.0, 20.0))))


def test_wedges_are_where_the_wind_comes_from():
    """All wind from the east: everything drawn lies at the right of the middle."""
    frequency = np.zeros((4, 1))
    frequency[1] = 1.0
    (path,) = re.findall(r'<path d="([^"]+)"[^>]*class="wedge"', rose_chart(WindRose(frequency, (0.0,))))
    places = re.findall(r"[ML]([\d.]+) ([\d.]+)", path)
    assert max(float(x) for x, _ in places) > 190
    assert all(float(x) >= 129.99 for x, _ in places)


def test_a_site_of_one_wind():
    one = Site.from_table([270.0], [10.0], [[1.0]], 0.1)
    rose = wind_rose(one, 12)
    assert rose.frequency[9].tolist() == [float(begin == 10.0) for begin in rose.speed_classes]
    assert rose.frequency.sum() == 1.0


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("site", "words"),
    [
        (
            {"weibull": {"weibull_a_m_s": [9.0] * 4, "turbulence_intensity": [0.06, 0.1], "interpolation": "linear"}},
            "Weibull distributions in 4 sectors, interpolated linearly, turbulence intensity 0.06 to 0.1",
        ),
        (
            {"weibull": {"weibull_a_m_s": [9.0], "wind_directions_deg": [0.0, 1.0], "wind_speeds_m_s": [9.0]}},
            "Weibull distributions in 1 sectors, 2 directions × 1 speeds",
        ),
        (
            {"table": {"wind_directions_deg": [0, 90], "wind_speeds_m_s": [8, 9, 10], "turbulence_intensity": 0.1}},
            "table of 2 directions × 3 speeds, exact conditions, turbulence intensity 0.1",
        ),
        ({"time_series": {"wind_direction_deg": [1, 2, 3], "wind_speed_m_s": [1, 2, 3]}}, "time series of 3 values"),
    ],
)
def test_the_wind_in_words(site, words):
    assert settings_page._site(site) == words


def test_spacing_and_neighbours_in_words():
    assert settings_page._spacing({"spacing_diameters": 3.0}) == "3 rotor diameters"
    assert settings_page._spacing({"spacing_m": 720.0}) == "720 m"
    assert settings_page._neighbours([]) == "none"
    assert settings_page._neighbours([{"x_m": [1.0, 2.0]}, {"x_m": [3.0]}]) == "3 turbines"


def test_a_map_of_the_wind():
    """Cells of one colour in a row are one piece; those without wind are left out."""
    speed = np.array([[6.0, 6.0, 9.0], [7.5, np.nan, np.nan]])
    shape = FarmShape(0, "a farm", (SQUARE,), None)
    seen = ResourceView((0.0, 0.0, 9000.0, 6000.0), speed, 100.0, (3.0, 25.0))
    best = {0: own_result()}
    picture = resource_plan(seen, [shape], best, np.array([[4000.0], [1000.0]]))
    numbers(picture)
    cells = picture.partition('<g class="resource">')[2].partition("</g>")[0]
    found = dict(re.findall(r'<path d="([^"]*)" fill="([^"]*)">', cells))
    assert sorted(d.count("M") for d in found) == [1, 1, 1]
    assert set(found.values()) == {colour(0.0), colour(1.0), colour(1.0 - 12 / 23)}
    wide = {fill: float(re.search(r"h([0-9.]+)v", d)[1]) for d, fill in found.items()}
    assert wide[colour(1.0)] == pytest.approx(2 * wide[colour(0.0)], abs=0.5)  # two slow cells, one fast one
    assert picture.count('class="neighbour"') == 1
    assert picture.partition('<g class="placed">')[2].partition("</g>")[0].count("<circle") == best[0].n_turbines
    for words in ("with the best layout of each farm. Blank: the wind is not known. Grey", "6.00", "7.50", "9.00"):
        assert words in picture
    flat = resource_plan(replace(seen, speed=np.full((2, 2), 7.0)), [shape], {}, np.zeros((2, 0)))
    assert "over wind speeds of 3 to 25 m/s.</p>" in flat
    numbers(flat)
