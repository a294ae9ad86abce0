"""Exports of one layout with its site, turbine and wake model: what PyWake, windIO and FLORIS make of them."""

import importlib.util
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyproj
import pytest

from export_cases import LEFT, LOW, SITE, campaign_data, make_run
from leeward.campaign import load, open_layouts
from leeward.errors import InputError
from leeward.export import arrays, floris, windio
from leeward.export.plant import plant_of
from leeward.peers.floris import NEAREST, floris_input
from leeward.peers.setup import closed_curve_points, curve_points
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import Result
from leeward.wind import Turbine
from run_cases import leeward_here

EXAMPLES = Path(__file__).parent.parent / "examples" / "export"

X = LEFT + np.array([300.0, 900.0, 2500.0, 3900.0])
Y = LOW + np.array([200.0, 2100.0, 1200.0, 3800.0])


def missing(package):
    """Skip a test where another tool is not installed."""
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")


needs_pywake, needs_floris, needs_windio = (missing(package) for package in ("py_wake", "floris", "windIO"))

CUBIC = {
    "rated_power_mw": 3.35,
    "rotor_diameter_m": 130,
    "hub_height_m": 110,
    "cut_in_m_s": 4,
    "rated_speed_m_s": 9.8,
    "cut_out_m_s": 25,
}
TABULAR = {
    "wind_speeds_m_s": [3, 10, 12, 25, 26],
    "power_mw": [0.1, 8, 10, 10, 0],
    "thrust_coefficient": [0.9, 0.8, 0.5, 0.1, 0.05],
    "rotor_diameter_m": 190,
    "hub_height_m": 120,
}
TABLE = {
    "kind": "exact",
    "wind_directions_deg": [0.0, 100.0, 250.0],
    "wind_speeds_m_s": [8.0, 12.0],
    "probability": [[0.1, 0.2], [0.1, 0.1], [0.3, 0.2]],
    "turbulence_intensity": [[0.06, 0.05], [0.1, 0.09], [0.08, 0.07]],
}
SERIES = {"wind_direction_deg": [10.0, 200.0, 355.0], "wind_speed_m_s": [6.0, 9.5, 12.0], "weight": [0.5, 0.2, 0.3]}
NEIGHBOURS = [{"x_m": [LEFT - 600.0, LEFT - 900.0], "y_m": [LOW + 100.0, LOW + 2500.0], "turbine": TABULAR}]
CASES = {
    "weibull": {},
    "linear": {"site": {"weibull": {**SITE["weibull"], "interpolation": "linear"}}},
    "table": {"site": {"table": TABLE}},
    "time series": {"site": {"time_series": SERIES}},
    "neighbours": {"neighbours": NEIGHBOURS},
    "tabular turbine": {"turbines": [TABULAR]},
    "jensen": {"wake_model": {"name": "jensen", "expansion": 0.06}},
    "gaussian": {"wake_model": {"name": "bastankhah_gaussian", "superposition": "linear", "induction": "momentum"}},
    "iea37": {"wake_model": "iea37_gaussian"},
    "no wake": {"wake_model": "no_wake"},
}


def write(path, pieces, plant):
    path.write_bytes(b"".join(pieces(SimpleNamespace(plant=plant, ending=path.suffix))))


def plant_and_aep(**changes):
    """A layout that somebody put down, in a campaign; and what leeward says that it yields."""
    campaign = load(campaign_data(**changes))
    aep = campaign.problem(0, 0).farm.aep_gwh(X, Y)
    fingerprint = campaign.fingerprint(0, 0)
    result = Result(Key(0, 0, 0), np.array([X, Y]), aep, campaign.physics.rotor_diameter_m(0), fingerprint, "steps", 1)
    return plant_of(result, campaign), aep


@pytest.fixture(scope="module")
def pywake_model():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        yield importlib.import_module("pywake_model")


