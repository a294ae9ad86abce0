"""open_study: evaluations by key, as an xarray dataset that reads what is used, and as tables."""

import copy
import math

import numpy as np
import pytest

import leeward
from evaluation_cases import CASES, TIMES, WINDOWS, FakeStudy, evaluation, neighbour, store_study
from foreign_files import own_result, write_own_file
from leeward.errors import InputError, LeewardError
from leeward.store import EvaluationKey, Evaluations, RunPaths, store_result
from leeward.study import open_study

ALL = [evaluation(target, scenario) for target, scenario in ((0, 0), (0, 3), (0, 7), (1, 0), (1, 7))]  # not (1, 3)
BY_KEY = {one.key: one for one in ALL}
STUDY = FakeStudy(
    inputs={
        0: ([], {}),
        3: ([neighbour(2, 10), neighbour(10, 20, type_idx=1, seed=4)], {"turbulence_intensity": 0.1}),
        7: ([neighbour(2, 5, type_idx=0), neighbour(2, 90, end=95)], {}),
    }
)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return store_study(tmp_path_factory.mktemp("study"), ALL)


@pytest.fixture(scope="module")
def opened(paths):
    """Opened once: every process that reads costs half a second."""
    with Evaluations(paths.output, study_of=lambda text: STUDY) as evaluations:
        yield evaluations


@pytest.fixture
def reads(opened, monkeypatch):
    """The names of the results that the reader process is asked for."""
    asked = []
    read = opened._reader.read

    def counted(path, names):  # as Reader.read
        asked.extend(names)
        return read(path, names)

    monkeypatch.setattr(opened._reader, "read", counted)
    monkeypatch.setattr(opened, "_numbers", {})
    monkeypatch.setattr(opened, "_last", None)
    return asked


def test_look_up(paths):
    assert leeward.open_study is open_study
    with open_study(str(paths.output)) as evaluations:
        assert list(evaluations) == sorted(BY_KEY)
        for key in ((0, 3), "target0_scenario3", EvaluationKey(0, 3), (np.int64(0), 3)):
            assert evaluations[key].seal == BY_KEY[0, 3].seal
        assert (1, 3) not in evaluations
        assert "nonsense" not in evaluations
        with pytest.raises(KeyError, match="no result target1_scenario3; the nearest: target"):
            evaluations[1, 3]
        with pytest.raises(InputError, match="not a key; expected target, scenario"):
            evaluations[0, 5, 3]
        assert {one.key for one in evaluations.results()} == set(BY_KEY)
        assert (evaluations.cases, evaluations.windows) == (CASES, WINDOWS)
        assert "5 evaluations in" in repr(evaluations)
        assert "kind: evaluations" in evaluations.campaign_text


def test_a_run_directory(paths):
    with open_study(paths.root) as evaluations:
        assert list(evaluations) == sorted(BY_KEY)
        assert evaluations[1, 7].seal == BY_KEY[1, 7].seal
        assert evaluations.campaign_text == "kind: evaluations\nname: toy\n"


def test_the_other_kind_is_refused(paths, tmp_path):
    layouts = write_own_file(tmp_path / "layouts.h5", [own_result()])
    with pytest.raises(InputError, match=r"holds layouts, not evaluations; open it with leeward\.open_layouts"):
        open_study(layouts)
    for place in (paths.output, paths.root):
        with pytest.raises(InputError, match=r"holds evaluations, not layouts; open it with leeward\.open_study"):
            leeward.open_layouts(place)
    empty = RunPaths(tmp_path / "new.h5")
    empty.root.mkdir(parents=True)
    empty.campaign.write_text("# a study\nkind: evaluations\n")
    with pytest.raises(InputError, match="open_study"):
        leeward.open_layouts(empty.root)
    assert len(open_study(empty.root)) == 0


def test_damaged_results(tmp_path):
    paths = store_study(tmp_path, [evaluation(0, 0), evaluation(0, 1)])
    shard = paths.shard(EvaluationKey(0, 1))
    content = bytearray(shard.read_bytes())
    content[content.index(evaluation(0, 1).farm_power_mw.tobytes()[:40])] ^= 1
    shard.write_bytes(content)
    with pytest.warns(UserWarning, match="1 damaged"):
        evaluations = open_study(paths.root)
    assert list(evaluations) == [EvaluationKey(0, 0)]
    with pytest.raises(LeewardError, match="target0_scenario1 is damaged"):
        evaluations[0, 1]


