"""Whole plants of windIO: read, evaluated and optimised, and compared with WIFA's PyWake tool."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray
import yaml

from export_cases import LEFT, LOW, make_run
from leeward.campaign import load, open_layouts
from leeward.campaign.plants import plant_farm
from leeward.errors import InputError
from leeward.export import windio
from leeward.export.wifa import turbine_data
from leeward.readers.windio_plant import read_plant
from run_cases import leeward_here
from test_export_plants import CASES, X, Y, plant_and_aep, write

if importlib.util.find_spec("windIO") is None:
    pytest.skip("windIO is not installed", allow_module_level=True)

import windIO

EXAMPLES = Path(windIO.__file__).parent / "examples" / "plant" / "wind_energy_system"
DATA = Path(__file__).parent / "data" / "wifa"
WIFA = json.loads((DATA / "wifa.json").read_text())["cases"]

TURBINE = {
    "name": "own",
    "performance": {
        "power_curve": {"power_wind_speeds": [3.0, 12.0, 25.0], "power_values": [1e5, 5e6, 5e6]},
        "Ct_curve": {"Ct_wind_speeds": [3.0, 12.0, 25.0], "Ct_values": [0.9, 0.8, 0.1]},
    },
    "hub_height": 90.0,
    "rotor_diameter": 126.0,
}
PLANT = {
    "name": "small",
    "site": {
        "name": "site",
        "boundaries": {"polygons": [{"x": [0.0, 4000.0, 4000.0, 0.0], "y": [0.0, 0.0, 3000.0, 3000.0]}]},
        "energy_resource": {
            "name": "wind",
            "wind_resource": {
                "wind_direction": [0.0, 90.0, 180.0, 270.0],
                "wind_speed": [6.0, 9.0, 12.0],
                "probability": {
                    "data": [[0.05, 0.1, 0.05], [0.05, 0.1, 0.05], [0.1, 0.1, 0.05], [0.1, 0.2, 0.05]],
                    "dims": ["wind_direction", "wind_speed"],
                },
                "turbulence_intensity": {"data": 0.07, "dims": []},
            },
        },
    },
    "wind_farm": {
        "name": "farm",
        "layouts": [{"coordinates": {"x": [500.0, 1500.0, 2500.0, 3500.0], "y": [1500.0] * 4}}],
        "turbines": TURBINE,
    },
    "attributes": {
        "analysis": {
            "wind_deficit_model": {
                "name": "Bastankhah2014",
                "wake_expansion_coefficient": {"k_a": 0.04, "k_b": 0.0},
                "ceps": 0.25,
                "use_effective_ws": True,
            },
            "axial_induction_model": "1D",
            "superposition_model": {"ws_superposition": "Linear"},
        },
        "model_outputs_specification": {
            "run_configuration": {
                "directions_run": {"all_values": True},
                "wind_speeds_run": {"all_values": True},
            }
        },
    },
}


def changed(data, place, value):
    """Return a copy with one value replaced; None removes it."""
    if not place:
        return value
    step, *rest = place
    copy = list(data) if isinstance(data, list) else dict(data)
    if value is None and not rest:
        copy.pop(step)
    else:
        inner = copy[step] if isinstance(copy, list) or step in copy else {}
        copy[step] = changed(inner, rest, value)
    return copy


def saved(folder, *changes):
    data = PLANT
    for place, value in changes:
        data = changed(data, place.split("."), value)
    path = folder / "plant.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


ANALYSIS = "attributes.analysis"
RESOURCE = "site.energy_resource.wind_resource"
RUNS = "attributes.model_outputs_specification.run_configuration"

# --- reading ---


def test_a_plant_is_a_campaign(tmp_path):
    campaign = load(saved(tmp_path))
    assert (campaign.name, dict(campaign.farms), dict(campaign.types)) == ("small", {0: "farm"}, {0: "own"})
    assert campaign.physics.n_turbines(0, 0) == 4
    assert campaign.physics.area(0).area_m2 == pytest.approx(12e6)
    assert campaign.spec.wake_model == {
        "name": "bastankhah_gaussian",
        "expansion": 0.04,
        "initial_width": 0.25,
        "thrust_limit": 0.899,
        "induction": "momentum",
        "reference_speed": "effective",
        "superposition": "linear",
    }
    assert campaign.physics.site.settings()["kind"] == "exact"
    assert list(campaign.remarks) == ["the plant gives no minimum_spacing: 3 rotor diameters are used"]


def test_spacing_exclusions_and_neighbours(tmp_path):
    hole = {"x": [1000.0, 1200.0, 1200.0, 1000.0], "y": [2000.0, 2000.0, 2200.0, 2200.0]}
    near = {"coordinates": {"x": [5000.0], "y": [500.0]}}
    path = saved(
        tmp_path,
        ("optimisation", {"constraints": {"minimum_spacing": {"radius": 500.0}}}),
        ("site.exclusions", {"polygons": [hole]}),
        ("wind_farm.layouts", [*PLANT["wind_farm"]["layouts"], near]),
    )
    campaign = load(path)
    assert campaign.physics.spacing == {"spacing_m": 500.0}
    assert campaign.physics.area(0).area_m2 == pytest.approx(12e6 - 200.0**2)
    assert campaign.neighbours[0].x_m == [5000.0]
    assert list(campaign.remarks) == ["the first layout is the farm; the other 1 are neighbours"]


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_plants_of_windio(path, tmp_path):
    """All examples of windIO, one of which asks for blockage."""
    if "timeseries" in path.name:
        with pytest.raises(InputError, match=r"line 26: attributes.analysis.blockage_model.name is SelfSimilarity"):
            read_plant(path)
        return
    plant = read_plant(path)
    own = plant.layouts[0]
    aep = plant_farm(plant).aep_gwh(own.x, own.y)
    assert 0.0 < aep < 8.76 * 10.0 * len(own.x)
    campaign = load(path)
    assert campaign.recompute(next(campaign.tasks()), own.x, own.y)[0] == pytest.approx(aep, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (f"{ANALYSIS}.wind_deficit_model.name", "SuperGaussian", "is SuperGaussian, which leeward does not have; exp"),
        (
            f"{ANALYSIS}.wind_deficit_model.wake_expansion_coefficient.k_b",
            0.3,
            "k_b is 0.3, a factor of the turbulence",
        ),
        (f"{ANALYSIS}.superposition_model.ws_superposition", "Max", "ws_superposition is Max, which leeward does not"),
        (
            f"{ANALYSIS}.blockage_model",
            {"name": "Rathmann"},
            "blockage_model.name is Rathmann; leeward has no blockage",
        ),
        (f"{ANALYSIS}.rotor_averaging", {"wake_averaging": "grid"}, "wake_averaging is grid, which leeward does not"),
        (f"{ANALYSIS}.wm_coupling", {"method": "PB"}, "wm_coupling: is not supported|wm_coupling is not supported"),
        (f"{RESOURCE}.operating", {"data": [1.0], "dims": ["wind_turbine"]}, "operating is not supported"),
        (f"{RESOURCE}.probability.data", [[0.5, 0.1, 0.4]], r"has the shape \(1, 3\); expected \(4, 3\)"),
        (f"{RESOURCE}.probability.data", [[0.5, 0.1, 0.4]] * 4, "probabilities add up to 4; expected at most 1"),
        ("wind_farm.layouts", [{"coordinates": {"x": [1.0, 2.0], "y": [1.0]}}], "has 2 x and 1 y; expected as many"),
        ("wind_farm.turbines.hub_height", None, "windIO's schema rejects it: .*hub_height"),
        (
            "optimisation",
            {"constraints": {"minimum_spacing": {"major_axis": 1.0}}},
            "has major_axis; leeward has one dis",
        ),
        (f"{RUNS}.directions_run", {"specific_values": [45.0]}, "has no 45, which run_configuration asks for"),
    ],
)
def test_what_leeward_cannot_represent_is_named(tmp_path, place, value, says):
    path = saved(tmp_path, (place, value))
    with pytest.raises(InputError, match=says) as error:
        plant_farm(read_plant(path))
    assert str(path) in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("Jensen", "superposition_model", {"ws_superposition": "Linear"}),
        ("Jensen", "axial_induction_model", "1D"),
        ("Jensen", "rotor_averaging", {"wake_averaging": "center"}),
        ("TurbOPark", "axial_induction_model", "Madsen"),
        ("TurbOPark", "turbulence_model", {"name": "STF2005"}),
    ],
)
def test_models_with_fixed_options(tmp_path, name, key, value):
    """leeward's Jensen and TurbOPark are those of the literature: other options are an error."""
    deficit = (f"{ANALYSIS}.wind_deficit_model", {"name": name})
    fitting = [(f"{ANALYSIS}.{option}", None) for option in ("axial_induction_model", "superposition_model")]
    assert plant_farm(read_plant(saved(tmp_path, deficit, *fitting))).wake_model.name in ("jensen", "nygaard_2022")
    with pytest.raises(InputError, match=f"{key}.* is "):
        read_plant(saved(tmp_path, deficit, *fitting, (f"{ANALYSIS}.{key}", value)))


