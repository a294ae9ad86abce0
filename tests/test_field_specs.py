"""Bad wind on grids in campaign files and in those that runs store: each error names the file, the line and the key."""

import base64
import copy
import hashlib
import tracemalloc
import zlib

import numpy as np
import pyproj
import pytest
import yaml

import field_cases as cases
import resource_cases
from leeward.campaign import load
from leeward.errors import InputError
from leeward.wind.field_settings import unpacked
from resource_cases import make_field_campaign
from test_field_errors import BINS, HOLE, changed, rejected

SMART_START = {"optimiser": {"recipe": "smart_start"}}


def made(folder, dataset=None, **changes):
    return make_field_campaign(folder, dataset, **{**SMART_START, **changes})


def rejected_campaign(path, *says):
    """Expect an error that names the campaign file and a line, and contains each of these texts."""
    with pytest.raises(InputError) as error:
        load(path).check()
    text = str(error.value)
    assert text.startswith(f"{path}: ")
    assert "line " in text
    for words in says:
        assert words in text, text


def test_areas_outside_or_around_missing_values_in_a_campaign(tmp_path):
    reaches = "farms[1]: farm 1, type 0: the area reaches outside the grid of the wind in wind.nc"
    data = cases.weibull_field(resource_cases.X, resource_cases.Y)
    rejected_campaign(made(tmp_path, data.isel(x=slice(4))), reaches, ": 2000 m to the east", "extrapolate: true")
    hole = changed(data, "TI", np.nan, HOLE)
    rejected_campaign(made(tmp_path, hole), "farms[0]: farm 0", "wind.nc: turbulence is missing (NaN) near (700000, 62")
    away = {"x_m": [cases.EAST - 5.0], "y_m": [cases.NORTH], "turbine": 0}
    rejected_campaign(made(tmp_path, neighbours=[away]), "neighbour 0 at (699995, 6240000) is 5 m outside")


def test_an_area_that_is_cut_off_a_missing_value_in_a_campaign(tmp_path):
    hole = changed(cases.weibull_field(resource_cases.X, resource_cases.Y), "TI", np.nan, HOLE)
    path = made(tmp_path, hole)
    data = yaml.safe_load(path.read_text())
    left, low = cases.EAST, cases.NORTH
    corners = [[left, low], [left + 4001.0, low], [left + 4001.0, low + 4001.0], [left, low + 4001.0]]
    data["farms"][0]["exclude"] = [{"polygon_m": corners}]
    path.write_text(yaml.safe_dump(data))
    load(path).check()


def site_with(**keys):
    bins = {"wind_directions_deg": BINS["directions"], "wind_speeds_m_s": BINS["speeds"]}
    return {"site": {"file": "wind.nc", **bins, **keys}}


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"distances": "curved"}, "site.distances is 'curved'; expected one of 'straight', 'elevated'"),
        ({"turbulence_intensity": 8}, "wind.nc: turbulence is 8 at x = 700000"),
        ({"shear": {"reference_height_m": 100}}, "site.shear: expected one of exponent, roughness_length_m"),
        (
            {"shear": {"exponent": 0.1, "roughness_length_m": 0.1, "reference_height_m": 100}},
            "found exponent and roughness_length_m",
        ),
        ({"shear": {"exponent": 3, "reference_height_m": 100}}, "the exponent is 3; expected -0.5 to 1"),
        ({"shear": {"exponent": 0.1, "reference_height_m": -1}}, "site.shear.reference_height_m is -1"),
        ({"extrapolate": "perhaps"}, "site.extrapolate is 'perhaps'"),
        ({"file": "calm.nc"}, "calm.nc: no such file"),
    ],
)
def test_keys_of_a_campaign(keys, says, tmp_path):
    rejected_campaign(made(tmp_path, **site_with(**keys)), says)


GRID_KEYS = {"distances": "elevated", "extrapolate": True, "crs": "EPSG:25832"}


@pytest.mark.parametrize("key", GRID_KEYS)
def test_keys_of_a_grid_beside_uniform_wind(key, tmp_path):
    value = GRID_KEYS[key]
    wind = {"sector_frequency": [1.0], "weibull_a_m_s": [9.0], "weibull_k": [2.0], "turbulence_intensity": 0.08}
    path = made(tmp_path, site={"weibull": wind, key: value})
    rejected_campaign(path, f"site has {key}, which applies only to a site file")


def test_a_hub_above_the_levels_in_a_campaign(tmp_path):
    tall = {**resource_cases.TYPES[0], "name": "tall", "hub_height_m": 170}
    rejected_campaign(made(tmp_path, turbines=[tall]), "tall has its hub at 170 m", "wind.nc", "from 80 to 160 m")


def test_elevated_distances_without_elevation_in_a_campaign(tmp_path):
    data = cases.weibull_field(resource_cases.X, resource_cases.Y)
    says = ("site.file", "wind.nc: distances is 'elevated', which needs the elevation")
    rejected_campaign(made(tmp_path, data, **site_with(distances="elevated")), *says)


