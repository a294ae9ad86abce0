"""open_layouts: results by key, and as tables."""

import math

import h5py
import numpy as np
import pytest

import leeward
from foreign_files import own_result, write_crashed_folder, write_foreign_file, write_own_file
from leeward.campaign import open_layouts
from leeward.errors import InputError, LeewardError
from leeward.formats.rows import LAYOUT_COLUMNS, TURBINE_COLUMNS
from leeward.store.directory.shards import store_result
from leeward.store.format.keys import Key
from leeward.store.grid import grid_dataset
from leeward.store.paths import RunPaths

RESULTS = [own_result(seed=seed, turbines=3 + seed) for seed in range(3)] + [own_result(farm=10, aep=7.0)]


@pytest.fixture
def path(tmp_path):
    attributes = {"campaign": "name: sample\n", "campaign_name": "sample", "crs": "EPSG:25831"}
    return write_own_file(tmp_path / "layouts.h5", RESULTS, **attributes)


def test_look_up(path):
    with open_layouts(str(path)) as layouts:
        assert len(layouts) == 4
        assert list(layouts) == list(layouts.keys()) == [Key(0, 0, 0), Key(0, 0, 1), Key(0, 0, 2), Key(10, 0, 0)]
        for key in ((0, 0, 2), "farm0_t0_s2", Key(0, 0, 2), (np.int64(0), 0, 2)):
            assert key in layouts
            assert layouts[key].seal == RESULTS[2].seal
        assert layouts[10, 0, 0].aep_gwh == 7.0
        np.testing.assert_array_equal(layouts[0, 0, 1].x, RESULTS[1].layout[0])
        assert (0, 0, 9) not in layouts
        assert "nonsense" not in layouts
        assert layouts.campaign_text == "name: sample\n"
        assert layouts.attributes["crs"] == "EPSG:25831"
        assert layouts.bad == []
        assert sorted(result.key for result in layouts.results()) == list(layouts)
        assert {key: result.digest for key, result in layouts.items()}[Key(0, 0, 1)] == RESULTS[1].digest
        assert "4 layouts" in repr(layouts)
    assert layouts[0, 0, 0].digest == RESULTS[0].digest  # closed only means that nothing is kept running
    layouts.close()


def test_keys_that_are_not_there(path):
    layouts = open_layouts(path)
    with pytest.raises(KeyError, match=r"no result farm0_t0_s9; the nearest: farm0_t0_s\d") as caught:
        layouts[0, 0, 9]
    assert isinstance(caught.value, LeewardError)
    assert layouts.get((0, 0, 9)) is None
    for nonsense in ("farm", (0, 0), 5, (0.5, 0, 0)):
        with pytest.raises(InputError, match="is not a key"):
            layouts[nonsense]


def test_as_xarray(path):
    data = open_layouts(path).to_xarray()
    assert dict(data.sizes) == {"farm_idx": 2, "type_idx": 1, "seed": 3, "turbine": 5}
    assert (data.farm_idx.values.tolist(), data.seed.values.tolist()) == ([0, 10], [0, 1, 2])
    for result in RESULTS:
        one = data.sel(result.key._asdict())
        np.testing.assert_array_equal([one.x_m[: result.n_turbines], one.y_m[: result.n_turbines]], result.layout)
        assert np.isnan([one.x_m[result.n_turbines :], one.y_m[result.n_turbines :]]).all()
        assert (one.key.item(), one.aep_gwh.item(), one.n_turbines.item()) == (
            str(result.key),
            result.aep_gwh,
            result.n_turbines,
        )
        assert (one.fingerprint.item(), one.steps.item()) == (result.fingerprint, result.steps)
    assert data.wake_loss.sel(farm_idx=0, seed=0).item() == 0.1
    none = data.sel(farm_idx=10, type_idx=0, seed=[1, 2])
    assert np.isnan(none.x_m).all()
    assert np.isnan([none.aep_gwh, none.steps]).all()
    assert (set(none.key.values), set(none.status.values), set(none.n_turbines.values)) == ({""}, {""}, {0})
    assert data.n_turbines.dtype.kind == "i"
    assert (data.aep_gwh.attrs["units"], data.x_m.attrs["units"], data.attrs["crs"]) == ("GWh", "m", "EPSG:25831")


def test_as_xarray_with_one_layout_of_each_farm_and_type(path):
    layouts = open_layouts(path)
    data = layouts.only([Key(0, 0, 2), Key(10, 0, 0)]).to_xarray(by_seed=False)
    assert dict(data.sizes) == {"farm_idx": 2, "type_idx": 1, "turbine": 5}
    assert data.seed.sel(type_idx=0).values.tolist() == [2, 0]
    np.testing.assert_array_equal(data.x_m.sel(farm_idx=0, type_idx=0), RESULTS[2].x)
    with pytest.raises(InputError, match="several results for one farm and type"):
        layouts.to_xarray(by_seed=False)


