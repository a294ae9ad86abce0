"""Studies: what their files say, the tasks they give, and the numbers of each."""

import dataclasses
import datetime

import numpy as np
import pytest

import leeward
import small_studies
from leeward.errors import InputError
from leeward.store import EvaluationKey
from leeward.study import Study, load_study
from leeward.wind import Neighbours, Site, Turbine, WindFarm
from small_studies import STEPS, scenario_rows, study_data, write_scenarios


def without_thrust(turbine):
    """The same power curve, tabulated, and no thrust."""
    speeds = np.arange(0.0, 40.0, 0.01)
    return Turbine(
        wind_speeds_m_s=speeds,
        power_mw=turbine.power_mw(speeds),
        thrust_coefficient=np.zeros(len(speeds)),
        rotor_diameter_m=turbine.rotor_diameter_m,
        hub_height_m=turbine.hub_height_m,
    )


def simulated(study, key, case, site, model):
    """Farm power in each step, one call of the wake engine for each step."""
    target, found = study.target(key.target_idx), []
    conditions = site.conditions
    for step in range(len(conditions.direction)):
        there = [one for one in study.neighbours(key.scenario_idx) if one.first <= step and step < (one.end or STEPS)]
        if case == "internal":
            there = []
        others = None
        if there:
            x, y = (np.concatenate([getattr(one, name) for one in there]) for name in ("x", "y"))
            others = Neighbours(x, y, [one.turbine for one in there for _ in one.x])
        now = Site.from_time_series(
            conditions.direction[[step]], conditions.speed[step], conditions.turbulence_intensity[step]
        )
        turbine = without_thrust(target.turbine) if case == "external" else target.turbine
        farm = WindFarm(now, turbine, model, neighbours=others)
        found.append(farm.simulate(target.x, target.y).power_mw.sum())
    return np.array(found)


@pytest.mark.parametrize(
    ("model", "case"),
    [("nygaard_2022", "all"), ("nygaard_2022", "external"), ("jensen", "all"), ("jensen", "internal")],
)
def test_each_case_equals_the_wake_engine(tmp_path, model, case):
    study = load_study(study_data(tmp_path, wake_model=model))
    key = EvaluationKey(0, 1)
    result = study.evaluate(key)
    wind = study.data.winds["wind"]
    site = Site.from_time_series(wind.direction, wind.speed, wind.turbulence_intensity)
    expected = simulated(study, key, case, site, model)
    tolerance = 1e-6 if case == "external" else 1e-12  # the power curve without thrust is tabulated
    np.testing.assert_allclose(result.farm_power_mw[result.cases.index(case)], expected, rtol=tolerance)


def test_aep_windows_and_losses_follow_from_the_series(tmp_path):
    study = load_study(study_data(tmp_path, cases=["all", "external", "internal", "none"]))
    result = study.evaluate(EvaluationKey(0, 0))
    np.testing.assert_allclose(result.aep_gwh, result.farm_power_mw.mean(axis=1) * 8.76, rtol=1e-13)
    np.testing.assert_allclose(result.window_power_mw[:, 0], result.farm_power_mw[:, :10].mean(axis=1), rtol=1e-13)
    assert result.gross_aep_gwh == pytest.approx(result.case_aep_gwh("none"), rel=1e-13)
    assert result.wake_loss("all") > max(result.wake_loss("external"), result.wake_loss("internal")) > 0.0
    assert result.wake_loss("none") == pytest.approx(0.0, abs=1e-12)
    assert result.details["windows"] == "first,all"


def test_turbine_series_add_up(tmp_path):
    study = load_study(study_data(tmp_path, keep=["farm_power", "turbine_power"]))
    result = study.evaluate(EvaluationKey(0, 2))
    assert result.turbine_power_mw.shape == (3, STEPS, 4)
    np.testing.assert_allclose(result.turbine_power_mw.sum(axis=2), result.farm_power_mw, rtol=1e-13)
    assert result.window_power_mw is None


def test_a_rose_gives_the_aep_of_the_campaign(tmp_path):
    data = study_data(tmp_path, keep=["aep"], cases=["all", "internal"])
    del data["wind"], data["windows"]
    data["scenarios"] = [
        {"name": "alone"},
        {"name": "both", "neighbours": [{"farm": 1, "type": 0, "seed": 1}, {"farm": 2, "type": 1, "seed": 0}]},
    ]
    study = load_study(data)
    campaign = leeward.load(tmp_path / "campaign.yaml")
    target = study.target(0)
    farm = WindFarm(campaign.physics.site, target.turbine)
    assert study.evaluate(EvaluationKey(0, 0)).case_aep_gwh("all") == pytest.approx(
        farm.aep_gwh(target.x, target.y), rel=1e-12
    )
    one, other = study.neighbours(1)
    x, y = np.concatenate([one.x, other.x]), np.concatenate([one.y, other.y])
    neighbours = Neighbours(x, y, [one.turbine] * 4 + [other.turbine] * 4)
    farm = WindFarm(campaign.physics.site, target.turbine, neighbours=neighbours)
    result = study.evaluate(EvaluationKey(0, 1))
    assert result.case_aep_gwh("all") == pytest.approx(farm.aep_gwh(target.x, target.y), rel=1e-12)
    assert result.farm_power_mw is None


