"""Tables as CSV, and single layouts as CSV and GeoJSON."""

import csv
import io
import json

import numpy as np
import pyproj
import pytest
import shapely
import yaml

from foreign_files import own_result
from leeward.campaign import builtin_campaign, load
from leeward.errors import InputError
from leeward.formats.geojson import layout_geojson
from leeward.formats.rows import layout_csv
from leeward.formats.tabular import csv_text
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import Result
from run_cases import make_campaign

CAMPAIGN = builtin_campaign()


def result_inside(farm=0, type_=5, count=6, aep=412.5):
    """Turbines that stand in the farm's area, one of them on its boundary in the middle of the longest edge."""
    area = CAMPAIGN.physics.area(farm)
    x, y = area.random_points(count, np.random.default_rng(1))
    corners = np.array(area.to_shapely().exterior.coords)
    longest = np.argmax(np.hypot(*np.diff(corners, axis=0).T))
    x[0], y[0] = corners[longest : longest + 2].mean(axis=0)
    return Result(Key(farm, type_, 3), np.array([x, y]), aep, 240.0, "f" * 64, "steps", 10, details={"wake_loss": 0.1})


def test_a_table_as_csv():
    text = csv_text(["name", "x_m"], [["a,b", 1.5], ['say "no"', -2], ["two\nlines", float("nan")], [None, 1e-7]])
    assert text == 'name,x_m\r\n"a,b",1.5\r\n"say ""no""",-2\r\n"two\nlines",\r\n,1e-07\r\n'


@pytest.mark.parametrize("start", [*"=+-@\t\r\n＝＠", "  ="])
def test_no_text_is_a_formula(start):
    bad = f"{start}HYPERLINK(1)"
    (row,) = csv.reader(io.StringIO(csv_text([bad], []), newline=""))
    assert row == ["'" + bad]
    (_, row) = csv.reader(io.StringIO(csv_text(["a"], [[bad]]), newline=""))
    assert row == ["'" + bad]


def test_numbers_are_no_formulas():
    assert (
        csv_text(["x"], [[-5], [-5.25], [np.float64(-0.1)], ["safe-text"]])
        == "x\r\n-5\r\n-5.25\r\n-0.1\r\nsafe-text\r\n"
    )


def test_a_layout_as_csv():
    result = result_inside()
    rows = list(csv.DictReader(io.StringIO(layout_csv(result, CAMPAIGN), newline="")))
    assert len(rows) == 6
    assert [[float(row["x_m"]), float(row["y_m"])] for row in rows] == result.layout.T.tolist()
    assert [int(row["turbine"]) for row in rows] == list(range(6))
    first = rows[0]
    assert (first["key"], first["farm_idx"], first["type_idx"], first["seed"]) == ("farm0_t5_s3", "0", "5", "3")
    assert (first["farm"], first["turbine_type"]) == (CAMPAIGN.farms[0], "generic 15 MW")
    assert (first["crs"], first["rated_power_mw"], first["hub_height_m"]) == ("EPSG:25831", "15.0", "150.0")
    assert float(first["layout_aep_gwh"]) == 412.5


def test_a_layout_without_a_campaign_as_csv():
    rows = list(csv.DictReader(io.StringIO(layout_csv(own_result(farm=77, aep=float("nan"))), newline="")))
    assert (rows[0]["farm"], rows[0]["hub_height_m"], rows[0]["layout_aep_gwh"]) == ("", "", "")
    rows = list(csv.DictReader(io.StringIO(layout_csv(own_result(farm=77), CAMPAIGN), newline="")))
    assert (rows[0]["farm"], rows[0]["turbine_type"], rows[0]["crs"]) == ("", "generic 10 MW", "EPSG:25831")


def test_a_layout_as_geojson():
    result = result_inside()
    data = json.loads(layout_geojson(result, CAMPAIGN))
    assert data["type"] == "FeatureCollection"
    assert "crs" not in data
    assert data["projected_crs"] == "EPSG:25831"
    area, *turbines = data["features"]
    assert (area["properties"]["kind"], area["properties"]["name"]) == ("area", CAMPAIGN.farms[0])
    assert area["geometry"]["type"] == "Polygon"
    assert len(turbines) == 6
    for number, feature in enumerate(turbines):
        properties = feature["properties"]
        assert (properties["kind"], properties["turbine"], properties["key"]) == ("turbine", number, "farm0_t5_s3")
        assert (properties["rated_power_mw"], properties["layout_aep_gwh"]) == (15.0, 412.5)
        longitude, latitude = feature["geometry"]["coordinates"]
        # the Danish part of the North Sea: east of the Dogger Bank, west of Jutland
        assert 4.0 < longitude < 8.5
        assert 55.0 < latitude < 57.5


def test_places_are_those_of_pyproj():
    """UTM by a definition that spells out the projection, not by the name that the campaign has."""
    result = result_inside()
    features = json.loads(layout_geojson(result, CAMPAIGN))["features"][1:]
    degrees = np.array([feature["geometry"]["coordinates"] for feature in features]).T
    utm = pyproj.Proj("+proj=utm +zone=31 +ellps=GRS80 +units=m")
    np.testing.assert_allclose(np.array(utm(*degrees)), result.layout, rtol=0, atol=2e-4)
    np.testing.assert_allclose(np.array(utm(*result.layout, inverse=True)), degrees, rtol=0, atol=1e-8)


