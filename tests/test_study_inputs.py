"""Inputs of studies that look right and are not, and inputs that look odd and are right."""

import numpy as np
import pytest

import leeward
from leeward.errors import InputError
from leeward.study import load_study
from small_studies import STEPS, scenario_rows, study_data, write_scenarios, write_study


def rows_with(**columns):
    """Three scenarios of three rows; each column is a list of nine cells, or one cell for all."""
    rows = scenario_rows(3)
    for name, cells in columns.items():
        for row, cell in zip(rows, cells if isinstance(cells, list) else [cells] * 9, strict=True):
            row[name] = cell
    return rows


def study_of(folder, rows, **changes):
    data = study_data(folder, **changes)
    write_scenarios(folder, rows)
    return load_study(data)


def without(rows, name):
    return [{key: cell for key, cell in row.items() if key != name} for row in rows]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (rows_with(from_date="2020-02-25"), "line 2, column 'from_step': the row has from_step and from_date"),
        (without(rows_with(from_date=["2020-02-25", ""] + ["2020-02-25"] * 7), "from_step"), "line 3, .*is empty"),
        (rows_with(until_step=[10.7, *[""] * 8]), "line 2, column 'until_step': is '10.7'; expected a whole number"),
        (rows_with(until_step=["x", *[""] * 8]), "line 2, column 'until_step': is 'x'; expected a number"),
        (rows_with(weight=-1), "line 2, column 'weight': is -1; expected 0 or more"),
        (rows_with(weight=""), "line 2, column 'weight': is empty"),
        (rows_with(turbulence_intensity=5), "column 'turbulence_intensity': is 5; expected a value above 0 and below"),
        (rows_with(turbulence_intensity=1e-7), "scenario 0: .*turbulence"),
        (rows_with(**{"wake_model.expansion": -0.06}), "scenario 0: .*expansion"),
        (rows_with(**{"wake_model.width": 1}), "overrides wake_model.width; nygaard_2022 has the options"),
        (rows_with(scenario=["", *[1] * 8]), "line 2, column 'scenario': is ''; expected a name"),
        (rows_with(scenario="a,b"), "expected a name of 1 to 100 characters, without colon, comma"),
        (rows_with(x_m=1.0, y_m=1.0, turbine=0), "has the columns .*; expected farm, type and seed"),
        (rows_with(seed=-1), "line 2, column 'seed': gives seed -1; expected 0"),
        (without(rows_with(), "seed"), "has the columns farm, type; expected farm, type and seed"),
    ],
)
def test_a_table_is_refused_with_its_row(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        study_of(tmp_path, rows)


def test_two_names_of_the_same_number_are_two_scenarios(tmp_path):
    names = ["7"] * 3 + ["07"] * 3 + ["²"] * 3
    study = study_of(tmp_path, rows_with(scenario=names))
    assert dict(study.scenarios) == {0: "7", 1: "07", 2: "²"}


def test_an_empty_cell_keeps_the_default(tmp_path):
    rows = rows_with(until_step=["39.0", *[""] * 8], turbulence_intensity=[""] * 3 + [0.1] * 6)
    for row in rows[:3]:
        row["from_step"] = 0
    study = study_of(tmp_path, rows)
    assert sorted(one.end or STEPS for one in study.neighbours(0)) == [39, STEPS, STEPS]
    assert [study.overrides(number) for number in range(2)] == [{}, {"turbulence_intensity": 0.1}]


def test_empty_cells_of_parquet_and_netcdf(tmp_path):
    import pandas
    import xarray

    rows = [row | {"from_step": 0, "until_step": np.nan if row["farm"] > 1 else 30.0} for row in scenario_rows(3)]
    frame = pandas.DataFrame(rows)
    frame.to_parquet(tmp_path / "s.parquet")
    numbers = frame.set_index(["scenario", "farm"]).to_xarray()
    unrelated = xarray.Dataset({"height": ("height", [1.0, 2.0])})  # must not repeat the rows
    xarray.merge([numbers, unrelated]).to_netcdf(tmp_path / "s.nc", engine="h5netcdf")
    for name in ("s.parquet", "s.nc"):
        study = load_study(study_data(tmp_path, scenarios={"file": str(tmp_path / name)}))
        assert [{one.farm_idx: one.end for one in study.neighbours(n)} for n in range(3)] == [
            {1: 30, 2: None, 3: None}
        ] * 3


def test_lines_are_counted_after_a_line_break_in_a_cell(tmp_path):
    data = study_data(tmp_path)
    rows = [row | {"remark": "two\nlines"} for row in scenario_rows(2)]
    rows[1]["seed"] = 9
    write_scenarios(tmp_path, rows)
    with pytest.raises(InputError, match=r"line 5, column 'farm': .*has no layout"):
        load_study(data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scenarios": {"file": "scenarios.csv", "only": "5:9"}}, "only is 5:9, which selects none of the 3 scenarios"),
        ({"scenarios": {"file": "scenarios.csv", "columns": {"weight": {"column": "seed", "add": 1}}}}, "`add` or"),
        ({"wind": {"site": "danish-energy-island", "turbulence_intensity": 0.3}, "keep": ["aep"]}, "does not apply"),
        ({"windows": {"first": "²:5"}}, "expected steps such as"),
        ({"keep": ["aep", "turbine_power"], "cases": ["all"]}, None),
    ],
)
def test_settings_that_would_be_ignored_are_refused(tmp_path, changes, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = study_data(tmp_path, **changes)
    if message is None:
        monkeypatch.setattr("leeward.store.Evaluation.MOST_NUMBERS", 159)  # four turbines, 40 steps
        message = "has turbine_power, 160 numbers for each result, but a result holds at most 159"
    with pytest.raises(InputError, match=message):
        load_study(data)


NEAR = {"x_m": [509_000.0, 510_000.0], "y_m": [6_100_000.0, 6_100_000.0], "turbine": 1}


@pytest.mark.parametrize(
    ("neighbours", "message"),
    [
        ([[NEAR | {"until_step": STEPS}], [NEAR]], "the scenarios 0 and 1 are equal"),
        ([[NEAR | {"x_m": [509_000.0] * 2}]], r"scenarios\[0\].neighbours\[0\]: turbines 0 and 1 are at the same"),
        ([[NEAR | {"x_m": [5e8, 0.0]}]], "metres"),
        ([[NEAR | {"layouts": "alone"}]], "has x_m and y_m, so layouts does not apply"),
        ([[NEAR | {"from_date": "2020-04-20"}]], "is 2020-04-20; expected a date of the series, 2020-02-20 to"),
    ],
)
def test_a_list_is_refused(tmp_path, neighbours, message):
    with pytest.raises(InputError, match=message):
        load_study(study_data(tmp_path, scenarios=[{"neighbours": each} for each in neighbours]))


def test_the_end_of_the_series_may_be_a_date(tmp_path):
    ends = [("2020-03-30", None), ("2020-03-31", None), ("2020-03-30T00:00", 39)]
    for (date, _), expected in zip(ends, (39, None, 39), strict=True):
        study = load_study(study_data(tmp_path, scenarios=[{"neighbours": [NEAR | {"until_date": date}]}]))
        assert study.neighbours(0)[0].end == expected


def test_a_date_between_two_steps_is_the_next_step(tmp_path):
    wind = {"wind_speed_m_s": [8.0] * 5, "wind_direction_deg": [9.0] * 5, "hours_per_step": 24}
    wind["start"] = "2022-01-01T12:00"
    scenarios = [{"neighbours": [NEAR | {"from_date": date}]} for date in ("2022-01-01", "2022-01-03")]
    study = load_study(study_data(tmp_path, wind=wind, scenarios=scenarios, windows={"all": "all"}))
    assert [study.neighbours(number)[0].first for number in range(2)] == [0, 2]


def test_the_order_of_keep_does_not_count(tmp_path):
    study = load_study(study_data(tmp_path))
    other = load_study(study_data(tmp_path, keep=["farm_power", "windows"]))
    assert [study.fingerprint(key) for key in study.tasks()] == [other.fingerprint(key) for key in other.tasks()]


# --- tables after the study has changed ---


def evaluated(folder, scenarios, **changes):
    path = write_study(folder, scenarios=scenarios, **changes)
    return leeward.evaluate(path, folder / "study.h5")


@pytest.mark.slow
def test_new_names_and_weights_need_no_computation(tmp_path):
    near = [NEAR | {"from_step": 3}]
    evaluated(tmp_path, [{"name": "one", "neighbours": near}, {"name": "two"}])
    report = evaluated(tmp_path, [{"name": "uno", "weight": 10, "neighbours": near}, {"name": "two"}])
    assert report.computed == 0
    with leeward.open_study(tmp_path / "study.h5") as study:
        table = study.to_pandas().groupby("scenario").weight.first()
        assert table.to_dict() == {"uno": 10.0, "two": 1.0}
        assert study.to_xarray().weight.values.tolist() == [10.0, 1.0]


@pytest.mark.slow
def test_the_features_of_a_study_that_shrank(tmp_path):
    evaluated(tmp_path, [{"neighbours": [NEAR | {"from_step": step}]} for step in range(3)])
    evaluated(tmp_path, [{"neighbours": [NEAR | {"from_step": step}]} for step in range(2)])
    with leeward.open_study(tmp_path / "study.h5") as study:
        assert len(study) == 3
        with pytest.warns(UserWarning, match="leaves out 1 of 3 results"):
            table = study.features()
    assert table.positions0_first_step.tolist() == [0, 1]


def test_features_do_not_mix_farms_of_two_files(tmp_path):
    data = study_data(tmp_path)
    layouts = {"alone": data["layouts"]["alone"], "other": dict(data["layouts"]["alone"])}
    key = {"type": 0, "seed": 0}
    scenarios = [
        {"neighbours": [{"layouts": "alone", "farm": 1, **key}, {"layouts": "other", "farm": 2, **key}]},
        {"neighbours": [{"layouts": "other", "farm": 1, **key}, NEAR | {"x_m": [480_000.0, 481_000.0]}]},
    ]
    evaluated(tmp_path, scenarios, layouts=layouts)
    with leeward.open_study(tmp_path / "study.h5") as study:
        table = study.features()
    assert {name.rpartition("_type")[0] for name in table if name.endswith("_type")} == {
        *("alone_farm1", "other_farm1", "other_farm2"),
    }
    assert table.positions0_turbines.tolist() == pytest.approx([np.nan, 2], nan_ok=True)