@pytest.mark.slow
@needs_pywake
@pytest.mark.parametrize("case", CASES)
def test_arrays_have_the_same_energy_in_pywake(case, pywake_model, tmp_path):
    plant, aep = plant_and_aep(**CASES[case])
    write(tmp_path / "one.npz", arrays.array_pieces, plant)
    found = pywake_model.load_arrays(tmp_path / "one.npz")
    assert pywake_model.aep_gwh(found, found["x_m"], found["y_m"]) == pytest.approx(aep, rel=1e-9)
    power = np.interp(found["wind_speed_m_s"], found["turbine0_wind_speed_m_s"], found["turbine0_power_mw"])
    free = load(campaign_data(**CASES[case])).problem(0, 0).farm.simulate(X, Y).gross_aep_gwh.sum()
    assert float((power * found["probability"]).sum()) * 8.76 * len(X) == pytest.approx(free, rel=1e-9)
    if case != "no wake":
        assert pywake_model.aep_gwh(found, found["x_m"] * 1.001, found["y_m"]) != pytest.approx(aep, rel=1e-9)


@pytest.mark.slow
@needs_pywake
def test_curves_that_are_no_straight_lines(pywake_model, tmp_path):
    """They are cut into short lines: what that loses is far below the figures that anybody looks at."""
    plant, aep = plant_and_aep(turbines=[CUBIC])
    write(tmp_path / "one.json", arrays.array_pieces, plant)
    found = pywake_model.load_arrays(tmp_path / "one.json")
    assert pywake_model.aep_gwh(found, found["x_m"], found["y_m"]) == pytest.approx(aep, rel=1e-6)


def test_points_of_curves():
    cubic = Turbine.iea37_3_35mw()
    speeds = np.linspace(0.0, 40.0, 20001)
    for points in (curve_points, closed_curve_points):
        knots, power, thrust = points(cubic)
        assert (np.diff(knots) > 0).all()
        np.testing.assert_allclose(np.interp(speeds, knots, power), cubic.power_mw(speeds), rtol=0, atol=1e-6)
        np.testing.assert_allclose(np.interp(speeds, knots, thrust), cubic.thrust_coefficient(speeds), rtol=1e-12)
    straight = Turbine(**{**TABULAR, "name": "straight"})
    knots, power, thrust = curve_points(straight)
    assert [knots.tolist(), power.tolist(), thrust.tolist()] == [
        list(map(float, TABULAR[name])) for name in ("wind_speeds_m_s", "power_mw", "thrust_coefficient")
    ]
    knots, power, _ = closed_curve_points(straight)
    assert (knots[0], power[0], knots[-1], power[-1]) == (0.0, 0.1, 100.0, 0.0)


@needs_windio
@pytest.mark.parametrize("case", ["table", *(pytest.param(c, marks=pytest.mark.slow) for c in CASES if c != "table")])
def test_every_plant_is_one_by_the_schema(case, tmp_path):
    import windIO

    plant, _ = plant_and_aep(**CASES[case])
    write(tmp_path / "plant.yaml", windio.windio_pieces, plant)
    data = windIO.validate(tmp_path / "plant.yaml", "plant/wind_energy_system")
    assert data == windio.windio_plant(plant)


@needs_windio
def test_the_schema_refuses_what_is_none():
    """So that the test above can fail."""
    import windIO

    data = windio.windio_plant(plant_and_aep()[0])
    del data["wind_farm"]["turbines"]["hub_height"]
    with pytest.raises(Exception, match="hub_height"):
        windIO.validate(data, "plant/wind_energy_system")


def test_what_a_plant_says():
    data = windio.windio_plant(plant_and_aep()[0])
    assert data["attributes"]["analysis"]["wind_deficit_model"]["name"] == "TurbOPark"
    assert data["site"]["boundaries"]["polygons"][0]["crs"] == "EPSG:25831"
    curve = data["wind_farm"]["turbines"]["performance"]["power_curve"]
    assert max(curve["power_values"]) == pytest.approx(10e6)
    data = windio.windio_plant(plant_and_aep(**CASES["gaussian"])[0])
    analysis = data["attributes"]["analysis"]
    assert analysis["wind_deficit_model"]["name"] == "Bastankhah2014"
    assert analysis["superposition_model"] == {"ws_superposition": "Linear"}
    assert analysis["axial_induction_model"] == "1D"
    data = windio.windio_plant(plant_and_aep(**CASES["table"])[0])
    wind = data["site"]["energy_resource"]["wind_resource"]
    assert (wind["wind_direction"], wind["wind_speed"]) == (TABLE["wind_directions_deg"], TABLE["wind_speeds_m_s"])
    assert wind["probability"] == {"data": TABLE["probability"], "dims": ["wind_direction", "wind_speed"]}
    data = windio.windio_plant(plant_and_aep(**CASES["time series"])[0])
    assert data["site"]["energy_resource"]["wind_resource"]["probability"]["data"] == SERIES["weight"]
    data = windio.windio_plant(plant_and_aep(**CASES["neighbours"])[0])
    own, others = data["wind_farm"]["layouts"]
    assert (own["turbine_types"], others["turbine_types"]) == ([0] * 4, [1] * 2)
    assert others["coordinates"]["x"] == NEIGHBOURS[0]["x_m"]


