"""Areas: distances beside shapely's, derivatives beside differences, projections beside pyproj's, and bad input."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import shapely

from conftest import BUILTIN
from leeward.errors import InputError
from leeward.layout.area import Area

FARMS = BUILTIN / "farms.geojson"
EAST, NORTH = 704_000.0, 6_241_000.0  # coordinates as large as real ones
NAN = float("nan")

SQUARE = ([0.0, 4000.0, 4000.0, 0.0], [0.0, 0.0, 4000.0, 4000.0])
HORSESHOE = ([0, 5000, 5000, 3500, 3200, 1600, 1500, 0], [0, 0, 4000, 4100, 1000, 1300, 3900, 4000])
HOLE = ([600, 1000, 1300, 700], [200, 150, 700, 900])
CABLE = shapely.LineString([(EAST - 500, NORTH + 700), (EAST + 2000, NORTH + 1500), (EAST + 2500, NORTH + 6000)])
WRECKS = shapely.MultiPoint([(EAST + 3000, NORTH + 3000), (EAST + 700, NORTH + 3500)])
RESERVE = shapely.Polygon([(EAST + 2500, NORTH + 500), (EAST + 3300, NORTH + 300), (EAST + 3000, NORTH + 1200)])


def ring(corners, scale=1.0, dx=0.0):
    return np.array(corners[0]) * scale + EAST + dx, np.array(corners[1]) * scale + NORTH


def square():
    return Area.from_arrays(*ring(SQUARE))


def horseshoe():
    return Area.from_arrays(*ring(HORSESHOE))


def archipelago():
    return Area.union(
        [square(), Area.from_arrays(*ring(HORSESHOE, dx=9000.0)), Area.from_arrays(*ring(SQUARE, 0.2, -2e3))]
    )


def with_hole():
    return Area.from_arrays(*ring(HORSESHOE), holes=[ring(HOLE)])


POLYGONS = {"square": square, "horseshoe": horseshoe, "archipelago": archipelago, "hole": with_hole}
ZONED = {
    "cable": lambda: square().without(CABLE, 150.0),
    "wrecks": lambda: square().without(WRECKS, 400.0),
    "reserve": lambda: square().without(RESERVE, 250.0),
    "all": lambda: archipelago().without([CABLE, WRECKS, RESERVE], 200.0).without(Area.circle(EAST, NORTH, 900.0)),
    "circle without square": lambda: Area.circle(EAST, NORTH, 3000.0).without(square()),
    "circle without circle": lambda: Area.circle(EAST, NORTH, 3000.0).without(Area.circle(EAST, NORTH, 1000.0), 500.0),
    "circle and square": lambda: Area.union([Area.circle(EAST - 3000, NORTH, 2000.0), square()]).without(CABLE, 100.0),
    "crossing": lambda: horseshoe().without(
        [CABLE, shapely.LineString([(EAST, NORTH), (EAST + 5e3, NORTH + 4e3)])], 300
    ),
}
ALL = {**POLYGONS, **ZONED, "circle": lambda: Area.circle(EAST, NORTH, 2500.0)}


def around(area, count, seed=0):
    """Points in and around an area."""
    left, low, right, high = area.bounds
    wide, tall = right - left, high - low
    rng = np.random.default_rng(seed)
    return rng.uniform(left - wide / 2, right + wide / 2, count), rng.uniform(low - tall / 2, high + tall / 2, count)


def slow_distance(area, x, y):
    """The definition, with shapely's distances."""

    def inside(part, point):
        away = part.geometry.distance(point)
        if part.geometry.geom_type == "Polygon" and part.geometry.contains(point):
            away = -part.geometry.boundary.distance(point)
        return part.margin - away

    def one(point):
        allowed = max(inside(part, point) for part in area.parts)
        return min([allowed, *(-inside(zone, point) for zone in area.zones)])

    return np.array([one(point) for point in shapely.points(x, y)])