def test_shear_to_the_same_height(tmp_path):
    read_plant(saved(tmp_path, (f"{RESOURCE}.shear", {"alpha": 0.1, "h_ref": 90.0})))


def test_the_conditions_that_a_plant_asks_for(tmp_path):
    sectors = read_plant(saved(tmp_path, (RUNS.rpartition(".")[0], None)))
    assert "kind" not in sectors.wind  # four sectors, spread
    assert len(plant_farm(sectors).site.conditions.direction) == 360
    some = {"directions_run": {"specific_values": [90.0, 0.0]}, "wind_speeds_run": {"specific_values": [9.0]}}
    chosen = plant_farm(read_plant(saved(tmp_path, (RUNS, some)))).site.conditions
    assert chosen.direction.tolist() == [90.0, 0.0]
    assert chosen.speed.tolist() == [[9.0], [9.0]]
    assert chosen.weight.tolist() == [[0.1], [0.1]]


def test_turbines_of_several_types(tmp_path):
    """They are evaluated; a layout to be optimised has one type."""
    large = {**TURBINE, "name": "large", "rotor_diameter": 150.0}
    path = saved(
        tmp_path,
        ("wind_farm.turbines", None),
        ("wind_farm.turbine_types", {3: TURBINE, 7: large}),
        ("wind_farm.layouts", [{**PLANT["wind_farm"]["layouts"][0], "turbine_types": [3, 7, 7, 3]}]),
    )
    farm = plant_farm(read_plant(path))
    assert [turbine.name for turbine in farm.turbine] == ["own", "large", "large", "own"]
    done = leeward_here("aep", path, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["layouts"][0]["turbine_type"] == "own, large"
    with pytest.raises(InputError, match="the layout has 2 turbine types; leeward optimises layouts of one type"):
        load(path)
    wrong = [{**PLANT["wind_farm"]["layouts"][0], "turbine_types": [3, 7, 7, 4]}]
    bad = changed(yaml.safe_load(path.read_text()), ["wind_farm", "layouts"], wrong)
    path.write_text(yaml.safe_dump(bad))
    with pytest.raises(InputError, match=r"layouts\[0\].turbine_types\[3\] is 4; expected one of 3, 7"):
        read_plant(path)


def test_without_windio(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "windIO", None)
    with pytest.raises(InputError, match=r"windIO plants need windIO; pip install 'leeward\[windio\]'"):
        read_plant(saved(tmp_path))


# --- there and back ---


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case != "iea37"])
def test_exported_plants_have_the_same_aep(case, tmp_path):
    """windIO has no words for the model of IEA37; everything else comes back."""
    plant, aep = plant_and_aep(**CASES[case])
    write(tmp_path / "plant.yaml", windio.windio_pieces, plant)
    if case == "no wake":  # nor for a farm without wakes
        assert (
            "wind_deficit_model" not in yaml.safe_load((tmp_path / "plant.yaml").read_text())["attributes"]["analysis"]
        )
        return
    again = read_plant(tmp_path / "plant.yaml")
    assert plant_farm(again).aep_gwh(X, Y) == pytest.approx(aep, rel=1e-9)
    assert again.spacing_m == pytest.approx(plant.spacing_m)
    assert not [remark for remark in again.campaign_remarks if "leaves open" in remark or "minimum_spacing" in remark]