def test_holes_are_exclusions():
    farm = {"name": "ring", "n_turbines": 4, "polygon_m": campaign_data()["farms"][0]["polygon_m"]}
    hole = [[LEFT + 1500, LOW + 300], [LEFT + 2000, LOW + 300], [LEFT + 2000, LOW + 600], [LEFT + 1500, LOW + 600]]
    plant, _ = plant_and_aep(farms=[{**farm, "holes_m": [hole]}])
    site = windio.windio_plant(plant)["site"]
    assert len(site["boundaries"]["polygons"]) == len(site["exclusions"]["polygons"]) == 1
    corners = site["exclusions"]["polygons"][0]
    assert sorted(zip(corners["x"], corners["y"], strict=True)) == sorted(map(tuple, hole))


def test_floris_has_no_counterpart_of_a_new_wake_model(monkeypatch):
    plant, _ = plant_and_aep(**CASES["neighbours"])
    monkeypatch.delitem(NEAREST, plant.wake_model.name)
    says = f"the wake model {plant.wake_model.name} has no counterpart in FLORIS; use one of"
    with pytest.raises(InputError, match=says):
        floris_input(plant, plant.key, "")


def test_a_floris_input():
    plant, _ = plant_and_aep(**CASES["neighbours"])
    data = floris_input(plant, plant.key, "")
    conditions = plant.conditions
    field = data["flow_field"]
    assert len(field["wind_directions"]) == len(field["wind_speeds"]) == conditions.weight.size
    assert field["wind_directions"][:6] == [0.0] * 5 + [45.0]
    assert field["wind_speeds"][:6] == [5.0, 7.0, 9.0, 11.0, 13.0, 5.0]
    assert field["wind_shear"] == 0.0
    assert [machine["hub_height"] for machine in data["farm"]["turbine_type"]] == [121.0] * 4 + [120.0] * 2
    assert data["farm"]["layout_x"] == [*X.tolist(), *NEIGHBOURS[0]["x_m"]]
    table = data["farm"]["turbine_type"][0]["power_thrust_table"]
    assert max(table["power"]) == pytest.approx(10e3)
    assert data["wake"]["model_strings"]["velocity_model"] == "turboparkgauss"
    json.dumps(data)  # plain numbers and texts only


@pytest.mark.slow
@needs_floris
@pytest.mark.parametrize("case", CASES)
def test_floris_takes_every_plant(case, tmp_path):
    """From a file. Its wake models are its own; without wakes the energy is the same."""
    from floris import FlorisModel

    plant, _ = plant_and_aep(**CASES[case])
    write(tmp_path / "floris.yaml", floris.floris_pieces, plant)
    model = FlorisModel(str(tmp_path / "floris.yaml"))
    probability, speeds = plant.conditions.weight, plant.conditions.speed
    own = np.arange(len(plant.types)) < len(X)
    weights = np.broadcast_to(own.astype(float), (probability.size, len(own)))
    expected = float((plant.turbines[0].power_mw(speeds) * probability).sum()) * 8.76 * len(X)
    model.run_no_wake()
    free = model.get_farm_AEP(freq=probability.ravel(), turbine_weights=weights) * 1e-9
    assert free == pytest.approx(expected, rel=1e-6)
    model.run()
    waked = model.get_farm_AEP(freq=probability.ravel(), turbine_weights=weights) * 1e-9
    assert 0.9 * free < waked <= free * (1 + 1e-12)


# --- the examples ---


