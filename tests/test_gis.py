"""Areas from GIS files, and layouts back as a GeoPackage, read by geopandas and pyogrio."""

import sys

import numpy as np
import pytest
import shapely

from campaign_cases import load_study
from export_cases import campaign_data, make_run
from leeward.campaign import load, open_layouts
from leeward.errors import InputError
from leeward.layout import Area
from run_cases import leeward_here

geopandas = pytest.importorskip("geopandas")
pyogrio = pytest.importorskip("pyogrio")

WEST = shapely.box(700_000, 6_230_000, 706_000, 6_236_000)
EAST = shapely.box(708_000, 6_230_000, 714_000, 6_238_000) - shapely.box(710_000, 6_232_000, 711_000, 6_233_000)
FARMS = "\n  - name: north\n    polygon_m: [[0, 0], [8000, 0], [8000, 2500], [2500, 2500], [2500, 8000], [0, 8000]]\n"
DRIVERS = {"gpkg": "GPKG", "shp": "ESRI Shapefile", "kml": "KML"}


def frame():
    return geopandas.GeoDataFrame({"Name": ["west", "east"]}, geometry=[WEST, EAST], crs="EPSG:25831")


def written(folder, ending):
    path = folder / f"areas.{ending}"
    areas = frame().to_crs("EPSG:4326") if ending == "kml" else frame()
    areas.to_file(path, driver=DRIVERS[ending])
    return path