@pytest.mark.slow
def test_a_problem_becomes_an_optimised_plant(tmp_path):
    """With one command; the rest of the plant is unchanged, and windIO accepts it."""
    path = saved(tmp_path)
    options = ["--campaign", path, "-o", "optimised.yaml", "--effort", "fast"]
    done = leeward_here("optimise", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    windIO.validate(str(tmp_path / "optimised.yaml"), "plant/wind_energy_system")
    data = yaml.safe_load((tmp_path / "optimised.yaml").read_text())
    before, after = read_plant(path), read_plant(tmp_path / "optimised.yaml")
    own = after.layouts[0]
    old = plant_farm(before).aep_gwh(before.layouts[0].x, before.layouts[0].y)
    assert plant_farm(after).aep_gwh(own.x, own.y) > old * 1.001
    assert before.campaign({})["farms"] == after.campaign({})["farms"]
    data["wind_farm"]["layouts"][0]["coordinates"] = PLANT["wind_farm"]["layouts"][0]["coordinates"]
    assert data == PLANT


@pytest.mark.slow
def test_any_problem_becomes_a_plant(tmp_path):
    options = ["--recipe", "random", "--turbines", "5", "-o", "plant.yaml"]
    assert leeward_here("optimise", *options, cwd=tmp_path).returncode == 0
    done = leeward_here("aep", "plant.yaml", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["layouts"][0]["n_turbines"] == 5


@pytest.mark.slow
def test_a_run_of_a_plant(tmp_path):
    path = saved(tmp_path)
    done = leeward_here("run", path, "--recipe", "smart_start", "--seeds", "2", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with open_layouts(tmp_path / "layouts.h5") as layouts:
        assert len(layouts) == 2
    done = leeward_here("export", "layouts.h5", "-o", "best.yaml", "--best", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    windIO.validate(str(tmp_path / "best.yaml"), "plant/wind_energy_system")


# --- WIFA ---


@pytest.mark.parametrize("name", ["simple_wind_rose", "windio_4turbines"])
def test_wifa_finds_the_same_power(name, tmp_path):
    """WIFA's own cases and outputs. WIFA scales the probabilities of a rose to a sum of 1; leeward does not."""
    shutil.copy(DATA / f"{name}.yaml", tmp_path / "plant.yaml")
    done = leeward_here("aep", "plant.yaml", "--wifa-output", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expected = WIFA[name]
    includes = dict(line.split(": !include ") for line in (tmp_path / "out" / "output.yaml").read_text().splitlines())
    with xarray.open_dataset(tmp_path / "out" / includes["power_table"]) as data:
        assert list(data.power.dims) == expected["dims"]
        assert list(data.power.shape) == expected["shape"]
        assert sorted(data.variables) == expected["variables"]
        assert {name: data[name].attrs.get("Description", "") for name in data.variables} == expected["description"]
        assert data.power.attrs["units"] == "W"
        np.testing.assert_allclose(data.power.sum("turbine"), expected["farm_power_w"], rtol=1e-9)
        others = tuple(expected["dims"][1:])
        np.testing.assert_allclose(data.power.sum(others), expected["turbine_power_sum_w"], rtol=1e-9)
        assert (data.effective_wind_speed <= data.ws.max() + 1e-9).all()
    windIO.validate(str(tmp_path / "out" / includes["wind_energy_system"]), "plant/wind_energy_system")
    aep = json.loads(done.stdout)["layouts"][0]["aep_gwh"]
    covered = plant_farm(read_plant(tmp_path / "plant.yaml")).site.conditions.weight.sum()
    assert aep / covered == pytest.approx(expected["aep_gwh"], rel=1e-9)


def resampled(turbine):
    """Curves as WIFA reads them: at whole steps from the first speed on, and without cut-in and cut-out."""
    performance = turbine["performance"]
    thrust = performance["Ct_curve"]
    power = performance.get("power_curve") or {
        "power_wind_speeds": performance["Cp_curve"]["Cp_wind_speeds"],
        "power_values": performance["Cp_curve"]["Cp_values"],
    }
    both = [*power["power_wind_speeds"], *thrust["Ct_wind_speeds"]]
    speeds = np.arange(min(both), max(both) + 1)
    values = np.interp(speeds, power["power_wind_speeds"], power["power_values"])
    if "Cp_curve" in performance:
        values *= 0.5 * 1.225 * np.pi * turbine["rotor_diameter"] ** 2 / 4.0 * speeds**3
    at = speeds.tolist()
    curve = np.interp(speeds, thrust["Ct_wind_speeds"], thrust["Ct_values"]).tolist()
    found = {"power_curve": {"power_wind_speeds": at, "power_values": values.tolist()}}
    return {**turbine, "performance": {**found, "Ct_curve": {"Ct_wind_speeds": at, "Ct_values": curve}}}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multiple_wind_farms", "windio_4turbines_multiple_turbines"])
def test_wifa_samples_power_curves(name, tmp_path):
    """Its curves have a point each 1 m/s and no cut-out: with the same curves leeward finds the same power."""
    data = yaml.safe_load((DATA / f"{name}.yaml").read_text())
    expected = WIFA[name]

    def farm_power(content):
        (tmp_path / "plant.yaml").write_text(yaml.safe_dump(content))
        plant = read_plant(tmp_path / "plant.yaml")
        own = plant.layouts[0]
        return turbine_data(plant, plant_farm(plant).simulate(own.x, own.y, True)).power.sum("turbine")

    largest = np.max(expected["farm_power_w"])
    assert np.abs(farm_power(data) - expected["farm_power_w"]).max() / largest > 1e-3
    for farm in data["wind_farm"] if isinstance(data["wind_farm"], list) else [data["wind_farm"]]:
        if "turbines" in farm:
            farm["turbines"] = resampled(farm["turbines"])
        else:
            farm["turbine_types"] = {kind: resampled(each) for kind, each in farm["turbine_types"].items()}
    np.testing.assert_allclose(farm_power(data), expected["farm_power_w"], rtol=1e-9, atol=1e-9 * largest)


def test_outputs_of_wifa_need_a_plant(tmp_path):
    (tmp_path / "layout.csv").write_text("x_m,y_m\n0,0\n")
    done = leeward_here("aep", "layout.csv", "--wifa-output", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "--wifa-output needs a windIO plant" in done.stderr
    done = leeward_here("aep", saved(tmp_path), "--wake-model", "jensen", cwd=tmp_path)
    assert done.returncode == 2
    assert "is a windIO plant, which has everything in it; omit --wake-model" in done.stderr
    make_run(tmp_path, seeds=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("place", "value"), [("wind_farm", None), ("wind_farm", []), ("wind_farm.layouts", [])])
def test_plants_without_turbines(tmp_path, place, value):
    path = saved(tmp_path, (place, value)) if value is not None else saved(tmp_path)
    if value is None:
        data = {**PLANT, "wind_farm": None}
        path.write_text(yaml.safe_dump(data))
    with pytest.raises(InputError, match=f"{place} is |schema rejects it"):
        read_plant(path)


@pytest.mark.slow
def test_options_change_the_plant(tmp_path):
    """The file that is written is the problem that was solved."""
    path = saved(tmp_path)
    (tmp_path / "large.yaml").write_text("rated_power_mw: 8\nrotor_diameter_m: 167\nhub_height_m: 113\n")
    for option, rated, count in (
        (["--turbines", "6"], 5.0, 6),
        (["--turbine", "large.yaml", "--turbines", "4"], 8.0, 4),
    ):
        options = ["--campaign", path, "-o", "other.yaml", "--recipe", "random", *option]
        done = leeward_here("optimise", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        stated = float(next(line for line in done.stdout.splitlines() if line.startswith("  AEP")).split()[1])
        done = leeward_here("aep", "other.yaml", "--json", cwd=tmp_path)
        found = json.loads(done.stdout)["layouts"][0]
        assert found["aep_gwh"] == pytest.approx(stated, abs=0.006)
        assert (found["n_turbines"], found["installed_mw"]) == (count, pytest.approx(count * rated, rel=0.01))


# --- what would give other numbers silently ---


def test_coordinate_systems_of_a_plant(tmp_path):
    """Every layout of every farm is compared with the boundaries; degrees are an error."""
    named = {"x": [0.0, 4000.0, 4000.0], "y": [0.0, 0.0, 3000.0], "crs": "EPSG:25832"}
    boundary = ("site.boundaries", {"polygons": [named]})
    other = {"coordinates": {"x": [5000.0], "y": [0.0], "crs": "EPSG:32631"}}
    layouts = ("wind_farm.layouts", [*PLANT["wind_farm"]["layouts"], other])
    with pytest.raises(InputError, match=r"layouts\[1\].coordinates.crs is EPSG:32631, but the rest is in EPSG:25832"):
        read_plant(saved(tmp_path, boundary, layouts))
    farms = ("wind_farm", [{**PLANT["wind_farm"], "layouts": [other]}])
    with pytest.raises(InputError, match=r"wind_farm\[0\].layouts\[0\].coordinates.crs is EPSG:32631"):
        read_plant(saved(tmp_path, boundary, farms))
    degrees = ("site.boundaries", {"polygons": [{**named, "crs": "EPSG:4326"}]})
    with pytest.raises(InputError, match=r"EPSG:4326.*has no coordinates in metres"):
        plant_farm(read_plant(saved(tmp_path, degrees)))


def test_coordinates_that_are_not_metres(tmp_path):
    coordinates = {"x": [0.5, 1.5, 2.5, 3.5], "y": [1.5] * 4}
    path = saved(tmp_path, ("wind_farm.layouts", [{"coordinates": coordinates}]))
    done = leeward_here("aep", path, cwd=tmp_path)
    assert "some turbines are closer than a rotor diameter; are the coordinates in metres?" in done.stderr


SERIES = {
    "time": [0, 1, 2],
    "wind_direction": {"data": [270.0, 280.0, 10.0], "dims": ["time"]},
    "wind_speed": {"data": [9.0, 10.0, 8.0], "dims": ["time"]},
}
CASES_TABLE = {
    "wind_direction": {"data": [270.0, 280.0, 10.0], "dims": ["case"]},
    "wind_speed": {"data": [9.0, 10.0, 8.0], "dims": ["case"]},
    "probability": {"data": [0.5, 0.2, 0.3], "dims": ["case"]},
}
WEIBULL = {
    "wind_direction": [0.0, 90.0, 180.0, 270.0],
    **{name: {"data": [0.25] * 4, "dims": ["wind_direction"]} for name in ("sector_probability",)},
    **{name: {"data": [9.0] * 4, "dims": ["wind_direction"]} for name in ("weibull_a", "weibull_k")},
}
SUBSET = {"times_run": {"all_occurences": False, "subset": [0, 2]}}
SOME = {"directions_run": {"specific_values": [270.0]}, "wind_speeds_run": {"specific_values": [9.0]}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wind", "runs", "speeds"),
    [(SERIES, SUBSET, [9.0, 8.0]), (CASES_TABLE, SUBSET, [9.0, 8.0]), (SERIES, None, [9.0, 10.0, 8.0])],
)
def test_steps_of_a_plant(tmp_path, wind, runs, speeds):
    path = saved(tmp_path, (RESOURCE, wind), (RUNS, runs) if runs else (RUNS.rpartition(".")[0], None))
    assert plant_farm(read_plant(path)).site.conditions.speed.ravel().tolist() == speeds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wind", "runs", "says"),
    [
        (SERIES, SOME, "directions_run: does not apply to this wind; expected times_run"),
        (CASES_TABLE, SOME, "directions_run: does not apply to this wind; expected times_run"),
        (WEIBULL, SUBSET, "times_run: does not apply to this wind; expected directions_run"),
        (PLANT["site"]["energy_resource"]["wind_resource"], SUBSET, "times_run: does not apply to this wind"),
    ],
)
def test_runs_that_do_not_fit_the_wind(tmp_path, wind, runs, says):
    with pytest.raises(InputError, match=says):
        read_plant(saved(tmp_path, (RESOURCE, wind), (RUNS, runs)))


def test_directions_that_go_round(tmp_path):
    """A row at 360 degrees repeats the one at 0; it does not count twice."""
    data = PLANT["site"]["energy_resource"]["wind_resource"]["probability"]["data"]
    directions = (f"{RESOURCE}.wind_direction", [0.0, 90.0, 180.0, 270.0, 360.0])
    path = saved(tmp_path, directions, (f"{RESOURCE}.probability.data", [*data, data[0]]))
    assert plant_farm(read_plant(path)).site.conditions.weight.sum() == pytest.approx(1.0)
    with pytest.raises(InputError, match="has 0 and 360 with different probabilities"):
        read_plant(saved(tmp_path, directions, (f"{RESOURCE}.probability.data", [*data, data[3]])))


def test_notes_on_heights_and_turbulence(tmp_path):
    plant = read_plant(saved(tmp_path, (f"{RESOURCE}.reference_height", 60.0)))
    assert "wind: the wind at 60 m is used at hub height, 90 m" in plant.remarks
    path = saved(tmp_path, (RESOURCE, WEIBULL), (RUNS.rpartition(".")[0], None))
    done = leeward_here("optimise", "--campaign", path, "--recipe", "random", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no turbulence intensity is given: 0.1 is used" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key", "value"),
    [("Jensen", "ceps", 0.3), ("Jensen", "use_effective_ws", True), ("TurbOPark", "use_effective_ws", True)],
)
def test_options_of_other_models(tmp_path, name, key, value):
    fitting = [(f"{ANALYSIS}.{option}", None) for option in ("axial_induction_model", "superposition_model")]
    with pytest.raises(InputError, match=f"wind_deficit_model.{key}"):
        read_plant(saved(tmp_path, (f"{ANALYSIS}.wind_deficit_model", {"name": name, key: value}), *fitting))
    wide = (f"{ANALYSIS}.wind_deficit_model", {"name": "TurbOPark", "ceps": 0.3, "use_effective_ws": False})
    assert read_plant(saved(tmp_path, wide, *fitting)).wake_model == {"name": "nygaard_2022", "initial_width": 0.3}


def test_plants_as_json_text(tmp_path):
    (tmp_path / "plant.yaml").write_text(json.dumps(PLANT))
    assert load(tmp_path / "plant.yaml").name == "small"


def test_one_turbine_with_types(tmp_path):
    layout = {**PLANT["wind_farm"]["layouts"][0], "turbine_types": [0, 0, 0, 0]}
    assert read_plant(saved(tmp_path, ("wind_farm.layouts", [layout]))).layouts[0].types == [0] * 4
    with pytest.raises(InputError, match="has several types, but the farm has `turbines`"):
        read_plant(saved(tmp_path, ("wind_farm.layouts", [{**layout, "turbine_types": [0, 1, 0, 0]}])))


def test_an_island_in_a_hole_is_not_windio():
    outer = {"polygon_m": [[LEFT, LOW], [LEFT + 9e3, LOW], [LEFT + 9e3, LOW + 9e3], [LEFT, LOW + 9e3]]}
    hole = [[LEFT + x, LOW + y] for x, y in ((3e3, 3e3), (6e3, 3e3), (6e3, 6e3), (3e3, 6e3))]
    island = {"polygon_m": [[LEFT + x, LOW + y] for x, y in ((4e3, 4e3), (5e3, 4e3), (5e3, 5e3))]}
    farms = [{"name": "ring", "n_turbines": 4, "regions": [{**outer, "holes_m": [hole]}, island]}]
    with pytest.raises(InputError, match="an island in a hole, which windIO cannot express"):
        windio.windio_plant(plant_and_aep(farms=farms)[0])