def test_the_dataset_has_names_units_and_gaps(opened):
    data = opened.to_xarray()
    assert dict(data.sizes) == {"target": 2, "scenario": 3, "case": 2, "window": 2, "time": 3, "turbine": 4}
    assert data.target.values.tolist() == ["alone:farm0_t5_s0", "alone:farm1_t5_s0"]
    assert data.target_idx.values.tolist() == [0, 1]
    assert data.scenario.values.tolist() == [0, 3, 7]
    assert data.scenario_name.values.tolist() == ["sample 0", "sample 3", "sample 7"]
    assert data.weight.values.tolist() == [0.5, 3.5, 7.5]
    assert (data.case.values.tolist(), data.window.values.tolist()) == (list(CASES), list(WINDOWS))
    np.testing.assert_array_equal(data.time, np.array(TIMES, dtype="datetime64[ns]"))
    assert all({"units", "long_name"} <= set(variable.attrs) for variable in data.data_vars.values())
    assert data.attrs["campaign_name"] == "toy"
    for key, one in BY_KEY.items():
        here = data.isel(target=key.target_idx).sel(scenario=key.scenario_idx)
        np.testing.assert_array_equal(here.aep_gwh, one.aep_gwh)
        assert here.gross_aep_gwh.item() == one.gross_aep_gwh
        np.testing.assert_allclose(here.wake_loss, [one.wake_loss(case) for case in CASES], rtol=1e-14)
        np.testing.assert_array_equal(here.window_power_mw, one.window_power_mw)
        np.testing.assert_array_equal(here.farm_power_mw, one.farm_power_mw)
        n_turbines = one.turbine_power_mw.shape[2]
        np.testing.assert_array_equal(here.turbine_power_mw[..., :n_turbines], one.turbine_power_mw)
        assert np.isnan(here.turbine_power_mw[..., n_turbines:]).all()
    missing = data.isel(target=1).sel(scenario=3)
    assert all(np.isnan(variable).all() for variable in missing.data_vars.values())


def test_a_selection_reads_only_its_results(opened, reads):
    data = opened.to_xarray()
    assert reads == ["target0_scenario0"]  # which arrays there are
    reads.clear()
    one = data.isel(target=0).sel(scenario=3).load()
    assert reads == ["target0_scenario3"]
    np.testing.assert_array_equal(one.turbine_power_mw, BY_KEY[0, 3].turbine_power_mw)
    reads.clear()
    np.testing.assert_array_equal(data.farm_power_mw.sel(scenario=7, case="external")[1], BY_KEY[1, 7].farm_power_mw[1])
    assert reads == ["target1_scenario7"]
    assert data.farm_power_mw.sel(scenario=3)[1].isnull().all()  # there is no such result
    assert reads == ["target1_scenario7"]
    reads.clear()
    assert data.aep_gwh.notnull().sum() == 2 * len(ALL)
    assert sorted(reads) == ["target0_scenario7", "target1_scenario0"]  # the numbers of the others are known


@pytest.mark.parametrize(
    "places",
    [
        {"scenario": [2, 0, 2], "time": slice(None, None, -1)},
        {"target": -1, "case": [1], "turbine": [1, 0]},
        {"target": [0], "scenario": 0, "case": 1, "time": 2, "turbine": 3},
        {"target": slice(1, 1)},
    ],
)
def test_every_way_to_select(opened, places):
    lazy = opened.to_xarray().turbine_power_mw
    whole = opened.to_xarray().turbine_power_mw.load()
    np.testing.assert_array_equal(lazy.isel(places).values, whole.isel(places).values)
    assert lazy.isel(places).dims == whole.isel(places).dims


def test_points_and_copies(opened):
    import xarray

    lazy, whole = opened.to_xarray().farm_power_mw, opened.to_xarray().farm_power_mw.load()
    points = {"scenario": xarray.DataArray([0, 2, 2], dims="p"), "time": xarray.DataArray([0, 1, 2], dims="p")}
    np.testing.assert_array_equal(lazy.isel(points), whole.isel(points))
    np.testing.assert_array_equal(copy.deepcopy(lazy), whole)
    changed = opened.to_xarray()
    changed.aep_gwh[0, 0, 0] = -1.0
    assert opened.to_xarray().aep_gwh[0, 0, 0] > 0


def test_weighted_means(opened):
    data = opened.to_xarray()
    mean = data.aep_gwh.sel(case="all").weighted(data.weight).mean("scenario")
    aep = np.array([BY_KEY[0, number].case_aep_gwh("all") for number in (0, 3, 7)])
    assert mean[0].item() == pytest.approx(np.average(aep, weights=[0.5, 3.5, 7.5]))


def test_arrays_that_were_not_kept(tmp_path):
    plain = [evaluation(0, 0, series=False, windows=()), evaluation(0, 1, series=False, windows=(), cases=("none",))]
    paths = store_study(tmp_path, plain)
    with Evaluations(paths.output) as evaluations:
        data = evaluations.to_xarray()
        assert set(data.data_vars) == {"aep_gwh", "gross_aep_gwh", "wake_loss"}
        assert set(data.sizes) == {"target", "scenario", "case"}
        assert data.case.values.tolist() == ["all", "external", "none"]
        assert np.isnan(data.aep_gwh.sel(scenario=1, case="all"))
        assert data.aep_gwh.sel(scenario=1, case="none").item() == plain[1].case_aep_gwh("none")
        assert len(evaluations.to_pandas()) == 3