@pytest.mark.tiny
@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_signed_distance(make):
    area = make()
    x, y = around(area, 300)
    assert area.signed_distance(x, y) == pytest.approx(slow_distance(area, x, y), abs=1e-9)


@pytest.mark.tiny
def test_points_level_with_corners():
    """A ray through a corner crosses the boundary once there, or touches it."""
    area = with_hole()
    corners = shapely.get_coordinates(area.to_shapely())
    x, y = (grid.ravel() for grid in np.meshgrid(np.linspace(EAST - 100, EAST + 5100, 53), corners[:, 1]))
    off = shapely.distance(area.to_shapely().boundary, shapely.points(x, y)) > 1e-6
    inside = shapely.contains(area.to_shapely(), shapely.points(x, y))
    assert area.contains(x, y)[off].tolist() == inside[off].tolist()
    assert np.abs(area.signed_distance(*corners.T)).max() < 1e-9


@pytest.mark.parametrize("make", POLYGONS.values(), ids=POLYGONS)
def test_polygons_beside_shapely(make):
    area = make()
    x, y = around(area, 2000)
    points = shapely.points(x, y)
    distance = area.signed_distance(x, y)
    assert np.abs(distance) == pytest.approx(shapely.distance(area.to_shapely().boundary, points), abs=1e-9)
    assert (distance > 0).tolist() == shapely.contains(area.to_shapely(), points).tolist()
    assert area.contains(x, y).tolist() == (distance >= 0).tolist()
    assert area.area_m2 == pytest.approx(area.to_shapely().area, rel=1e-12)
    assert area.bounds == area.to_shapely().bounds


def test_interior_distance_with_zones_is_exact():
    """Inside, it is the distance to all that is not in the area, however the parts overlap."""
    area = square().without([RESERVE, WRECKS, CABLE], 200.0)
    fine = (
        square()
        .to_shapely()
        .difference(shapely.union_all([zone.buffer(200.0, quad_segs=20_000) for zone in (RESERVE, WRECKS, CABLE)]))
    )
    x, y = area.random_points(200, np.random.default_rng(1))
    expected = shapely.distance(fine.boundary, shapely.points(x, y))
    assert area.signed_distance(x, y) == pytest.approx(expected, abs=1e-6)


@pytest.mark.tiny
def test_a_circle_is_exact():
    area = Area.circle(EAST + 0.3, NORTH - 0.7, 1234.5)
    x, y = around(area, 500)
    assert area.signed_distance(x, y) == pytest.approx(1234.5 - np.hypot(x - EAST - 0.3, y - NORTH + 0.7), abs=1e-9)
    assert area.area_m2 == pytest.approx(np.pi * 1234.5**2, rel=1e-15)
    assert area.bounds == (EAST + 0.3 - 1234.5, NORTH - 0.7 - 1234.5, EAST + 0.3 + 1234.5, NORTH - 0.7 + 1234.5)
    assert area.regions == 1
    near_x, near_y = area.nearest_inside(x, y)
    assert np.hypot(near_x - EAST - 0.3, near_y - NORTH + 0.7).max() <= 1234.5 + 1e-9


@pytest.mark.tiny
@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_gradient_beside_differences(make):
    """Central differences; at the few points next to a kink the two one-sided ones differ, these are left out."""
    area = make()
    x, y = around(area, 300, seed=3)
    step = 1e-3
    distance, by_x, by_y = area.signed_distance_gradient(x, y)
    assert distance.tolist() == area.signed_distance(x, y).tolist()
    assert np.hypot(by_x, by_y) == pytest.approx(np.ones(300), abs=1e-12)
    for slope, dx, dy in ((by_x, step, 0.0), (by_y, 0.0, step)):
        ahead, behind = area.signed_distance(x + dx, y + dy), area.signed_distance(x - dx, y - dy)
        smooth = np.abs(ahead - 2 * distance + behind) < 1e-7
        assert smooth.mean() > 0.97
        assert slope[smooth] == pytest.approx(((ahead - behind) / (2 * step))[smooth], abs=1e-4)