def test_areas_in_degrees_are_where_they_were():
    """Also between the corners: what is straight in metres is not straight in degrees."""
    utm = pyproj.Proj("+proj=utm +zone=31 +ellps=GRS80 +units=m")
    for farm in CAMPAIGN.farms:
        (feature, *turbines) = json.loads(layout_geojson(result_inside(farm, count=1), CAMPAIGN))["features"]
        area = shapely.geometry.shape(feature["geometry"])
        assert area.exterior.is_ccw
        assert area.is_valid
        corners = np.array(area.exterior.coords)
        middles = 0.5 * (corners[1:] + corners[:-1])
        original = CAMPAIGN.physics.area(farm).to_shapely()
        points = shapely.points(np.column_stack(utm(*middles.T)))
        assert shapely.distance(original.exterior, points).max() < 0.05
        on_boundary = shapely.geometry.shape(turbines[0]["geometry"])
        assert area.exterior.distance(on_boundary) * 111e3 < 0.05


def test_areas_with_holes_and_several_pieces(tmp_path):
    square = "(500000 6000000, 506000 6000000, 506000 6006000, 500000 6006000, 500000 6000000)"
    hole = "(502000 6002000, 503000 6002000, 503000 6003000, 502000 6003000, 502000 6002000)"
    triangle = "(510000 6000000, 510000 6003000, 513000 6003000, 510000 6000000)"
    wkt = f"MULTIPOLYGON (({square}, {hole}), ({triangle}))"
    path = make_campaign(tmp_path, crs="EPSG:25831")
    content = yaml.safe_load(path.read_text())
    campaign = load({**content, "farms": [{"name": "two", "wkt": wkt}], "optimiser": {"recipe": "smart_start"}})
    feature = json.loads(layout_geojson(own_result(turbines=3), campaign))["features"][0]
    assert feature["geometry"]["type"] == "MultiPolygon"
    pieces = shapely.geometry.shape(feature["geometry"]).geoms
    assert sorted(len(piece.interiors) for piece in pieces) == [0, 1]
    for piece in pieces:
        assert piece.exterior.is_ccw
        assert not any(ring.is_ccw for ring in piece.interiors)


def test_an_area_across_the_180th_meridian_is_cut_there(tmp_path):
    """As RFC 7946 asks: uncut, its corners jump from one edge of the map to the other, and it spans the world."""
    content = yaml.safe_load(make_campaign(tmp_path, crs="EPSG:3832").read_text())
    middle = 20037508.342789244 * 30 / 180  # of 180 degrees, in a projection about 150 degrees
    corners = [[middle + x, y] for x, y in ((-6000, -2000000), (4000, -2000000), (4000, -1994000), (-6000, -1994000))]
    campaign = load({**content, "farms": [{"polygon_m": corners}], "optimiser": {"recipe": "smart_start"}})
    feature = json.loads(layout_geojson(own_result(turbines=3), campaign))["features"][0]
    west, east = sorted(
        shapely.get_parts(shapely.geometry.shape(feature["geometry"])), key=lambda part: -part.bounds[0]
    )
    assert west.is_valid
    assert east.is_valid
    assert west.exterior.is_ccw
    assert west.bounds[2] == 180.0
    assert east.bounds[0] == -180.0
    assert (west.bounds[0], east.bounds[2]) == pytest.approx((180 - 0.0539, -180 + 0.0359), abs=1e-4)
    assert west.area / east.area == pytest.approx(1.5, rel=1e-6)


def test_neighbours_in_geojson(tmp_path):
    content = yaml.safe_load(make_campaign(tmp_path, crs="EPSG:25831").read_text())
    own = {"name": "old", "rated_power_mw": 8, "rotor_diameter_m": 167, "hub_height_m": 113}
    groups = [{"x_m": [500000.0], "y_m": [6100000.0], "turbine": 0}, {"x_m": [5e5], "y_m": [6.2e6], "turbine": own}]
    campaign = load({**content, "neighbours": groups, "optimiser": {"recipe": "smart_start"}})
    _, first, second, *turbines = json.loads(layout_geojson(own_result(turbines=3), campaign))["features"]
    assert len(turbines) == 3
    assert first["properties"]["turbine_type"] == campaign.types[0]
    assert second["properties"] == {"kind": "neighbour", "turbine_type": "old"} | {
        name: float(value) for name, value in own.items() if name != "name"
    }
    utm = pyproj.Proj("+proj=utm +zone=31 +ellps=GRS80 +units=m")
    for feature, north in ((first, 6.1e6), (second, 6.2e6)):
        np.testing.assert_allclose(utm(*feature["geometry"]["coordinates"]), (5e5, north), rtol=0, atol=2e-4)


def test_geojson_needs_a_coordinate_system(tmp_path):
    with pytest.raises(InputError, match=r"has no coordinate system.*`crs: EPSG:25831`"):
        layout_geojson(own_result(), load(make_campaign(tmp_path)))
    with pytest.raises(InputError, match="farm_idx is 77; expected a number of the campaign danish-energy-island"):
        layout_geojson(own_result(farm=77), CAMPAIGN)


def test_geojson_of_an_unknown_energy():
    features = json.loads(layout_geojson(own_result(aep=float("nan")), CAMPAIGN))["features"]
    assert features[1]["properties"]["layout_aep_gwh"] is None
