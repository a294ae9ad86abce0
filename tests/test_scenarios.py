"""A target farm among neighbours that come and go: equal to the wake engine row by row, and to PyWake."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

from leeward.errors import InputError
from leeward.store import EvaluationKey
from leeward.study import load_study
from leeward.wind import Neighbours, Site, Turbine, WindFarm
from leeward.wind.scenarios import Group, ScenarioFarm

MODELS = ("nygaard_2022", "bastankhah_gaussian", "iea37_gaussian", "jensen", "no_wake")
ROWS = 30


def machine(rated_power_mw, diameter, hub, thrust=0.8):
    """Straight lines, so that a turbine without thrust has exactly the same power."""
    return Turbine(
        wind_speeds_m_s=[3.0, 12.0, 25.0, 25.01],
        power_mw=[0.0, rated_power_mw, rated_power_mw, 0.0],
        thrust_coefficient=np.array([1.0, 1.0, 0.2, 0.0]) * thrust,
        rotor_diameter_m=diameter,
        hub_height_m=hub,
    )


SMALL, LARGE, THRUSTLESS = machine(8, 160, 110), machine(14, 230, 150), machine(8, 160, 110, 0.0)


def series(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    intensity = rng.uniform(0.05, 0.12, rows)
    return Site.from_time_series(rng.uniform(0, 360, rows), rng.uniform(4, 16, rows), intensity)


def rose():
    rng = np.random.default_rng(4)
    directions, speeds = np.arange(0, 360, 30.0), np.arange(4.0, 17.0, 3.0)
    return Site.from_table(directions, speeds, rng.dirichlet(np.ones(60)).reshape(12, 5), 0.08, kind="exact")


def layout(count, centre, seed, width=4000.0):
    return np.random.default_rng(seed).uniform(-width, width, (2, count)) + np.array(centre)[:, None]


def around(target=7, others=6):
    """A target between neighbours, so that its wakes reach neighbours whose wakes reach it again."""
    x, y = layout(target, (600_000.0, 6_200_000.0), 1)
    groups = [
        Group(*layout(others, (605_000.0, 6_201_000.0), 2), LARGE, 4, 20),
        Group(*layout(others, (596_000.0, 6_199_000.0), 3), [SMALL, LARGE] * (others // 2), 11),
        Group(*layout(others, (600_500.0, 6_203_000.0), 5, 2000.0), SMALL),
        Group(*layout(2, (640_000.0, 6_200_000.0), 6), LARGE, 2, 3),
    ]
    return x, y, groups


def expected_power(site, turbine, model, x, y, groups):
    """One wind farm for each row."""
    conditions = site.conditions
    found = []
    for row in range(len(conditions.direction)):
        standing = [one for one in groups if one.first <= row and (one.end is None or row < one.end)]
        machines = [t for one in standing for t in _each(one)]
        others = None
        if standing:
            others = Neighbours(*(np.concatenate([getattr(one, axis) for one in standing]) for axis in "xy"), machines)
        if conditions.speed.shape[1] == 1:
            intensity = conditions.turbulence_intensity[row]
            now = Site.from_time_series(conditions.direction[[row]], conditions.speed[row], intensity)
        else:
            now = Site.from_table(
                conditions.direction[[row]], conditions.speed[row], [np.full(5, 0.2)], 0.08, kind="exact"
            )
        simulation = WindFarm(now, turbine, model, neighbours=others).simulate(x, y, per_condition=True)
        found.append(simulation.condition_power_mw[:, 0])
    return np.array(found).transpose(1, 0, 2)


def _each(group):
    return [group.turbine] * len(group.x) if isinstance(group.turbine, Turbine) else group.turbine


@pytest.mark.parametrize(
    "model",
    [pytest.param(model, marks=() if model in ("nygaard_2022", "jensen") else pytest.mark.slow) for model in MODELS],
)
@pytest.mark.parametrize("make_site", [series, rose])
def test_every_case_equals_the_wake_engine(model, make_site):
    x, y, groups = around()
    site = make_site()
    found = ScenarioFarm(site, SMALL, x, y, model).evaluate(groups)
    assert set(found) == {"all", "external", "internal", "none"}
    expected = {
        "all": expected_power(site, SMALL, model, x, y, groups),
        "external": expected_power(site, THRUSTLESS, model, x, y, groups),
        "internal": expected_power(site, SMALL, model, x, y, []),
        "none": expected_power(site, THRUSTLESS, model, x, y, []),
    }
    for case, power in expected.items():
        np.testing.assert_allclose(found[case], power, rtol=1e-12, atol=1e-12, err_msg=case)
    if model != "no_wake":
        assert (found["all"] < found["external"] - 1e-3).any()
        assert (found["all"] < found["internal"] - 1e-3).any()


def test_a_target_of_several_types():
    x, y, groups = around()
    turbines = [SMALL, LARGE, LARGE, SMALL, SMALL, LARGE, SMALL]
    site = series()
    found = ScenarioFarm(site, turbines, x, y).evaluate(groups, ["all"])
    expected = expected_power(site, turbines, "nygaard_2022", x, y, groups)
    np.testing.assert_allclose(found["all"], expected, rtol=1e-12)


def test_results_do_not_depend_on_what_was_computed_before():
    x, y, groups = around()
    site = series()
    fresh = ScenarioFarm(site, SMALL, x, y).evaluate(groups, ["all", "external"])
    used = ScenarioFarm(site, SMALL, x, y, types=[LARGE, SMALL])
    used.evaluate(groups[:2], ["internal", "all"])
    again = used.evaluate(groups, ["external", "all"])
    for case, power in fresh.items():
        assert power.tobytes() == again[case].tobytes()


def test_rows_without_a_neighbour_that_reaches_the_target_are_those_of_the_target_alone():
    x, y, groups = around()
    found = ScenarioFarm(series(), SMALL, x, y).evaluate([groups[3]])
    others = np.arange(ROWS) != 2
    assert found["all"][:, others].tobytes() == found["internal"][:, others].tobytes()
    assert found["external"][:, others].tobytes() == found["none"][:, others].tobytes()


@pytest.mark.tiny
def test_the_plain_python_of_the_loop():
    x, y, groups = around(3, 2)
    site = series(3)
    found = ScenarioFarm(site, SMALL, x, y, "jensen").evaluate(groups[2:3], ["all", "external"])
    np.testing.assert_allclose(found["all"], expected_power(site, SMALL, "jensen", x, y, groups[2:3]), rtol=1e-12)
    expected = expected_power(site, THRUSTLESS, "jensen", x, y, groups[2:3])
    np.testing.assert_allclose(found["external"], expected, rtol=1e-12)


def test_bad_input():
    x, y, groups = around()
    farm = ScenarioFarm(series(), SMALL, x, y)
    with pytest.raises(InputError, match="the case is 'both'; expected one of all, external, internal, none"):
        farm.evaluate(groups, ["both"])
    with pytest.raises(InputError, match="2 turbines for 6 positions"):
        farm.evaluate([Group(groups[0].x, groups[0].y, [SMALL, LARGE])])


# --- the neighbour study ---


def shared_study():
    folder = os.environ.get("LEEWARD_SHARED_DATA")
    if not folder:
        pytest.skip("the neighbour study is read from the folder named by LEEWARD_SHARED_DATA")
    return Path(folder) / "neighbour-study"


def study_turbine(rated_power_mw):
    diameter = int(240 * np.sqrt(rated_power_mw / 15))
    return Turbine.generic(
        rated_power_mw=rated_power_mw, rotor_diameter_m=diameter, hub_height_m=int(diameter / 240 * 150)
    )


def daily_wind(folder):
    with (folder / "wind-daily.csv").open() as file:
        rows = list(csv.reader(file, delimiter=";"))[1:]
    return np.array([float(row[2]) for row in rows]), np.array([float(row[1]) for row in rows])


def test_sample_3_equals_pywake_on_every_day():
    folder = shared_study()
    sample = json.loads((folder / "sample3.json").read_text())
    layouts = {key: (np.array(place["x_m"]), np.array(place["y_m"])) for key, place in sample["layouts"].items()}
    groups = [
        Group(*layouts[one["key"]], study_turbine(one["rated_power_mw"]), one["construction_day"])
        for one in sample["neighbours"]
    ]
    direction, speed = daily_wind(folder)
    site = Site.from_time_series(direction, speed, 0.1)
    farm = ScenarioFarm(site, study_turbine(15), *layouts[sample["target"]])
    found = {case: power[:, :, 0] for case, power in farm.evaluate(groups, ["all", "external"]).items()}
    with (folder / "sample3-power.csv").open() as file:
        rows = list(csv.DictReader(file))
    expected = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
    tolerance = {"rtol": 1e-9, "atol": 1e-9}  # MW, for days without wind
    np.testing.assert_allclose(found["all"].sum(axis=0), expected["power_all_wakes_mw"], **tolerance)
    np.testing.assert_allclose(found["external"].sum(axis=0), expected["power_external_wakes_only_mw"], **tolerance)
    for turbine in (0, 65):
        np.testing.assert_allclose(found["all"][turbine], expected[f"turbine{turbine}_all_wakes_mw"], **tolerance)


def test_sample_3_from_the_published_files(tmp_path):
    """The study file names the wind and the samples as they were published."""
    folder = shared_study()
    sample = json.loads((folder / "sample3.json").read_text())
    lines = [
        f"{key},{x!r},{y!r}"
        for key, place in sample["layouts"].items()
        for x, y in zip(place["x_m"], place["y_m"], strict=True)
    ]
    (tmp_path / "layouts.csv").write_text("\n".join(["key,x_m,y_m", *lines]) + "\n")
    wind = {"time": "", "wind_speed_m_s": "WS_150", "wind_direction_deg": "WD_150"}
    columns = {"scenario": "sample", "farm": {"column": "farm", "add": 1}, "seed": "ss_seed"}
    columns |= {"type": {"column": "rated_power", "add": -10}, "from_step": "construction_day"}
    study = load_study(
        {
            "layouts": {"alone": {"file": str(tmp_path / "layouts.csv"), "campaign": "danish-energy-island"}},
            "targets": sample["target"],
            "wind": {"file": str(folder / "wind-daily.csv"), "columns": wind, "hours_per_step": 24},
            "scenarios": {"file": str(folder / "samples-100.nc"), "columns": columns, "only": "3:4"},
            "keep": ["farm_power"],
        }
    )
    found = study.evaluate(EvaluationKey(0, 3)).farm_power_mw
    with (folder / "sample3-power.csv").open() as file:
        rows = list(csv.DictReader(file))
    for power, name in zip(found, ("power_all_wakes_mw", "power_external_wakes_only_mw"), strict=True):
        np.testing.assert_allclose(power, [float(row[name]) for row in rows], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("number", [17, 62])
def test_two_more_samples_by_pywake_on_some_days(number, tmp_path):
    import xarray
    from py_wake.wind_turbines import WindTurbines

    import leeward
    from pywake_peer import Nygaard_2022, XRSite, peer_turbine

    folder = shared_study()
    with xarray.open_dataset(folder / "samples-100.nc", engine="h5netcdf") as opened:
        sample = opened.sel(sample=number).load()
    keys = [(0, 5, 0)]
    for farm in range(9):
        keys.append((farm + 1, int(sample.rated_power[farm]) - 10, int(sample.ss_seed[farm])))
    campaign = leeward.load("danish-energy-island").with_overrides(recipe="smart_start", seeds=50, engine="inline")
    names = [f"farm{farm}_t{kind}_s{seed}" for farm, kind, seed in keys]
    leeward.run(campaign, tmp_path / "layouts.h5", only=names)
    with leeward.open_layouts(tmp_path / "layouts.h5") as opened:
        layouts = [opened[key].layout for key in keys]
    types = [study_turbine(10 + key[1]) for key in keys]
    days = np.arange(100, 3653, 250)
    direction, speed = (values[days] for values in daily_wind(folder))
    first = [int(np.searchsorted(days, int(day))) for day in sample.construction_day]
    groups = [Group(*place, kind, begin) for place, kind, begin in zip(layouts[1:], types[1:], first, strict=True)]
    farm = ScenarioFarm(Site.from_time_series(direction, speed, 0.1), types[0], *layouts[0])
    found = farm.evaluate(groups, ["all", "external"])
    site = XRSite(xarray.Dataset({"P": 1.0, "TI": 0.1}))
    for case, target in (("all", peer_turbine(types[0])), ("external", _without_thrust(types[0]))):
        for row in range(len(days)):
            standing = [0, *(position for position, begin in enumerate(first, 1) if begin <= row)]
            x, y = np.concatenate([layouts[position] for position in standing], axis=1)
            machines = [target, *(peer_turbine(types[position]) for position in standing[1:])]
            kinds = np.repeat(np.arange(len(standing)), [layouts[position].shape[1] for position in standing])
            farm_model = Nygaard_2022(site, WindTurbines.from_WindTurbine_lst(machines))
            result = farm_model(x, y, type=kinds, wd=[direction[row]], ws=[speed[row]])
            power = result.Power.values[: layouts[0].shape[1]].ravel() / 1e6
            np.testing.assert_allclose(found[case][:, row, 0], power, rtol=1e-9, atol=1e-9)


def _without_thrust(turbine):
    from py_wake.wind_turbines import WindTurbine
    from py_wake.wind_turbines.power_ct_functions import PowerCtTabular

    knots = turbine.curve.ends[:-1]
    power, thrust = turbine.curve(knots)
    function = PowerCtTabular(knots, power, "MW", 0.0 * thrust)
    return WindTurbine("no thrust", turbine.rotor_diameter_m, turbine.hub_height_m, function)