@pytest.mark.tiny
def test_gradient_on_the_boundary():
    """On an edge the inward normal, on a corner that of one of its edges, in the centre of a disc any direction."""
    area = with_hole().without(WRECKS, 300.0)
    boundary = area.boundary
    east, north = area.origin
    for part in range(len(boundary.margin)):
        for e in range(boundary.first[part], boundary.first[part + 1]):
            start = np.array([boundary.start_x[e], boundary.start_y[e]])
            along = np.array([boundary.end_x[e], boundary.end_y[e]]) - start
            places = start + np.array([[0.0], [0.3], [0.5]]) * along + (east, north)
            distance, by_x, by_y = area.signed_distance_gradient(*places.T)
            assert np.hypot(by_x, by_y) == pytest.approx([1, 1, 1], abs=1e-12)
            if part < boundary.regions:
                assert distance == pytest.approx([0, 0, 0], abs=1e-9)
                left = np.array([-along[1], along[0]]) / np.hypot(*along)
                assert by_x[1:] == pytest.approx(left[[0, 0]], abs=1e-12)
                assert by_y[1:] == pytest.approx(left[[1, 1]], abs=1e-12)
            else:
                assert distance == pytest.approx([-300, -300, -300], abs=1e-9)


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_nearest_inside(make):
    area = make()
    x, y = around(area, 500, seed=5)
    inside = area.contains(x, y)
    there_x, there_y = area.nearest_inside(x, y)
    assert (there_x[inside] == x[inside]).all()
    assert (there_y[inside] == y[inside]).all()
    assert (area.signed_distance(there_x, there_y) >= -1e-9).all()
    moved = np.hypot(there_x - x, there_y - y)
    # no farther than to a polygon that is never larger than the area, no nearer than a slightly larger one allows
    assert (moved <= shapely.distance(area.to_shapely(), shapely.points(x, y)) + 1e-6).all()
    assert (moved >= shapely.distance(area.to_shapely().buffer(0.1), shapely.points(x, y)) - 1e-6).all()
    again_x, again_y = area.nearest_inside(there_x, there_y)
    assert (again_x == there_x).all()
    assert (again_y == there_y).all()


def test_nearest_inside_of_random_areas():
    """Zones that overlap each other and the boundary at all angles."""
    rng = np.random.default_rng(11)
    for _ in range(25):
        corner = np.array([EAST, NORTH])
        lines = [shapely.LineString(rng.uniform(-500, 4500, (3, 2)) + corner) for _ in range(3)]
        points = shapely.MultiPoint(rng.uniform(0, 4000, (4, 2)) + corner)
        area = square().without([*lines, points], rng.uniform(50, 300))
        x, y = around(area, 300, seed=rng.integers(1000))
        there = area.nearest_inside(x, y)
        assert (area.signed_distance(*there) >= -1e-9).all()


@pytest.mark.tiny
def test_random_points_are_uniform_and_reproducible():
    area = Area.union([square(), Area.from_arrays(*ring(SQUARE, 0.5, 10_000.0))])
    x, y = area.random_points(2000, np.random.default_rng(7))
    again = area.random_points(2000, np.random.default_rng(7))
    assert (x.tolist(), y.tolist()) == (again[0].tolist(), again[1].tolist())
    assert area.contains(x, y).all()
    assert (x > EAST + 9000).mean() == pytest.approx(0.2, abs=4 * np.sqrt(0.2 * 0.8 / 2000))
    assert (y[x < EAST + 9000] > NORTH + 1000).mean() == pytest.approx(0.75, abs=4 * np.sqrt(0.75 * 0.25 / 1600))
    assert len(area.random_points(0, np.random.default_rng(7))[0]) == 0