@pytest.mark.parametrize("ending", DRIVERS)
def test_areas_of_every_format(tmp_path, ending):
    path = written(tmp_path, ending)
    for name, shape in (("west", WEST), ("east", EAST)):
        area = Area.from_file(path, name=name, crs="EPSG:25831")
        assert area.area_m2 == pytest.approx(shape.area, rel=1e-6)
        assert area.to_shapely().symmetric_difference(shape).area < 1e-5 * shape.area
    assert Area.from_file(path, crs="EPSG:25831").area_m2 == pytest.approx(WEST.area + EAST.area, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("ending", DRIVERS)
def test_campaigns_of_every_format(tmp_path, ending):
    path = written(tmp_path, ending)
    campaign = load(campaign_data(farms={"file": str(path)}, turbines_per_farm=4))
    assert dict(campaign.farms) == {0: "west", 1: "east"}
    assert campaign.physics.area(1).area_m2 == pytest.approx(EAST.area, rel=1e-6)
    one = load(campaign_data(farms=[{"file": str(path), "feature": "east"}], turbines_per_farm=4))
    assert dict(one.farms) == {0: "east"}


def test_the_command_takes_them(tmp_path):
    path = written(tmp_path, "gpkg")
    options = ["--area", path, "--farm", "west", "--turbines", "3", "--recipe", "random", "-o", "layout.csv"]
    done = leeward_here("optimise", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "36.0 km2" in done.stdout


def test_without_a_coordinate_system(tmp_path):
    """A Shapefile without its .prj file is in metres, never in degrees."""
    written(tmp_path, "shp")
    (tmp_path / "areas.prj").unlink()
    area = Area.from_file(tmp_path / "areas.shp", name="west")
    assert (area.crs, area.area_m2) == (None, pytest.approx(36e6))
    small = geopandas.GeoDataFrame({"Name": ["near"]}, geometry=[shapely.box(0, 0, 100, 50)])
    small.to_file(tmp_path / "small.shp")
    assert Area.from_file(tmp_path / "small.shp").area_m2 == pytest.approx(5000.0)
    assert Area.from_file(tmp_path / "areas.shp", name="west", crs="EPSG:25831").area_m2 == pytest.approx(36e6)


def test_bad_files(tmp_path):
    (tmp_path / "areas.gpkg").write_bytes(b"")
    with pytest.raises(InputError, match=r"areas.gpkg: cannot be read"):
        Area.from_file(tmp_path / "areas.gpkg")
    with pytest.raises(InputError, match=r"none.shp: no such file; expected areas"):
        Area.from_file(tmp_path / "none.shp")
    points = geopandas.GeoDataFrame({"Name": ["mast"]}, geometry=[shapely.Point(0, 0)], crs="EPSG:25831")
    points.to_file(tmp_path / "points.gpkg", driver="GPKG", layer="masts")
    with pytest.raises(InputError, match=r"points.gpkg: has no layer of polygons"):
        Area.from_file(tmp_path / "points.gpkg")
    frame().to_file(tmp_path / "two.gpkg", driver="GPKG", layer="first")
    frame().to_file(tmp_path / "two.gpkg", driver="GPKG", layer="second")
    with pytest.raises(InputError, match=r"2 layers have polygons \(first, second\); expected one"):
        Area.from_file(tmp_path / "two.gpkg")
    points.to_file(tmp_path / "two-kinds.gpkg", driver="GPKG", layer="masts")
    frame().to_file(tmp_path / "two-kinds.gpkg", driver="GPKG", layer="areas")
    assert Area.from_file(tmp_path / "two-kinds.gpkg", name="west").area_m2 == pytest.approx(36e6)


def test_styles_of_qgis_and_collections_of_kml(tmp_path):
    """Tables without geometry are not layers of areas; polygons in a MultiGeometry count."""
    written(tmp_path, "gpkg")
    styles = geopandas.pd.DataFrame({"styleQML": ["<qgis/>"]})
    pyogrio.write_dataframe(styles, tmp_path / "areas.gpkg", layer="layer_styles", append=True)
    assert Area.from_file(tmp_path / "areas.gpkg", name="west").area_m2 == pytest.approx(36e6)
    ring = "8.0,55.0,0 8.1,55.0,0 8.1,55.1,0 8.0,55.0,0"
    boundary = f"<LinearRing><coordinates>{ring}</coordinates></LinearRing>"
    polygon = f"<Polygon><outerBoundaryIs>{boundary}</outerBoundaryIs></Polygon>"
    point = "<Point><coordinates>8.0,55.0,0</coordinates></Point>"
    (tmp_path / "two.kml").write_text(
        '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark><name>p</name><MultiGeometry>'
        f"{polygon}{point}</MultiGeometry></Placemark></Document></kml>"
    )
    campaign = load(campaign_data(farms={"file": str(tmp_path / "two.kml")}, turbines_per_farm=4, crs="EPSG:25832"))
    assert dict(campaign.farms) == {0: "p"}
    assert campaign.physics.area(0).area_m2 > 30e6


def test_without_pyogrio(tmp_path, monkeypatch):
    path = written(tmp_path, "gpkg")
    monkeypatch.setitem(sys.modules, "pyogrio", None)
    with pytest.raises(InputError, match=r"reading .gpkg files needs pyogrio; pip install 'leeward\[gis\]'"):
        load_study(tmp_path, (FARMS, f" {{file: {path}}}\n"))


NEIGHBOURS = [
    {"x_m": [690_000.0, 691_000.0], "y_m": [6_230_000.0] * 2, "turbine": {"rated_power_mw": 8, "rotor_diameter_m": 167,
     "hub_height_m": 113, "name": "V-8"}},
]  # fmt: skip


def test_a_geopackage(tmp_path):
    """Positions to the last bit, in the campaign's coordinates, with names and figures."""
    make_run(tmp_path, turbines=campaign_data()["turbines"][:1], seeds=1, neighbours=NEIGHBOURS)
    done = leeward_here("export", "layouts.h5", "-o", "layouts.gpkg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "geopackage" in done.stdout
    path = tmp_path / "layouts.gpkg"
    kinds = dict(pyogrio.list_layers(path).tolist())
    assert kinds == {"areas": "MultiPolygon", "turbines": "Point", "neighbours": "Point"}
    turbines, areas, near = (geopandas.read_file(path, layer=name) for name in ("turbines", "areas", "neighbours"))
    assert turbines.crs.to_string() == areas.crs.to_string() == "EPSG:25831"
    with open_layouts(tmp_path / "layouts.h5") as layouts:
        for key, result in layouts.items():
            own = turbines[turbines["key"] == str(key)]
            np.testing.assert_array_equal(own.geometry.x, result.x)
            np.testing.assert_array_equal(own.geometry.y, result.y)
            assert (own["layout_aep_gwh"] == result.aep_gwh).all()
            assert (own["rotor_diameter_m"] == result.rotor_diameter_m).all()
    assert areas["name"].tolist()[1] == "Østervig"
    assert areas.geometry.contains(shapely.Point(702_000, 6_232_000)).tolist() == [True, False]
    assert near[["turbine_type", "rated_power_mw"]].values.tolist() == [["V-8", 8.0]] * 2
    again = Area.from_file(path, farm_idx=0)
    assert again.area_m2 == pytest.approx(16e6)


# --- windIO sites ---

SITE = """\
name: Nordhavn
boundaries:
  polygons:
    - {x: [700000, 706000, 706000, 700000], y: [6230000, 6230000, 6236000, 6236000], crs: "EPSG:25831"}
    - {x: [708000, 709000, 709000, 708000], y: [6230000, 6230000, 6231000, 6231000]}
exclusions:
  circle: {center: {x: 703000, y: 6233000}, radius: 500}
"""


def test_boundaries_and_exclusions_of_windio(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    area = Area.from_file(path)
    assert area.area_m2 == pytest.approx(37e6 - np.pi * 500.0**2, rel=1e-6)
    assert area.crs == "EPSG:25831"
    other = Area.from_file(tmp_path / "site.yaml", crs="EPSG:25831")
    assert other.area_m2 == area.area_m2
    for farms in ({"file": str(path)}, [{"file": str(path)}]):
        campaign = load(campaign_data(farms=farms, turbines_per_farm=4))
        assert dict(campaign.farms) == {0: "Nordhavn"}
        assert campaign.physics.area(0).area_m2 == pytest.approx(area.area_m2, rel=1e-9)


def test_only_does_not_apply_to_windio(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    with pytest.raises(InputError, match="is a windIO site, which is one area; remove `only`"):
        load(campaign_data(farms={"file": str(tmp_path / "site.yaml"), "only": [0]}, turbines_per_farm=4))


def test_circles_and_plants_of_windio(tmp_path):
    windio = pytest.importorskip("windIO")
    from pathlib import Path

    folder = Path(windio.__file__).parent / "examples" / "plant"
    circle = Area.from_file(folder / "plant_energy_site" / "IEA37_case_study_1_2_energy_site.yaml")
    assert circle.area_m2 == pytest.approx(np.pi * 1300.0**2)
    five = Area.from_file(folder / "wind_energy_system" / "IEA37_case_study_4_wind_energy_system.yaml")
    assert len(shapely.get_parts(five.to_shapely())) == 5


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("708000, 709000, 709000, 708000", "708000, 709000, 709000", r"boundaries.polygons\[1\] has 3 x and 4 y"),
        ("x: [700000", "x: [far", r"line 4: boundaries.polygons\[0\].x\[0\] is 'far'; expected a number"),
        ("radius: 500", "radius: wide", "exclusions.circle.radius is 'wide'; expected a number"),
        ("boundaries", "borders", "has no boundaries; expected a windIO site"),
        ("6231000]}", '6231000], crs: "EPSG:25832"}', "has another crs than the rest: EPSG:25831 and EPSG:25832"),
    ],
)
def test_bad_sites_of_windio(tmp_path, old, new, says):
    (tmp_path / "site.yaml").write_text(SITE.replace(old, new, 1))
    with pytest.raises(InputError, match=says):
        Area.from_file(tmp_path / "site.yaml")
    with pytest.raises(InputError, match="a windIO site is one area; remove farm_idx and name"):
        Area.from_file(tmp_path / "site.yaml", name="west")