@pytest.fixture(scope="module", params=[[], NEIGHBOURS], ids=["alone", "neighbours"])
def files(request, tmp_path_factory):
    """Of a small run: all layouts in each format for many, and one in each format for one."""
    settings = {"turbines": campaign_data()["turbines"][:1], "seeds": 1, "neighbours": request.param}
    folder = make_run(tmp_path_factory.mktemp("run"), **settings)
    one = ["--key", "1,0,0"]
    for name, options in {
        "layouts.nc": [],
        "turbines.parquet": [],
        "turbines.csv": [],
        "best.geojson": ["--best"],
        "arrays.npz": one,
        "arrays.json": one,
        "plant.yaml": one,
        "floris.yaml": [*one, "--format", "floris"],
    }.items():
        if name.endswith(".parquet") and importlib.util.find_spec("pyarrow") is None:
            continue
        done = leeward_here("export", "layouts.h5", "-o", name, *options, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


RUNS = {
    "01_arrays.py": (["arrays.npz"], "py_wake"),
    "02_netcdf.py": (["layouts.nc", "arrays.json"], "py_wake"),
    "03_parquet.py": (["turbines.parquet", "arrays.npz"], "pyarrow"),
    "04_csv.py": (["turbines.csv", "arrays.npz"], "py_wake"),
    "05_geojson.py": (["best.geojson", "arrays.npz"], "py_wake"),
    "06_windio.py": (["plant.yaml", "AEP"], "py_wake"),
    "07_floris.py": (["floris.yaml", "floris_wind_rose.csv", "arrays.npz"], "floris"),
}


@pytest.mark.slow
@needs_pywake
@pytest.mark.parametrize("script", RUNS)
def test_examples(script, files, monkeypatch, capsys):
    """They end with an error if the energies differ."""
    arguments, needs = RUNS[script]
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    aep = open_layouts(files / "layouts.h5")[1, 0, 0].aep_gwh
    monkeypatch.chdir(files)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", [script, *(repr(aep) if word == "AEP" else word for word in arguments)])
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    said = capsys.readouterr().out
    assert "apart" in said
    assert f"{aep:.6f} GWh" in said


def test_a_map_has_the_neighbours_once(tmp_path):
    """Areas before and turbines after them; what has no name has none."""
    make_run(tmp_path, turbines=campaign_data()["turbines"][:1], seeds=1, neighbours=NEIGHBOURS)
    done = leeward_here("export", "layouts.h5", "-o", "best.geojson", "--best", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    features = json.loads((tmp_path / "best.geojson").read_text(encoding="utf-8"))["features"]
    kinds = [feature["properties"]["kind"] for feature in features]
    assert kinds == ["area"] * 2 + ["neighbour"] * 2 + ["turbine"] * (4 + 5)
    expected = {"turbine_type": None, "rotor_diameter_m": 190.0, "hub_height_m": 120.0, "rated_power_mw": 10.0}
    assert features[2]["properties"] == features[3]["properties"] == {"kind": "neighbour", **expected}
    to_metres = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:25831", always_xy=True)
    places = np.array([feature["geometry"]["coordinates"] for feature in features[2:4]])
    standing = NEIGHBOURS[0]["x_m"], NEIGHBOURS[0]["y_m"]
    np.testing.assert_allclose(to_metres.transform(*places.T), standing, rtol=0, atol=2e-4)


@pytest.mark.slow
@needs_pywake
def test_examples_find_what_differs(files, monkeypatch):
    monkeypatch.chdir(files)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    text = (files / "turbines.csv").read_bytes().decode()
    x = repr(float(open_layouts(files / "layouts.h5")[1, 0, 0].x[0]))
    assert x in text
    (files / "moved.csv").write_bytes(text.replace(x, repr(float(x) + 1.0)).encode())
    monkeypatch.setattr(sys, "argv", ["04_csv.py", "moved.csv", "arrays.npz"])
    with pytest.raises(SystemExit, match="differ by more than"):
        runpy.run_path(str(EXAMPLES / "04_csv.py"), run_name="__main__")


def test_every_example_has_a_test_and_is_listed():
    listed = (EXAMPLES.parent / "README.md").read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f"(export/{path.name})" in listed
        assert path.name in RUNS or path.name == "pywake_model.py"