def test_zones():
    whole = square()
    plain = whole.without(RESERVE)
    assert plain.zones == ()
    assert plain.area_m2 == pytest.approx(whole.area_m2 - RESERVE.area)
    assert whole.without(Area.from_wkt(RESERVE.wkt)) == plain
    assert whole.without([WRECKS, CABLE], 100.0) == whole.without(WRECKS, 100.0).without(CABLE, 100.0)
    assert whole.without([]) == whole
    far = shapely.Point(EAST - 5000, NORTH)
    assert whole.without(far, 4000.0) == whole
    assert whole.without(CABLE, 200.0).regions == 2
    assert whole.without(shapely.LineString([(EAST, NORTH - 100), (EAST, NORTH + 5000)]), 200.0).regions == 1
    disc = whole.without(Area.circle(EAST + 2000, NORTH + 2000, 500.0), 100.0)
    assert disc.area_m2 == pytest.approx(whole.area_m2 - np.pi * 600**2, rel=1e-6)
    assert disc.signed_distance([EAST + 2000.0], [NORTH + 2000.0]) == pytest.approx([-600.0], abs=1e-9)
    assert disc.notes == ()


def test_regions_that_touch_become_one():
    halves = [Area.from_arrays(*ring(SQUARE)), Area.from_arrays(*ring(SQUARE, dx=4000.0))]
    both = Area.union(halves)
    assert both.regions == 1
    assert both.signed_distance([EAST + 4000.0], [NORTH + 2000.0]) == pytest.approx([2000.0])
    assert archipelago().regions == 3
    assert Area.union([Area.circle(EAST, NORTH, 100.0), square()]).regions == 1


@pytest.mark.tiny
@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_equality_and_pickling(make):
    area = make()
    assert make() == area
    assert hash(make()) == hash(area)
    copy = pickle.loads(pickle.dumps(area))
    assert copy == area
    assert copy.notes == area.notes
    assert area != Area.circle(0.0, 0.0, 1.0)
    x, y = ring(SQUARE)
    assert Area.from_arrays(np.r_[x[::-1], x[-1]], np.r_[y[::-1], y[-1]]) == square()
    assert Area.from_arrays(*ring(SQUARE), crs="EPSG:25831") != square()
    with pytest.raises(AttributeError):
        area.crs = "EPSG:25832"
    with pytest.raises(ValueError, match="read-only"):
        area.boundary.margin[0] = 5.0


def test_to_geojson_and_back(tmp_path):
    area = Area.from_geojson(FARMS, farm_idx=4)
    assert Area.from_geojson(area.to_geojson()) == area
    assert Area.from_geojson(json.dumps(archipelago().to_geojson())) == archipelago()
    path = tmp_path / "area.geojson"
    path.write_text(json.dumps(area.to_geojson()))
    assert Area.from_geojson(str(path)) == area


def test_built_in_farms():
    members = json.loads(FARMS.read_text())["features"]
    areas = [Area.from_geojson(FARMS, farm_idx=i) for i in range(10)]
    for area, feature in zip(areas, members, strict=True):
        assert area.crs == "EPSG:25831"
        assert area.notes == ()
        assert area.area_m2 == pytest.approx(shapely.geometry.shape(feature["geometry"]).area, rel=1e-12)
        assert Area.from_geojson(FARMS, name=feature["properties"]["name"]) == area
    everything = Area.from_geojson(FARMS)
    assert everything.area_m2 == pytest.approx(sum(area.area_m2 for area in areas))
    moved = Area.from_geojson(FARMS, farm_idx=0, crs="EPSG:25832")
    assert moved.notes == ("reprojected from EPSG:25831 to EPSG:25832 (UTM zone 32N)",)
    assert moved.area_m2 == pytest.approx(areas[0].area_m2, rel=2e-3)


def degrees(*corners):
    return {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}


SEA = degrees([3.0, 56.0], [3.3, 56.0], [3.3, 56.2], [3.0, 56.2])