# --- coordinate systems ---

UTM_32 = pyproj.CRS("EPSG:25832").to_wkt()


def with_crs(name, variable=None):
    """Return the wind with a coordinate system as an attribute of the file, or of a variable."""
    data = cases.weibull_field(resource_cases.X, resource_cases.Y)
    attribute = "crs" if len(name) < 20 else "crs_wkt"
    return (
        data.assign_attrs({attribute: name})
        if variable is None
        else data.assign({variable: ((), 0, {attribute: name})})
    )


def test_the_coordinate_system_of_the_file_is_another(tmp_path):
    says = ("site.file: the wind is in ETRS89 / UTM zone 31N, but the areas", "EPSG:25832", "reproject", "set `crs`")
    rejected_campaign(made(tmp_path, with_crs("EPSG:25831"), crs="EPSG:25832"), *says)
    says = ("site.file: the wind is in WGS 84, but the areas", "are in EPSG:25832")
    rejected_campaign(made(tmp_path, with_crs("EPSG:4326"), crs="EPSG:25832"), *says)
    rejected_campaign(made(tmp_path, with_crs("moon"), crs="EPSG:25832"), "the unknown coordinate system 'moon'")


@pytest.mark.parametrize("name", ["EPSG:25832", UTM_32], ids=["code", "wkt"])
@pytest.mark.parametrize("variable", [None, "spatial_ref", "crs"])
def test_the_coordinate_system_of_the_file_is_the_same(name, variable, tmp_path):
    campaign = load(made(tmp_path, with_crs(name, variable), crs="EPSG:25832"))
    assert campaign.remarks == ()
    assert campaign.physics.site.crs == name


@pytest.mark.parametrize(
    ("crs", "of_file", "says"),
    [("EPSG:25832", None, "wind.nc"), (None, None, "wind.nc"), (None, "EPSG:25832", "the areas")],
)
def test_a_coordinate_system_that_is_not_known_is_a_remark(crs, of_file, says, tmp_path):
    dataset = None if of_file is None else with_crs(of_file)
    (remark,) = load(made(tmp_path, dataset, **({} if crs is None else {"crs": crs}))).remarks
    assert says in remark
    assert "coordinate system" in remark
    assert "the same coordinates" in remark


def test_the_coordinate_system_of_the_file_in_the_campaign(tmp_path):
    """For files that name none, or a wrong one."""
    for dataset in (None, with_crs("EPSG:25831")):
        campaign = load(made(tmp_path, dataset, crs="EPSG:25832", **site_with(crs="EPSG:25832")))
        assert campaign.remarks == ()
        assert campaign.physics.site.crs == "EPSG:25832"
    says = ("site.file: the wind is in ETRS89 / UTM zone 31N", "are in EPSG:25832")
    rejected_campaign(made(tmp_path, crs="EPSG:25832", **site_with(crs="EPSG:25831")), *says)
    rejected_campaign(made(tmp_path, crs="EPSG:25832", **site_with(crs="moon")), "site", "moon")


# --- frozen campaigns ---


@pytest.fixture(scope="module")
def frozen(tmp_path_factory):
    """A campaign as leeward stores it, as data."""
    return yaml.safe_load(load(made(tmp_path_factory.mktemp("frozen"))).frozen_text())


def repacked(values):
    raw = np.ascontiguousarray(values, "<f8")
    by_place = raw.reshape(-1).view(np.uint8).reshape(-1, 8).T  # all first bytes, then all second ones, ...
    data = base64.b64encode(zlib.compress(by_place.tobytes())).decode()
    return {"shape": list(values.shape), "sha256": hashlib.sha256(raw.tobytes()).hexdigest(), "data": data}