def test_a_scenario_overrides_wind_turbulence_and_wake_model(tmp_path):
    data = study_data(tmp_path, wake_model={"name": "jensen", "expansion": 0.05}, cases=["all"])
    wind = data.pop("wind")
    direction, speed = small_studies.series(seed=5)
    other = {"wind_direction_deg": direction.tolist(), "wind_speed_m_s": speed.tolist(), "hours_per_step": 24}
    data["winds"] = {"measured": wind, "modelled": {**other, "start": "2020-02-20"}}
    rows = [
        {**row, "scenario": scenario, "wake_model.expansion": expansion, "wind": name}
        for scenario, expansion, name in ((0, 0.05, "measured"), (1, 0.1, "measured"), (2, 0.05, "modelled"))
        for row in scenario_rows(1)
    ]
    data["scenarios"] = {"file": str(write_scenarios(tmp_path, rows))}
    study = load_study(data)
    narrow, wide, elsewhere = (study.evaluate(EvaluationKey(0, number)).case_aep_gwh("all") for number in range(3))
    assert wide > narrow
    assert elsewhere != narrow
    assert len({study.fingerprint(key) for key in study.tasks()}) == 3
    alone = load_study(data | {"winds": {"measured": other | {"start": "2020-02-20"}, "modelled": wind}})
    assert alone.evaluate(EvaluationKey(0, 0)).case_aep_gwh("all") == pytest.approx(elsewhere, rel=1e-12)


# --- tasks and fingerprints ---


def test_a_frozen_study_is_the_same_study(tmp_path):
    study = load_study(study_data(tmp_path))
    again = Study.from_text(study.frozen_text(), "the text")
    assert again.frozen_text() == study.frozen_text()
    assert [again.fingerprint(key) for key in again.tasks()] == [study.fingerprint(key) for key in study.tasks()]
    assert again.evaluate(EvaluationKey(0, 1)).digest == study.evaluate(EvaluationKey(0, 1)).digest
    assert "execution" not in study.study_text().partition("packed")[0]


def test_a_study_grows_without_new_fingerprints(tmp_path):
    small = load_study(study_data(tmp_path, 2))
    large = load_study(study_data(tmp_path, 5, targets=["alone:farm0_t1_s0", "alone:farm0_t0_s2"], name="larger"))
    assert large.n_tasks == 10
    assert all(key in large and large.fingerprint(key) == small.fingerprint(key) for key in small.tasks())


def test_the_order_of_rows_and_the_form_of_the_table_do_not_matter(tmp_path):
    import pandas

    rows = scenario_rows(3)
    forms = {"csv": write_scenarios(tmp_path, rows[::-1], "other.csv"), "parquet": tmp_path / "s.parquet"}
    frame = pandas.DataFrame(rows)
    frame.to_parquet(forms["parquet"])
    forms["nc"] = tmp_path / "s.nc"
    frame.set_index(["scenario", "farm"]).to_xarray().to_netcdf(forms["nc"], engine="h5netcdf")
    study = load_study(study_data(tmp_path))
    expected = {key: study.fingerprint(key) for key in study.tasks()}
    for path in forms.values():
        other = load_study(study_data(tmp_path, scenarios={"file": str(path)}))
        assert {key: other.fingerprint(key) for key in other.tasks()} == expected


def test_the_columns_of_another_table_are_mapped(tmp_path):
    import xarray

    rows = scenario_rows(3)
    shape = (3, 3)
    values = {name: np.array([row[name] for row in rows]).reshape(shape) for name in ("type", "seed", "from_step")}
    dataset = xarray.Dataset(
        {
            "rated_power": (("sample", "farm"), values["type"] + 10),
            "construction_day": (("sample", "farm"), values["from_step"]),
            "ss_seed": (("sample", "farm"), values["seed"]),
        },
        coords={"sample": range(3), "farm": range(3)},
    )
    dataset.to_netcdf(tmp_path / "samples.nc", engine="h5netcdf")
    columns = {
        "scenario": "sample",
        "farm": {"column": "farm", "add": 1},
        "type": {"column": "rated_power", "map": {10: 0, 11: 1}},
        "seed": "ss_seed",
        "from_step": "construction_day",
    }
    study = load_study(study_data(tmp_path))
    other = load_study(study_data(tmp_path, scenarios={"file": str(tmp_path / "samples.nc"), "columns": columns}))
    assert [other.fingerprint(key) for key in other.tasks()] == [study.fingerprint(key) for key in study.tasks()]