def test_degrees_are_projected():
    import pyproj

    area = Area.from_geojson(SEA)
    assert area.crs == "EPSG:32631"
    assert area.notes == ("projected from EPSG:4326 to EPSG:32631 (UTM zone 31N)",)
    x, y = pyproj.Proj(proj="utm", zone=31, ellps="WGS84")(3.0, 56.0)
    assert x == pytest.approx(500_000.0, abs=1e-6)
    assert area.bounds[0] == pytest.approx(x, abs=1e-6)
    assert area.bounds[1] == pytest.approx(y, abs=1e-6)
    geodesic, _ = pyproj.Geod(ellps="WGS84").geometry_area_perimeter(shapely.geometry.shape(SEA))
    assert area.area_m2 == pytest.approx(abs(geodesic), rel=1e-3)
    back = pyproj.Transformer.from_crs(area.crs, "EPSG:4326", always_xy=True)
    corners = shapely.get_coordinates(area.to_shapely())
    for (lon, lat), expected in zip(
        np.column_stack(back.transform(*corners.T)), [[3.0, 56.0], [3.0, 56.2]], strict=False
    ):
        assert (lon, lat) == pytest.approx(expected, abs=1e-9)


def test_where_degrees_go():
    assert Area.from_geojson(SEA, crs="EPSG:25832").notes == ("projected from EPSG:4326 to EPSG:25832 (UTM zone 32N)",)
    south = Area.from_wkt("POLYGON ((151 -34, 151.2 -34, 151.2 -33.8, 151 -34))", crs="EPSG:4326")
    assert south.crs == "EPSG:32756"
    lon, lat = np.array(SEA["coordinates"][0]).T
    assert Area.from_arrays(lon, lat, crs="EPSG:4326") == Area.from_geojson(SEA)
    etrs = Area.from_arrays(lon, lat, crs="EPSG:4258")
    assert etrs.notes == ("projected from EPSG:4258 to EPSG:32631 (UTM zone 31N)",)
    disc = Area.circle(3.0, 56.0, 5000.0, crs="EPSG:4326")
    assert disc.crs == "EPSG:32631"
    assert disc.signed_distance([500_000.0], [disc.bounds[1]]) == pytest.approx([0.0], abs=1e-6)
    assert Area.from_geojson(degrees([179.0, 10.0], [180.0, 10.0], [179.5, 10.4])).crs == "EPSG:32660"
    assert Area.from_arrays(*ring(SQUARE), crs="urn:ogc:def:crs:EPSG::25831").crs == "EPSG:25831"


def metres(**more):
    x, y = ring(SQUARE)
    return {"type": "Polygon", "coordinates": [np.column_stack([x, y]).tolist()], **more}


def test_metres_without_a_name():
    area = Area.from_geojson(metres(), crs="EPSG:25831")
    assert area == Area.from_arrays(*ring(SQUARE), crs="EPSG:25831")
    assert area.notes == ("coordinates read as EPSG:25831, because the source names no coordinate system",)
    assert Area.from_geojson(metres(crs=None)) == square()
    assert Area.from_geojson(metres(crs=None), crs="EPSG:25831") == area


def feature(geometry, **properties):
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def collection(*features, **more):
    return {"type": "FeatureCollection", "features": list(features), **more}


