"""`leeward export` of a study: what is in the files, and what is refused."""

import csv
import importlib.util
import sys

import numpy as np
import pandas
import pytest
import xarray

from evaluation_cases import CASES, TIMES, FakeStudy, evaluation, neighbour, store_study
from foreign_files import own_result, write_own_file
from leeward.errors import InputError
from leeward.export import export_features, export_study, open_evaluations, study_arrays
from leeward.export.study import COLUMNS, columns_of
from leeward.store import EvaluationKey, Evaluations
from run_cases import leeward_here

needs_pyarrow = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")
needs_zarr = pytest.mark.skipif(importlib.util.find_spec("zarr") is None, reason="zarr is not installed")

ALL = [evaluation(target, scenario) for target, scenario in ((0, 0), (0, 3), (0, 7), (1, 0), (1, 7))]  # not (1, 3)
STUDY = FakeStudy(
    inputs={0: ([], {}), 3: ([neighbour(2, 10), neighbour(None, 20)], {"wind": "=low"})} | {7: ([neighbour(2, 5)], {})}
)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return store_study(tmp_path_factory.mktemp("study"), ALL)


@pytest.fixture(scope="module")
def opened(paths):
    """Opened once: every process that reads costs half a second."""
    with Evaluations(paths.output, study_of=lambda text: STUDY) as evaluations:
        yield evaluations


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def same(found, opened):
    """The file holds what `to_xarray` returns."""
    expected = opened.to_xarray().load()
    assert set(found.variables) == set(expected.variables)
    assert dict(found.sizes) == dict(expected.sizes)
    for name in expected.variables:
        np.testing.assert_array_equal(found[name].values, expected[name].values)
        assert found[name].dims == expected[name].dims
        assert found[name].attrs["long_name"] == expected[name].attrs["long_name"]
    assert found.farm_power_mw.attrs["units"] == "MW"
    assert found.time.values.tolist() == np.array(TIMES, dtype="datetime64[ns]").tolist()
    assert (found.attrs["study_name"], found.attrs["Conventions"]) == ("toy", "CF-1.11")


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_netcdf(opened, tmp_path, engine):
    if engine == "netcdf4":
        pytest.importorskip("netCDF4")
    assert export_study(opened, tmp_path / "study.nc") == len(ALL)
    with xarray.open_dataset(tmp_path / "study.nc", engine=engine) as found:
        same(found, opened)
        assert {"target_idx", "scenario_name", "weight"} <= set(found.coords)


@needs_zarr
@pytest.mark.parametrize("block", [study_arrays.BLOCK, 1])
def test_zarr_in_one_block_or_scenario_by_scenario(opened, tmp_path, monkeypatch, block):
    monkeypatch.setattr(study_arrays, "BLOCK", block)
    output = tmp_path / "study.zarr"
    for _ in range(2):  # the second replaces the first
        assert export_study(opened, output) == len(ALL)
        with xarray.open_zarr(output, chunks=None) as found:
            same(found, opened)
    assert [path.name for path in tmp_path.iterdir()] == ["study.zarr"]


@needs_zarr
def test_zarr_replaces_nothing_but_zarr(opened, tmp_path):
    (tmp_path / "study.zarr").mkdir()
    (tmp_path / "study.zarr" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="exists and is not a Zarr folder"):
        export_study(opened, tmp_path / "study.zarr")
    assert (tmp_path / "study.zarr" / "thesis.txt").read_text() == "mine"