def test_a_grid_that_would_be_next_to_empty_is_refused():
    row = {"aep_gwh": 1.0, "n_turbines": 50}
    found = {Key(i, i, i): (np.zeros((2, 50)), row) for i in range(120)}
    with pytest.raises(
        InputError, match=r"120 farm_idx × 120 type_idx × 120 seed for 120 results .* 1\.3 GiB.*a table"
    ):
        grid_dataset(found, ["aep_gwh", "n_turbines"], [])
    few = {key: found[key] for key in list(found)[:12]}
    assert grid_dataset(few, list(row), []).aep_gwh.count() == 12


def test_as_pandas(path):
    layouts = open_layouts(path)
    table = layouts.to_pandas()
    assert len(table) == 4
    assert table.loc[table.seed == 2, "n_turbines"].item() == 5
    assert table.columns[:5].tolist() == ["key", "farm_idx", "type_idx", "seed", "aep_gwh"]
    assert {*table.columns} <= {column.name for column in LAYOUT_COLUMNS}  # as in CSV and Parquet
    turbines = layouts.to_pandas(per="turbine")
    assert len(turbines) == 3 + 4 + 5 + 5
    assert {*turbines.columns} <= {column.name for column in TURBINE_COLUMNS}
    assert turbines[turbines.key == "farm0_t0_s1"].x_m.tolist() == RESULTS[1].x.tolist()
    assert set(turbines[turbines.key == "farm0_t0_s1"].layout_aep_gwh) == {RESULTS[1].aep_gwh}
    assert turbines[turbines.key == "farm0_t0_s1"].turbine.tolist() == [0, 1, 2, 3]
    with pytest.raises(InputError, match="expected 'layout' or 'turbine'"):
        layouts.to_pandas(per="farm")


def test_nothing_in_it(tmp_path):
    layouts = open_layouts(write_foreign_file(tmp_path / "worker.h5"))
    assert len(layouts) == 0
    assert dict(layouts.to_xarray().sizes) == {"farm_idx": 0, "type_idx": 0, "seed": 0, "turbine": 0}
    assert len(layouts.to_pandas()) == len(layouts.to_pandas(per="turbine")) == 0
    with pytest.raises(KeyError, match="it has 0 results"):
        layouts[0, 0, 0]


def test_a_run_directory(tmp_path):
    paths = RunPaths(tmp_path / "layouts.h5")
    for result in RESULTS:
        store_result(paths, result)
    paths.campaign.write_text("name: from the run\n")
    layouts = open_layouts(paths.root)
    assert len(layouts) == 4
    assert layouts[0, 0, 2].seal == RESULTS[2].seal
    assert layouts.campaign_text == "name: from the run\n"
    assert layouts.to_xarray().aep_gwh.count() == 4


def test_foreign_files(tmp_path):
    path = write_foreign_file(tmp_path / "worker.h5", [(0, 0, 1)], folder="optimized_layouts", aep=-5.0)
    layouts = open_layouts(path)
    assert layouts[0, 0, 1].status == "no-aep"
    assert math.isnan(layouts.to_pandas().aep_gwh.item())
    with pytest.warns(UserWarning, match="left out 2 damaged entries; first: worker_101.h5"):
        layouts = open_layouts(write_crashed_folder(tmp_path / "layouts.h5_temp"))
    assert len(layouts) == 8
    assert len(layouts.bad) == 2


def test_damaged_results(path):
    with h5py.File(path, "r+", libver="v110") as file:
        file["farm0_t0_s1/aep"][()] = 1e6
    with pytest.warns(UserWarning, match="1 damaged"):
        layouts = open_layouts(path)
    assert len(layouts) == 3
    assert layouts.bad[0].key == Key(0, 0, 1)
    with pytest.raises(LeewardError, match="damaged \\(bad-seal"):
        layouts[0, 0, 1]
    assert len(list(layouts.results())) == 3


def test_a_file_that_goes_away(path):
    layouts = open_layouts(path)
    path.unlink()
    with pytest.raises(LeewardError, match="can no longer be read"):
        layouts[0, 0, 0]
    with pytest.raises(LeewardError, match="can no longer be read"):
        list(layouts.results())


def test_it_is_at_the_top_of_the_package(path, tmp_path):
    assert leeward.open_layouts is open_layouts
    with pytest.raises(InputError, match="no such file"):
        open_layouts(tmp_path / "none.h5")