def test_which_features():
    wreck = feature({"type": "Point", "coordinates": [3.1, 56.1]}, name="wreck")
    other = degrees([4.0, 56.0], [4.1, 56.0], [4.1, 56.1])
    both = collection(feature(SEA, name="a"), wreck, feature(other, name="b"))
    assert Area.from_geojson(both).regions == 2
    assert Area.from_geojson(both).notes[0] == "left out 1 feature(s) of 3 that are not polygons"
    assert Area.from_geojson(both, farm_idx=2) == Area.from_geojson(both, name="b") == Area.from_geojson(other)
    assert Area.from_geojson(feature(SEA)) == Area.from_geojson(json.dumps(SEA)) == Area.from_geojson(SEA)
    high = {"type": "MultiPolygon", "coordinates": [[[[*point, 12.0] for point in SEA["coordinates"][0]]]]}
    assert Area.from_geojson(high) == Area.from_geojson(SEA)
    with pytest.raises(InputError, match="feature 1 is a Point; expected a Polygon or a MultiPolygon"):
        Area.from_geojson(both, farm_idx=1)
    with pytest.raises(InputError, match="no feature has name 'c'; found the features 0, name 'a'; 1, name"):
        Area.from_geojson(both, name="c")
    with pytest.raises(InputError, match="no feature has farm_idx 10; found the features 0, farm_idx 0, name 'dk0w"):
        Area.from_geojson(FARMS, farm_idx=10)
    with pytest.raises(InputError, match="no feature has farm_idx -1"):
        Area.from_geojson(both, farm_idx=-1)
    with pytest.raises(InputError, match=r"farm_idx is '1'; expected a whole number"):
        Area.from_geojson(both, farm_idx="1")