def test_wind_in_any_format_is_the_same(tmp_path):
    import pandas

    direction, speed = small_studies.series()
    days = [datetime.date(2020, 2, 20) + datetime.timedelta(days=step) for step in range(STEPS)]
    frame = pandas.DataFrame(
        {"time": pandas.to_datetime(days), "wind_speed_m_s": speed, "wind_direction_deg": direction}
    )
    frame.to_parquet(tmp_path / "wind.parquet")
    frame.set_index("time").to_xarray().to_netcdf(tmp_path / "wind.nc", engine="h5netcdf")
    study = load_study(study_data(tmp_path))
    for name in ("wind.parquet", "wind.nc"):
        wind = {"file": str(tmp_path / name), "hours_per_step": 24, "turbulence_intensity": 0.07}
        other = load_study(study_data(tmp_path, wind=wind))
        assert other.times == study.times
        assert other.fingerprint(EvaluationKey(0, 0)) == study.fingerprint(EvaluationKey(0, 0))


def test_a_leap_day_counts_and_calendar_windows_have_names(tmp_path):
    study = load_study(study_data(tmp_path, windows={"monthly": "months", "yearly": "years"}))
    assert study.windows == ("2020-02", "2020-03", "2020")
    assert [end - first for _, first, end in study.data.windows] == [10, 30, 40]
    assert "2020-02-29" in study.times


def test_drawn_scenarios_do_not_depend_on_their_number(tmp_path):
    draw = {"draw": 4, "random_seed": 3, "farms": [1, 2, 3], "type": [0, 1], "seed": {"low": 0, "high": 2}}
    draw["from_step"] = {"low": 0, "high": STEPS - 1, "mean": 20.0, "standard_deviation": 5.0}
    few = load_study(study_data(tmp_path, scenarios=draw))
    many = load_study(study_data(tmp_path, scenarios=draw | {"draw": 30}))
    assert [few.fingerprint(key) for key in few.tasks()] == [many.fingerprint(key) for key in few.tasks()]
    steps = [one.first for number in many.scenarios for one in many.neighbours(number)]
    assert 15 < np.mean(steps) < 25
    assert {one.type_idx for number in many.scenarios for one in many.neighbours(number)} == {0, 1}


def test_targets_are_selected_by_their_aep(tmp_path, monkeypatch):
    campaign = leeward.load(small_studies.write_campaign(tmp_path)).with_overrides(
        recipe="random", seeds=2, engine="inline"
    )
    leeward.run(campaign, tmp_path / "layouts.h5", only="farm=0,1")
    data = study_data(tmp_path, scenarios=[{"name": "alone"}])
    data["layouts"] = {"run": str(tmp_path / "layouts.h5")}
    study = load_study(data | {"targets": {"best": "of each farm and type"}})
    assert len(study.targets) == 4
    with leeward.open_layouts(tmp_path / "layouts.h5") as layouts:
        best = max((layouts[0, 1, seed] for seed in range(2)), key=lambda result: result.aep_gwh)
    assert f"run:{best.key}" in study.targets.values()
    assert len(load_study(data | {"targets": {"only": "farm=1"}}).targets) == 4
    assert load_study(data | {"targets": f"run:{best.key}"}).targets == {0: f"run:{best.key}"}


# --- errors, before anything is computed ---


def changed_row(position, **values):
    rows = scenario_rows(3)
    rows[position] |= values
    return rows