def test_zarr_that_is_not_installed(opened, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(InputError, match="pip install zarr"):
        export_study(opened, tmp_path / "study.zarr")
    assert not list(tmp_path.iterdir())


def test_csv(opened, tmp_path):
    export_study(opened, tmp_path / "study.csv")
    rows = rows_of(tmp_path / "study.csv")
    assert list(rows[0]) == opened.columns()
    assert [(row["key"], row["case"]) for row in rows] == [(str(one.key), case) for one in ALL for case in CASES]
    one = ALL[1]
    assert float(rows[3]["aep_gwh"]) == one.case_aep_gwh("external")
    assert float(rows[3]["whole_power_mw"]) == one.window_power_mw[1, 1]


@needs_pyarrow
def test_parquet(opened, tmp_path):
    import pyarrow.parquet

    export_study(opened, tmp_path / "study.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "study.parquet"), opened.to_pandas())
    schema = pyarrow.parquet.read_schema(tmp_path / "study.parquet")
    assert schema.field("aep_gwh").metadata[b"unit"] == b"GWh"
    assert schema.metadata[b"study"] == b"toy"


def test_every_column_has_a_meaning(opened):
    assert [column.name for column in columns_of(opened)] == opened.columns()
    assert [column.name for column in COLUMNS] == opened.columns()[: len(COLUMNS)]


@pytest.mark.parametrize("ending", [".csv", pytest.param(".parquet", marks=needs_pyarrow)])
def test_features(opened, tmp_path, ending):
    path = tmp_path / f"features{ending}"
    assert export_features(opened, path) == len(ALL)
    table = pandas.read_csv(path) if ending == ".csv" else pandas.read_parquet(path)
    table = table.set_index("key")
    one = table.loc["target0_scenario3"]
    assert (one.farm2_type, one.farm2_first_step, one.positions0_turbines) == (5, 10, 2)
    assert one.wind == ("'=low" if ending == ".csv" else "=low")  # a spreadsheet must not compute it
    assert table.loc["target1_scenario7"].external_first_360_power_mw == ALL[4].window_power_mw[1, 0]
    assert table.loc["target0_scenario0"].isna()["farm2_type"]
    with pytest.raises(InputError, match=r"the feature table needs the extension \.csv or \.parquet"):
        export_features(opened, tmp_path / "features.nc")


def test_results_that_only_the_merged_file_has(tmp_path):
    paths = store_study(tmp_path, ALL[:2])
    paths.shard(EvaluationKey(0, 3)).unlink()
    with open_evaluations(paths.root) as evaluations:
        assert list(evaluations) == [EvaluationKey(0, 0), EvaluationKey(0, 3)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.geojson", "geojson holds layouts"),
        ("a.npz", "arrays holds layouts"),
        ("a.txt", "extension .txt is not known"),
    ],
)
def test_formats_that_a_study_does_not_have(opened, tmp_path, name, message):
    with pytest.raises(InputError, match=rf"{message}; a study is written as one of \.nc \(netcdf\)"):
        export_study(opened, tmp_path / name)


def test_the_command(paths, tmp_path):
    done = leeward_here("export", str(paths.root), "-o", "study.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("written: study.csv, 5 evaluations, csv, ")
    assert len(rows_of(tmp_path / "study.csv")) == 2 * len(ALL)
    done = leeward_here("export", str(paths.output), "-o", "one.csv", "--key", "target0_scenario3", cwd=tmp_path)
    assert done.returncode == 0
    assert {row["key"] for row in rows_of(tmp_path / "one.csv")} == {"target0_scenario3"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "a.csv", "--best"], "is a study; --best selects or describes layouts"),
        (["-o", "a.csv", "--per", "turbine"], "is a study; --per selects"),
        (["-o", "a.csv", "--farm", "0"], "is a study; --farm selects"),
        (["-o", "a.yaml"], "windio holds layouts; a study is written as"),
        (["-o", "a.yaml", "--format", "floris"], "floris holds layouts"),
        (["-o", "a.csv", "--key", "farm0_t0_s0"], "not a key; expected one like target0_scenario3"),
        (["-o", "a.csv", "--key", "target0_scenario4"], "no result target0_scenario4"),
    ],
)
def test_the_command_refuses(paths, tmp_path, options, message):
    done = leeward_here("export", str(paths.output), *options, cwd=tmp_path)
    assert done.returncode == 2 or "no result" in message
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_features_of_layouts_are_refused(tmp_path):
    write_own_file(tmp_path / "layouts.h5", [own_result()])
    done = leeward_here("export", "layouts.h5", "-o", "a.csv", "--features", cwd=tmp_path)
    assert done.returncode == 2
    assert "holds layouts; --features writes the feature table of a study" in done.stderr


def test_damaged_results_are_left_out(tmp_path):
    paths = store_study(tmp_path, ALL[:2])
    for path in (paths.shard(EvaluationKey(0, 3)), paths.output):
        content = bytearray(path.read_bytes())
        content[content.index(ALL[1].farm_power_mw.tobytes()[:40])] ^= 1
        path.write_bytes(content)
    done = leeward_here("export", "study.h5", "-o", "study.csv", cwd=tmp_path)
    assert done.returncode == 3
    assert "1 damaged result or file left out" in done.stderr
    assert {row["key"] for row in rows_of(tmp_path / "study.csv")} == {"target0_scenario0"}