BOW_TIE = ([0.0, 4.0, 0.0, 4.0], [0.0, 4.0, 4.0, 0.0])
OPEN_CRS = {"type": "link", "properties": {"href": "http://example.com/crs"}}


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Area.from_arrays(*BOW_TIE), r"the polygon is not a valid polygon: Self-intersection\[2 2\]"),
        (
            lambda: Area.from_arrays([0, 1, 0, 1], [0, 1, 0, 1]),
            r"the polygon: ring has 2 different point\(s\); expected",
        ),
        (lambda: Area.from_arrays([], []), r"ring has 0 different point\(s\); expected at least 3"),
        (lambda: Area.from_arrays([0, 1, 2], [0, 1, 2]), "polygon"),
        (lambda: Area.from_arrays([0, 1, NAN], [0, 1, 0]), r"x\[2\] is nan; expected a finite number"),
        (lambda: Area.from_arrays([0, 1, 2], [0, 1]), "x has 3 coordinates and y has 2"),
        (lambda: Area.from_arrays(*SQUARE, holes=[([9e3, 9.1e3, 9e3], [0, 0, 5])]), "Hole lies outside shell"),
        (lambda: Area.from_arrays(*SQUARE, holes=[([1, 2], [1, 2])]), r"hole 0 has 2 different point\(s\)"),
        (lambda: Area.from_arrays(*SQUARE, holes=[5]), "hole 0 is 5; expected a pair of x and y"),
        (lambda: Area.from_arrays(*SQUARE, crs="EPSG:99999999"), "coordinate system 'EPSG:99999999' is not known"),
        (
            lambda: Area.from_arrays(*SQUARE, crs="EPSG:4326"),
            "cannot be degrees of EPSG:4326, with a point at .4000, 0",
        ),
        (
            lambda: Area.from_arrays(*SQUARE, crs="EPSG:2263"),
            "unit of EPSG:2263 is the US survey foot; expected the metre",
        ),
        (lambda: Area.from_arrays(*SQUARE, crs="EPSG:4978"), "EPSG:4978 is not projected; expected metres"),
        (lambda: Area.circle(0, 0, 0), "radius_m is 0; expected a finite number above 0"),
        (lambda: Area.circle(0, 0, -5), "radius_m is -5"),
        (lambda: Area.circle(0, NAN, 5), r"the centre\[1\] is nan"),
        (lambda: Area.from_wkt("POLYGON EMPTY"), "the WKT is empty; expected a polygon"),
        (lambda: Area.from_wkt("POLYGON ((0 0, 1"), "cannot be read as WKT"),
        (lambda: Area.from_wkt("LINESTRING (0 0, 1 1)"), "the WKT is a LineString; expected a Polygon"),
        (lambda: Area.from_wkt("POLYGON ((0 0, 4 4, 0 4, 4 0, 0 0))"), r"the WKT is not .*Self-intersection\[2 2\]"),
        (lambda: Area.from_wkt("POLYGON ((0 0, 4 4, 0 nan, 0 0))"), r"the WKT: ring\[2, 1\] is nan"),
        (lambda: Area.from_wkt(5), "WKT is 5; expected text"),
        (lambda: Area.union([]), "no areas to join"),
        (lambda: Area.union([square(), "sea"]), "one of the areas is 'sea'; expected an Area"),
    ],
)
def test_bad_shapes(make, says):
    with pytest.raises(InputError, match=says):
        make()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{", "the GeoJSON: not JSON: .* in line 1, column 2"),
        ("[1, 2]", r"expected a GeoJSON object, found \[1, 2\]"),
        (5, "the GeoJSON is 5; expected a path, JSON text or a dict"),
        ({}, "its type is None; expected a FeatureCollection, a Feature or a geometry"),
        (collection(), "it has no features; expected at least one"),
        (collection({"type": "Polygon"}), "feature 0 is .*; expected an object of type Feature"),
        (collection(feature(None)), "it has no polygons, only None"),
        (collection(feature({"type": "Point", "coordinates": [1, 2]})), "it has no polygons, only Point"),
        (collection({**feature(SEA), "crs": None}), r"its own coordinate system \(crs\); expected one for all"),
        ({"type": "Polygon", "coordinates": []}, "the GeoJSON is empty; expected a polygon"),
        ({"type": "MultiPolygon", "coordinates": []}, "the GeoJSON is empty; expected a polygon"),
        ({"type": "Polygon", "coordinates": 5}, "coordinates are 5; expected rings of points"),
        ({"type": "Polygon"}, "coordinates are None; expected rings of points"),
        ({"type": "Polygon", "coordinates": [[1, 2, 3]]}, "expected points with two coordinates"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1]]]}, "ring: expected numbers"),
        (degrees([0, 0], [1, 1], [1, NAN]), r"ring\[2, 1\] is nan"),
        (degrees([0, 0], [4, 4], [0, 4], [4, 0]), r"not a valid polygon: Self-intersection\[2 2\]"),
        (collection(feature(SEA), feature(degrees([0, 0], [1, 1]))), r"feature 1: ring has 2 different point\(s\)"),
        (metres(), r"cannot be degrees, with a point at .*name the projected one with crs="),
        (metres(crs=OPEN_CRS), "crs is .*link.*; expected"),
        (metres(crs={"type": "name", "properties": {"name": "EPSG:2263"}}), "unit of EPSG:2263"),
        (metres(crs={"type": "name", "properties": {"name": "atlantis"}}), "system 'atlantis' is not known"),
        (degrees([-179.0, 10.0], [179.0, 10.0], [0, 11.0]), "across 180 degrees"),
        (degrees([0.0, 85.0], [1.0, 85.0], [1.0, 86.0]), "no UTM zones; name a projected coordinate system"),
    ],
)
def test_bad_geojson(source, says):
    with pytest.raises(InputError, match=says):
        Area.from_geojson(source)