BOMB = base64.b64encode(zlib.compress(bytes(1 << 26), 9)).decode()  # 64 MiB
DAMAGE = {  # of the packed Weibull scale, by what changes it in place
    "another digest": (lambda packed: packed.update(sha256="0" * 64), "weibull_a: the packed values are damaged"),
    "no digest": (lambda packed: packed.pop("sha256"), "sha256 is missing"),
    "half a digest": (lambda packed: packed.update(sha256="0" * 32), "weibull_a.sha256 is '0"),
    "another character": (lambda packed: packed.update(data=flipped(packed["data"])), "weibull_a: the packed values"),
    "cut off": (lambda packed: packed.update(data=packed["data"][:-40]), "weibull_a: the packed values"),
    "empty": (lambda packed: packed.update(data=""), "weibull_a: the packed values are damaged"),
    "not base 64": (lambda packed: packed.update(data="not base 64"), "weibull_a: the packed values cannot be read"),
    "not ASCII": (lambda packed: packed.update(data="é" * 40), "weibull_a: the packed values cannot be read"),
    "not compressed": (lambda packed: packed.update(data="AAAA"), "weibull_a: the packed values cannot be read"),
    "no text": (lambda packed: packed.update(data=3), "weibull_a.data is 3; expected text"),
    "a bomb": (lambda packed: packed.update(data=BOMB), "weibull_a: the packed values are damaged"),
    "a huge shape": (lambda packed: packed.update(shape=[10**6] * 4), "expected at most 2 GiB"),
    "an endless shape": (lambda packed: packed.update(shape=[10**400, 1, 1, 1]), "expected at most 2 GiB"),
    "another shape": (lambda packed: packed.update(shape=[5, 4, 2, 8]), "weibull_a has the shape (5, 4, 2, 8)"),
    "a flat shape": (lambda packed: packed.update(shape=[4, 5, 16]), "weibull_a.shape is [4, 5, 16]"),
    "a negative shape": (lambda packed: packed.update(shape=[-4, -5, 2, 8]), "weibull_a.shape[0] is -4"),
    "no points": (lambda packed: packed.update(shape=[0, 5, 2, 8]), "weibull_a.shape[0] is 0"),
    "values that are no wind": (
        lambda packed: packed.update(repacked(np.full((4, 5, 2, 8), -3.0))),
        "wind.nc: weibull_a is -3 at x = 700000, y = 6240000, height 80 m",
    ),
    "infinite values": (lambda packed: packed.update(repacked(np.full((4, 5, 2, 8), np.inf))), "weibull_a is inf at"),
    "missing values": (
        lambda packed: packed.update(repacked(np.full((4, 5, 2, 8), np.nan))),
        "weibull_a is missing (NaN) at all points",
    ),
}


def flipped(text):
    """Return packed values with another character in the middle."""
    half = len(text) // 2
    return text[:half] + ("A" if text[half] != "A" else "B") + text[half + 1 :]


def rejected_frozen(frozen, folder, damage, *says):
    data = copy.deepcopy(frozen)
    damage(data["site"]["field"])
    path = folder / "frozen.yaml"
    path.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    rejected_campaign(path, *says)


def test_a_frozen_campaign_is_complete(frozen, tmp_path):
    path = tmp_path / "frozen.yaml"
    path.write_text(yaml.safe_dump(frozen))
    load(path).check()


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_values_of_a_frozen_campaign(name, frozen, tmp_path):
    damage, says = DAMAGE[name]
    rejected_frozen(frozen, tmp_path, lambda field: damage(field["values"]["weibull_a"]), says)


CUTS = {  # of the other keys of the field
    "no Weibull scale": (lambda field: field["values"].pop("weibull_a"), "has no weibull_a"),
    "an unknown quantity": (lambda field: field["values"].update(gusts=field["values"]["weibull_a"]), "'gusts'"),
    "a column less": (lambda field: field.update(x_m=field["x_m"][:-1]), "has the shape (4, 5, "),
    "NaN as a coordinate": (lambda field: field.update(x_m=[float("nan")] * 5), "site.field.x_m[0] is nan"),
    "unsorted": (lambda field: field.update(x_m=field["x_m"][::-1]), "x[1] is 712000 after 716000"),
    "no coordinates": (lambda field: field.update(x_m=[]), "site.field.x_m is"),
    "another kind": (lambda field: field.update(kind="table"), "has no probability"),
    "an unknown kind": (lambda field: field.update(kind="cube"), "site.field.kind is 'cube'"),
    "absurd shear": (
        lambda field: field.update(shear={"kind": "power", "values": [9.0], "reference_height_m": 100.0}),
        "the exponent is 9",
    ),
    "an unknown key": (lambda field: field.update(colour="red"), "site.field.colour is not a known key"),
    "a direction": (lambda field: field.update(wind_directions_deg=[500.0]), "expected degrees from 0 to 360"),
    "nothing": (lambda field: field.clear(), "site.field.kind is missing"),
    "no speeds": (lambda field: field.update(wind_speeds_m_s=[]), "speeds"),
    "speeds of a series": (lambda field: field.update(kind="series"), "steps"),
}


@pytest.mark.parametrize("name", CUTS)
def test_damaged_keys_of_a_frozen_campaign(name, frozen, tmp_path):
    damage, says = CUTS[name]
    rejected_frozen(frozen, tmp_path, damage, says)


def test_shear_beside_the_field_of_a_frozen_campaign(frozen, tmp_path):
    data = copy.deepcopy(frozen)
    data["site"]["shear"] = {"exponent": 0.1, "reference_height_m": 100}
    path = tmp_path / "frozen.yaml"
    path.write_text(yaml.safe_dump(data))
    rejected_campaign(path, "site has shear beside field, which has its own; remove it")


def test_a_bomb_is_not_unpacked():
    """At most as much memory as the shape says, and one byte."""
    tracemalloc.start()
    try:
        rejected(lambda: unpacked({"shape": [4, 5, 2, 8], "sha256": "0" * 64, "data": BOMB}, "weibull_a"), "damaged")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