def _wind_lines(folder, change):
    path = small_studies.write_wind(folder)
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (changed_row(4, seed=9), r"scenarios.csv, line 6, column 'farm': .*layouts.csv has no layout farm2_t\d_s9"),
        (changed_row(5, from_step=STEPS), r"line 7, column 'from_step': stands from step 40; .* 0 to 39"),
        (changed_row(2, from_step=1.5), r"line 4, column 'from_step': is '1.5'; expected a whole number"),
        (changed_row(0, farm=0), r"line 2, column 'farm': rotors of alone:farm0_.* and of the target, .* overlap"),
        (scenario_rows(2) + [row | {"scenario": 7} for row in scenario_rows(1)], "scenarios 0 and 7 are equal"),
        (changed_row(1, farm=""), r"line 3, column 'farm': is empty; expected a number"),
    ],
)
def test_errors_of_a_table_name_file_row_and_column(tmp_path, rows, message):
    data = study_data(tmp_path)
    write_scenarios(tmp_path, rows)
    with pytest.raises(InputError, match=message):
        load_study(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines.pop(12), r"wind.csv, line 13, column 'day': .* 48 h after .* the series has a gap"),
        (lambda lines: lines.__setitem__(5, "2020-02-24;nan;20"), r"line 6, column 'WS': is 'nan'; expected a number"),
        (lambda lines: lines.__setitem__(5, "2020-02-24;9"), r"line 6: has 2 cells; expected 3"),
        (lambda lines: lines.__setitem__(5, "2020-02-24;-3;20"), r"line 6, column 'WS': is -3; expected 0 to 100"),
        (lambda lines: lines.__setitem__(0, "day;speed;WD"), r"no column 'WS'; found day, speed, WD"),
    ],
)
def test_errors_of_a_series_name_file_row_and_column(tmp_path, change, message):
    data = study_data(tmp_path)
    _wind_lines(tmp_path, change)
    with pytest.raises(InputError, match=message):
        load_study(data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": ["alone:farm0_t1_s8"]}, "targets: .*has no layout farm0_t1_s8"),
        ({"targets": ["near:farm0_t1_s0"]}, "names the layouts 'near'; expected one of alone"),
        ({"keep": ["power"]}, "keep"),
        ({"cases": ["both"]}, "cases"),
        ({"windows": {"first": "0:50"}}, "windows.first is 0:50; expected steps within the series, 0:40"),
        ({"wake_model": "jenson"}, "did you mean jensen"),
        ({"wake_model": "my:Model"}, "custom code; a study takes built-in wake models only"),
        ({"winds": {"a": None}}, "winds"),
        ({"scenario": []}, "scenario"),
    ],
)
def test_errors_of_a_study_name_the_key(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        load_study(study_data(tmp_path, **changes))


def test_series_of_different_lengths_are_refused(tmp_path):
    data = study_data(tmp_path)
    wind = data.pop("wind")
    short = {**wind, "file": str(small_studies.write_wind(tmp_path, 30, "short.csv"))}
    with pytest.raises(InputError, match=r"winds.short has 30 steps, but long has 40"):
        load_study(data | {"winds": {"long": wind, "short": short}})


def test_a_farm_may_replace_another_at_the_same_place(tmp_path):
    first = {"farm": 1, "type": 0, "seed": 0, "until_date": "2020-03-01"}
    second = {"farm": 1, "type": 0, "seed": 0, "from_date": "2020-03-01"}
    study = load_study(study_data(tmp_path, scenarios=[{"neighbours": [first, second]}]))
    assert [(one.first, one.end) for one in study.neighbours(0)] == [(0, 10), (10, None)]
    overlapping = [{"neighbours": [first, second | {"from_date": "2020-02-28"}]}]
    with pytest.raises(InputError, match=r"scenarios\[0\].neighbours\[0\]: rotors of .* and of another neighbour"):
        load_study(study_data(tmp_path, scenarios=overlapping))


def test_turbines_at_given_positions_are_neighbours(tmp_path):
    rows = [
        {"scenario": "north", "x_m": 500_000.0 + 900 * i, "y_m": 6_108_000.0, "turbine": i % 2, "from_step": 3}
        for i in range(4)
    ]
    study = load_study(study_data(tmp_path, scenarios={"file": str(write_scenarios(tmp_path, rows, "places.csv"))}))
    assert study.scenarios == {0: "north"}
    assert [(len(one.x), one.first, one.farm_idx) for one in study.neighbours(0)] == [(2, 3, None)] * 2
    result = study.evaluate(EvaluationKey(0, 0))
    np.testing.assert_array_equal(result.farm_power_mw[0, :3], result.farm_power_mw[2, :3])


# --- the numbers of this version ---


def test_the_method_version_is_raised_when_numbers_change(tmp_path):
    """If it fails although nothing should have changed, find out why; otherwise raise METHOD_VERSION in study.py."""
    study = load_study(study_data(tmp_path))
    result = study.evaluate(EvaluationKey(0, 2))
    assert study.method_version == 1
    found = [f"{value:.9f}" for value in (*result.aep_gwh, result.gross_aep_gwh)]
    assert found == GOLDEN, found


GOLDEN = ["213.376375331", "215.661318717", "214.258545081", "216.543487919"]


def test_deep_check_finds_a_number_that_is_off(tmp_path):
    study = load_study(study_data(tmp_path))
    result = study.evaluate(EvaluationKey(0, 0))
    assert study.judge(result) is None
    farm_power = result.farm_power_mw.copy()
    farm_power[0, 3] *= 1.0 + 1e-6
    assert "farm_power_mw differs" in study.judge(dataclasses.replace(result, farm_power_mw=farm_power))
    other = load_study(study_data(tmp_path, wake_model="jensen"))
    assert "other settings" in other.judge.misfit(result)