def test_bad_files(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.geojson: no such file"):
        Area.from_geojson(tmp_path / "nowhere.geojson")
    file = tmp_path / "area.geojson"
    file.write_text('{\n  "type": oops')
    with pytest.raises(InputError, match=r"area\.geojson: not JSON: Expecting value in line 2, column 11"):
        Area.from_geojson(file)
    file.write_bytes(b'{"type": "\xff\xfe"}')
    with pytest.raises(InputError, match=r"area\.geojson: cannot be read"):
        Area.from_geojson(str(file))
    file.write_text("\ufeff" + json.dumps(SEA), encoding="utf-8")
    assert Area.from_geojson(str(file)) == Area.from_geojson(SEA)


def test_bad_targets():
    with pytest.raises(InputError, match="crs: EPSG:4326 is not projected; expected metres"):
        Area.from_geojson(SEA, crs="EPSG:4326")
    with pytest.raises(InputError, match=r"the point \(93, 0\) of EPSG:4326 cannot be projected to EPSG:32631"):
        Area.from_geojson(degrees([93.0, 0.0], [94.0, 0.0], [94.0, 1.0]), crs="EPSG:32631")
    with pytest.raises(InputError, match=r"1000 m on the ground are 17\d\d m in EPSG:3857; .* Is crs the right one"):
        Area.from_geojson(SEA, crs="EPSG:3857")
    with pytest.raises(InputError, match=r"the centre: .* is not on the globe in EPSG:25831"):
        Area.circle(7e8, 6e9, 500.0, crs="EPSG:25831")


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("zone", "buffer", "says"),
    [
        (shapely.box(EAST - 1, NORTH - 1, EAST + 5e3, NORTH + 5e3), 0.0, "the area is empty"),
        (shapely.Point(EAST + 2000, NORTH + 2000), 3000.0, "the area is empty"),
        (Area.circle(EAST + 2000, NORTH + 2000, 2900.0), 0.0, "the area is empty"),
        (CABLE, 0.0, "zone 0 is a LineString, which has no area; give its buffer_m"),
        (WRECKS, 0.0, "zone 0 is a Point, which has no area"),
        (CABLE, -1.0, "buffer_m is -1; expected 0 or more"),
        (CABLE, NAN, "buffer_m.* is nan"),
        (CABLE, [1.0], "buffer_m: expected 0 dimension"),
        (shapely.Polygon(), 5.0, "zone 0 is empty"),
        ([CABLE, "reef"], 5.0, "zone 1 is 'reef'; expected an Area or a shapely geometry"),
        (5, 5.0, "zones are 5; expected an Area"),
        (shapely.Polygon(np.column_stack(BOW_TIE)), 5.0, "zone 0 is not a valid polygon: Self-inter"),
        (Area.from_arrays(*SQUARE, crs="EPSG:25832"), 5.0, "several coordinate systems: EPSG:25831, EPSG:25832"),
    ],
)
def test_bad_zones(zone, buffer, says):
    area = Area.from_arrays(*ring(SQUARE), crs="EPSG:25831")
    with pytest.raises(InputError, match=says):
        area.without(zone, buffer)


def test_zones_of_zones():
    zoned = square().without(CABLE, 100.0)
    with pytest.raises(InputError, match="zone 0 has excluded zones itself; expected an area without zones"):
        Area.circle(EAST, NORTH, 9000.0).without(zoned)
    with pytest.raises(InputError, match="overlaps another area; make the union of the areas first"):
        Area.union([zoned, horseshoe()])
    far = Area.from_arrays(*ring(SQUARE, dx=20_000.0))
    assert Area.union([zoned, far]) == Area.union([square(), far]).without(CABLE, 100.0)


@pytest.mark.tiny
def test_bad_questions():
    area = square()
    with pytest.raises(InputError, match=r"x\[1\] is nan"):
        area.signed_distance([0, NAN], [0, 0])
    with pytest.raises(InputError, match="x has 2 coordinates and y has 1"):
        area.contains([0, 1], [0])
    with pytest.raises(InputError, match="count is -1; expected a whole number"):
        area.random_points(-1, np.random.default_rng(0))
    with pytest.raises(InputError, match="rng is 5; expected a generator"):
        area.random_points(1, 5)
    assert area.signed_distance([], []).shape == (0,)
    assert area.contains([EAST - 1.0], [NORTH], tolerance_m=1.5).tolist() == [True]
    assert repr(area) == "Area(1 region(s), 16 km2, crs=None)"


def test_areas_need_no_compiler():
    program = (
        "import sys; from leeward.layout import Area; area = Area.circle(0, 0, 5).without(Area.circle(4, 0, 1)); "
        "area.boundary; print('numba' in sys.modules, 'pyproj' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert result.stdout.strip() == "False False", result.stderr