def test_steps_have_numbers_without_dates(tmp_path):
    paths = store_study(tmp_path, [evaluation(0, 0), evaluation(0, 1, steps=5)])
    with Evaluations(paths.output) as evaluations:
        data = evaluations.to_xarray()
        assert data.time.values.tolist() == [0, 1, 2]
        with pytest.raises(InputError, match="target0_scenario1 has 5 steps, but the first result has 3"):
            data.farm_power_mw.load()
        np.testing.assert_array_equal(data.farm_power_mw[0, 0], evaluation(0, 0).farm_power_mw)  # the reader goes on


def test_nothing_in_it(tmp_path):
    paths = RunPaths(tmp_path / "study.h5")
    paths.root.mkdir(parents=True)
    paths.campaign.write_text("kind: evaluations\n")
    with Evaluations(paths.root, study_of=lambda text: STUDY) as evaluations:
        assert evaluations.to_xarray().sizes["scenario"] == 0
        assert len(evaluations.to_pandas()) == len(evaluations.features()) == 0


def test_as_pandas(opened):
    table = opened.to_pandas()
    assert len(table) == 2 * len(ALL)
    assert table.columns.tolist() == opened.columns()
    row = table[(table.key == "target0_scenario3") & (table.case == "external")].iloc[0]
    one = BY_KEY[0, 3]
    assert (row.target, row.scenario, row.weight) == ("alone:farm0_t5_s0", "sample 3", 3.5)
    assert (row.aep_gwh, row.gross_aep_gwh) == (one.case_aep_gwh("external"), one.gross_aep_gwh)
    assert row.wake_loss == one.wake_loss("external")
    assert row.capacity_factor == pytest.approx(one.case_aep_gwh("external") / (60.0 * 8.76))
    assert row.first_360_power_mw == one.window_power_mw[1, 0]
    assert row.whole_power_mw == one.window_power_mw[1, 1]


def test_the_feature_table(opened):
    table = opened.features()
    assert len(table) == len(ALL)
    table = table.set_index("key")
    two = table.loc["target0_scenario3"]
    assert [two.farm2_type, two.farm2_rated_power_mw, two.farm2_seed, two.farm2_first_step] == [5, 15.0, 0, 10]
    assert [two.farm10_type, two.farm10_rotor_diameter_m, two.farm10_hub_height_m] == [1, 240.0, 150.0]
    assert (two.farm10_seed, two.turbulence_intensity, two.weight) == (4, 0.1, 3.5)
    none = table.loc["target1_scenario0"]
    assert all(math.isnan(none[name]) for name in table.columns if name.startswith("farm") or name.startswith("turb"))
    twice = table.loc["target1_scenario7"]
    assert (twice.farm2_first_step, twice.farm2_2_first_step, twice.farm2_2_end_step) == (5, 90, 95)
    one = BY_KEY[1, 7]
    assert (twice.all_aep_gwh, twice.external_aep_gwh) == tuple(one.aep_gwh)
    assert twice.external_first_360_power_mw == one.window_power_mw[1, 0]
    assert twice.external_wake_loss == one.wake_loss("external")
    farms = [name for name in table.columns if name.endswith("_type")]
    assert farms == ["farm2_type", "farm2_2_type", "farm10_type"]


def test_features_need_the_study(paths):
    with Evaluations(paths.output) as evaluations, pytest.raises(InputError, match="holds no study"):
        evaluations.features()
    with open_study(paths.output) as evaluations, pytest.warns(UserWarning, match="inputs and dates .* are unknown"):
        assert evaluations.to_xarray().time.dtype.kind == "i"


def test_fewer_results(opened):
    some = opened.only([EvaluationKey(0, 7), EvaluationKey(1, 7)])
    with some:
        assert some.to_xarray().sizes["scenario"] == 1
        assert len(some.to_pandas()) == 4


def test_a_result_that_goes_away(tmp_path):
    paths = RunPaths(tmp_path / "study.h5")
    store_result(paths, evaluation(0, 0))
    store_result(paths, evaluation(0, 1))
    with Evaluations(paths.root) as evaluations:
        data = evaluations.to_xarray()
        paths.shard(EvaluationKey(0, 1)).unlink()
        with pytest.raises(LeewardError, match="can no longer be read"):
            data.aep_gwh.load()
        assert data.aep_gwh[0, 0, 0].item() == evaluation(0, 0).case_aep_gwh("all")
