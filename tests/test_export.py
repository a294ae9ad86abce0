"""`leeward export`: what is in the files, and what is refused."""

import csv
import importlib.util
import json
import shutil
import sys
from types import SimpleNamespace

import h5py
import numpy as np
import pyproj
import pytest
import xarray
import yaml

from export_cases import campaign_data, make_run
from foreign_files import left_behind, own_result, write_own_file
from leeward.campaign import load, open_layouts
from leeward.cli.export import FormatName
from leeward.errors import InputError, StorageError
from leeward.export import FORMATS, Choice, chosen, export_layouts, open_results, tables, write
from leeward.export.write import Format, Request
from leeward.store.format.keys import Key
from run_cases import leeward_here

needs_pyarrow = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def results(run):
    return {str(result.key): result for result in open_layouts(run / "layouts.h5").results()}


@pytest.fixture(scope="module")
def source(run):
    """Opened once: every process that reads costs half a second."""
    with open_results(run / "layouts.run") as layouts:
        yield layouts, load(run / "campaign.yaml")


def exported(source, tmp_path, name, *, per="turbine", form=None, **choice):
    """The file, from the run directory."""
    layouts, campaign = source
    export_layouts(chosen(layouts, Choice(**choice)), tmp_path / name, campaign, format_name=form, per=per)
    return tmp_path / name


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv_with_a_row_for_each_turbine(source, results, tmp_path):
    path = exported(source, tmp_path, "all.csv")
    rows = rows_of(path)
    assert len(rows) == 4 * 4 + 4 * 5
    assert [row["key"] for row in rows] == [str(key) for key in sorted(Key.parse(row["key"]) for row in rows)]
    for key, result in results.items():
        mine = [row for row in rows if row["key"] == key]
        np.testing.assert_array_equal([[float(row["x_m"]), float(row["y_m"])] for row in mine], result.layout.T)
        assert {float(row["layout_aep_gwh"]) for row in mine} == {result.aep_gwh}
    assert {row["farm"] for row in rows} == {"'=cmd|' /C calc'!A0", "Østervig"}
    assert {row["crs"] for row in rows} == {"EPSG:25831"}
    assert {row["rated_power_mw"] for row in rows if row["type_idx"] == "1"} == {"15.0"}
    assert path.read_bytes().count(b"\r\n") == len(rows) + 1


def test_csv_with_a_row_for_each_layout(source, results, tmp_path):
    rows = rows_of(exported(source, tmp_path, "all.csv", per="layout"))
    assert {row["key"]: float(row["aep_gwh"]) for row in rows} == {key: one.aep_gwh for key, one in results.items()}
    assert [int(row["n_turbines"]) for row in rows] == [4] * 4 + [5] * 4
    assert [row["fingerprint"] for row in rows] == [results[row["key"]].fingerprint for row in rows]
    assert [float(row["wake_loss"]) for row in rows] == [results[row["key"]].details["wake_loss"] for row in rows]


@needs_pyarrow
@pytest.mark.parametrize("per", ["turbine", "layout"])
def test_parquet_is_the_same_table(source, tmp_path, monkeypatch, per):
    import pandas
    import pyarrow.parquet

    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 3)
    path = exported(source, tmp_path, "all.parquet", per=per)
    table = pandas.read_parquet(path)
    with_texts = pandas.read_csv(exported(source, tmp_path, "all.csv", per=per))
    assert list(table.columns) == list(with_texts.columns)
    for name in table.columns:
        if table[name].dtype.kind in "if":
            assert table[name].dtype == (np.int64 if table[name].dtype.kind == "i" else np.float64)
            np.testing.assert_array_equal(table[name], with_texts[name])
    assert set(table.farm) == {"=cmd|' /C calc'!A0", "Østervig"}  # no spreadsheet reads it, so nothing is put before it
    schema = pyarrow.parquet.read_schema(path)
    assert schema.metadata[b"crs"] == b"EPSG:25831"
    assert schema.metadata[b"campaign"] == b"sample"
    assert schema.field("hub_height_m").metadata[b"unit"] == b"m"
    assert schema.field("key").metadata[b"description"] == b"name of the layout"


def test_parquet_without_pyarrow(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = leeward_here("export", run / "layouts.run", "-o", "all.parquet", cwd=tmp_path)
    assert done.returncode == 2
    assert 'pip install "leeward[parquet]"' in done.stderr
    assert not list(tmp_path.iterdir())


def test_netcdf(source, results, tmp_path):
    path = exported(source, tmp_path, "all.nc")
    with xarray.open_dataset(path) as data:
        assert dict(data.sizes) == {"farm_idx": 2, "type_idx": 2, "seed": 2, "turbine": 5}
        assert set(data.coords) == {"farm_idx", "type_idx", "seed", "turbine", "key", "farm", "turbine_type"}
        for key, result in results.items():
            one = data.sel(result.key._asdict())
            assert one.key.item() == key
            np.testing.assert_array_equal([one.x_m[: result.n_turbines], one.y_m[: result.n_turbines]], result.layout)
            assert np.isnan(one.x_m[result.n_turbines :]).all()
            assert (one.aep_gwh.item(), one.fingerprint.item()) == (result.aep_gwh, result.fingerprint)
        assert (data.farm_idx.dtype, data.seed.dtype, data.x_m.dtype) == (np.int64, np.int64, np.float64)
        assert data.farm.sel(farm_idx=1).item() == "Østervig"
        assert data.hub_height_m.values.tolist() == [121.0, 150.0]
        assert data.rated_power_mw.values.tolist() == [10.0, 15.0]
        assert data.attrs["Conventions"].startswith("CF-1.")
        assert data.attrs["campaign_name"] == "sample"
        assert data.attrs["source"].startswith("leeward ")
        assert "layouts.run" in data.attrs["history"]
        units = {
            "x_m": "m",
            "y_m": "m",
            "aep_gwh": "GWh",
            "wake_loss": "1",
            "hub_height_m": "m",
            "rated_power_mw": "MW",
        }
        for name, unit in units.items():
            assert data[name].attrs["units"] == unit
        assert all("long_name" in data[name].attrs for name in data.variables if name != "crs")
        assert data.x_m.attrs["standard_name"] == "projection_x_coordinate"
        mapping = data[data.y_m.attrs["grid_mapping"]].attrs
        assert pyproj.CRS.from_wkt(mapping["crs_wkt"]) == pyproj.CRS("EPSG:25831")
        assert mapping["grid_mapping_name"] == "transverse_mercator"
    with h5py.File(path) as file:
        assert file["x_m"].compression == "gzip"


def test_netcdf_of_some(source, results, tmp_path):
    keys = [Key(0, 0, 0), Key(0, 0, 1), Key(1, 1, 1)]
    with xarray.open_dataset(exported(source, tmp_path, "some.nc", keys=keys)) as data:
        assert (data.sizes["farm_idx"], data.aep_gwh.count(), (data.key != "").sum()) == (2, 3, 3)
        none = data.sel(farm_idx=1, type_idx=0, seed=0)
        assert (none.n_turbines.item(), none.key.item(), none.steps.isnull().item()) == (0, "", True)
        assert data.steps.sel(farm_idx=0, type_idx=0, seed=1) == results["farm0_t0_s1"].steps


def test_netcdf_of_the_best(run, results, tmp_path):
    assert leeward_here("export", run, "-o", "best.nc", "--best", cwd=tmp_path).returncode == 0
    with xarray.open_dataset(tmp_path / "best.nc") as data:
        assert data.x_m.dims == ("farm_idx", "type_idx", "turbine")
        for farm, kind in [(0, 0), (0, 1), (1, 0), (1, 1)]:
            one = data.sel(farm_idx=farm, type_idx=kind)
            assert one.aep_gwh == max(r.aep_gwh for r in results.values() if r.key[:2] == (farm, kind))
            assert one.key.item() == f"farm{farm}_t{kind}_s{int(one.seed)}"


def test_geojson(source, results, tmp_path):
    data = json.loads(exported(source, tmp_path, "all.geojson").read_text(encoding="utf-8"))
    assert "crs" not in data
    areas = [feature for feature in data["features"] if feature["geometry"]["type"] == "Polygon"]
    assert [area["properties"]["name"] for area in areas] == ["=cmd|' /C calc'!A0", "Østervig"]
    turbines = [feature for feature in data["features"] if feature["geometry"]["type"] == "Point"]
    assert len(turbines) + 2 == len(data["features"]) == 4 * 4 + 4 * 5 + 2
    to_metres = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:25831", always_xy=True)
    for feature in turbines:
        facts = feature["properties"]
        result = results[facts["key"]]
        place = to_metres.transform(*feature["geometry"]["coordinates"])
        np.testing.assert_allclose(place, result.layout[:, facts["turbine"]], rtol=0, atol=2e-4)
        assert (facts["layout_aep_gwh"], facts["seed"]) == (result.aep_gwh, result.key.seed)
    assert json.loads(exported(source, tmp_path, "all.json", form="geojson").read_text()) == data


def test_filters(source, results):
    def keys(**options):
        return set(map(str, chosen(source[0], Choice(**options))))

    assert keys() == set(results)
    assert keys(farms=[1]) == {key for key in results if key.startswith("farm1_")}
    assert keys(farms=[1], types=[0], seeds=[1]) == {"farm1_t0_s1"}
    assert keys(seeds=[0, 1]) == set(results)
    assert keys(keys=[Key(0, 1, 0), Key(1, 0, 1)]) == {"farm0_t1_s0", "farm1_t0_s1"}
    best = keys(best=True)
    assert len(best) == 4
    for key in best:
        rivals = [one.aep_gwh for name, one in results.items() if name.rpartition("_")[0] == key.rpartition("_")[0]]
        assert results[key].aep_gwh == max(rivals)
    assert keys(best=True, farms=[1]) == {key for key in best if key.startswith("farm1_")}


def test_the_command(run, tmp_path):
    """All filters at once; that of `--best` cannot be seen here."""
    options = ["--key", "farm0_t1_s0", "--key", "1 0 1", "--farm", "1", "--type", "0", "--seed", "1", "--best"]
    done = leeward_here("export", run / "layouts.run", "-o", "some.csv", "--per", "layout", *options, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("written: some.csv, 1 layout, csv, ")
    assert [row["key"] for row in rows_of(tmp_path / "some.csv")] == ["farm1_t0_s1"]


@pytest.mark.parametrize("form", ["windio", "floris"])
def test_yaml_of_one_layout(source, results, tmp_path, form):
    path = exported(source, tmp_path, "one.yaml", keys=[Key(1, 1, 0)], form=form)
    assert path.read_text(encoding="utf-8").startswith("# farm1_t1_s0 of the campaign sample")
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    farm = data["wind_farm"]["layouts"]["coordinates"] if form == "windio" else data["farm"]
    x, y = (farm["x"], farm["y"]) if form == "windio" else (farm["layout_x"], farm["layout_y"])
    np.testing.assert_array_equal([x, y], results["farm1_t1_s0"].layout)
    if form == "windio":
        assert exported(source, tmp_path, "plain.yaml", keys=[Key(1, 1, 0)]).read_bytes() == path.read_bytes()


def test_arrays_of_both_kinds_are_the_same(source, results, tmp_path):
    result = results["farm0_t1_s1"]
    plain = json.loads(exported(source, tmp_path, "one.json", keys=[result.key]).read_text())
    with np.load(exported(source, tmp_path, "one.npz", keys=[result.key])) as file:
        assert set(file) == set(plain)
        for name in file:
            np.testing.assert_array_equal(file[name], np.asarray(plain[name]))
        np.testing.assert_array_equal([file["x_m"], file["y_m"]], result.layout)
        assert file["probability"].shape == (8, 5)
    assert (plain["aep_gwh"], plain["fingerprint"], plain["key"]) == (result.aep_gwh, result.fingerprint, "farm0_t1_s1")


WRONG = [
    (
        ["-o", "all.xlsx"],
        ", ".join(f"{'/'.join(form.endings)} ({form.name})" for form in FORMATS.values()),
    ),
    (["-o", "all"], "has no extension"),
    (["-o", "all.nc", "--format", "csv"], "--format csv needs the extension .csv"),
    (["-o", "one.yaml"], "leeward: 8 layouts selected (farm0_t0_s0, farm0_t0_s1, farm0_t1_s0 and 5 more), but windio"),
    (["-o", "one.npz", "--best"], "4 layouts selected (farm0_t0_s"),
    (["-o", "one.csv", "--farm", "7"], "none of its 8 results matches farm 7; it has farms 0, 1"),
    (["-o", "one.csv", "--key", "farm"], "'farm' is not a key"),
    (["-o", "layouts.run/all.csv"], "only `leeward run` writes"),
    (["-o", "layouts.run/results/all.csv"], "only `leeward run` writes"),
    (["-o", "campaign.yaml", "--key", "0,0,0", "--campaign", "campaign.yaml"], "is also the input"),
    (["-o", "nowhere/all.csv"], "cannot be written"),
    (["-o", "folder.csv"], "is a folder"),
    (["-o", "all.csv", "--campaign", "none.yaml"], "no such file"),
]


@pytest.mark.parametrize(("options", "says"), WRONG)
def test_wrong_use(run, tmp_path, options, says):
    (run / "folder.csv").mkdir(exist_ok=True)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    done = leeward_here("export", *options, cwd=run)
    assert done.returncode == 2, done
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()} == before


def test_the_file_that_is_read_is_not_written(tmp_path):
    path = write_own_file(tmp_path / "layouts.nc", [own_result()])  # HDF5 by another name
    content = path.read_bytes()
    done = leeward_here("export", "layouts.nc", "-o", "./layouts.nc", cwd=tmp_path)
    assert done.returncode == 2
    assert "is also the input" in done.stderr
    assert path.read_bytes() == content


def test_what_is_not_there(run, tmp_path):
    done = leeward_here("export", run / "layouts.run", "-o", "one.csv", "--key", "0,0,9", cwd=tmp_path)
    assert done.returncode == 1
    assert "no result farm0_t0_s9; the nearest: farm0_t0_s" in done.stderr
    done = leeward_here("export", "-o", "one.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "no run directory (layouts.run) and no result file" in done.stderr
    done = leeward_here("export", "none.h5", "-o", "one.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "none.h5: no such file" in done.stderr
    write_own_file(tmp_path / "empty.h5", [])
    done = leeward_here("export", "empty.h5", "-o", "one.csv", cwd=tmp_path)
    assert (done.returncode, "has no results" in done.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["empty.h5"]


@pytest.mark.slow
def test_results_without_a_campaign(tmp_path):
    write_own_file(tmp_path / "layouts.h5", [own_result(), own_result(seed=1)], crs="EPSG:25832")
    done = leeward_here("export", "-o", "all.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert "holds no campaign; names of farms and turbines are left out" in done.stderr
    rows = rows_of(tmp_path / "all.csv")
    assert {(row["farm"], row["hub_height_m"], row["crs"]) for row in rows} == {("", "", "EPSG:25832")}
    assert leeward_here("export", "-o", "all.nc", cwd=tmp_path).returncode == 0
    with xarray.open_dataset(tmp_path / "all.nc") as data:
        assert "farm" not in data.variables
        assert pyproj.CRS.from_wkt(data.crs.attrs["crs_wkt"]).to_epsg() == 25832
    for name in ("all.geojson", "one.yaml", "one.npz"):
        done = leeward_here("export", "-o", name, "--seed", "1", cwd=tmp_path)
        assert done.returncode == 2
        assert "holds no campaign" in done.stderr
        assert "--campaign" in done.stderr
        assert not (tmp_path / name).exists()


def test_a_campaign_that_is_not_that_of_the_results(run, tmp_path):
    def export(name, *options, **changes):
        (tmp_path / "other.yaml").write_text(yaml.safe_dump(campaign_data(**changes)))
        return leeward_here(
            "export", run / "layouts.run", "-o", name, "--campaign", "other.yaml", *options, cwd=tmp_path
        )

    done = export("one.yaml", "--key", "0,0,0", spacing_diameters=2.5)
    assert done.returncode == 2
    assert "was not made with the settings" in done.stderr
    done = export("all.geojson", crs=None)
    assert done.returncode == 2
    assert "has no coordinate system" in done.stderr
    done = export("all.geojson", farms=campaign_data()["farms"][:1])
    assert done.returncode == 2
    assert "layouts of farm 1, which is not in the campaign sample" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["other.yaml"]


@pytest.mark.slow
def test_damaged_results_are_left_out(run, tmp_path):
    shutil.copy(run / "layouts.h5", tmp_path / "layouts.h5")
    with h5py.File(tmp_path / "layouts.h5", "r+", libver="v110") as file:
        file["farm0_t0_s1/aep"][()] = 1e6
    done = leeward_here("export", "layouts.h5", "-o", "all.csv", "--per", "layout", cwd=tmp_path)
    assert done.returncode == 3
    assert "1 damaged result or file left out; leeward check layouts.h5 lists the reasons" in done.stderr
    assert "7 layouts" in done.stdout
    assert "farm0_t0_s1" not in [row["key"] for row in rows_of(tmp_path / "all.csv")]
    done = leeward_here("export", "layouts.h5", "-o", "some.csv", "--farm", "1", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = leeward_here("export", "layouts.h5", "-o", "one.csv", "--key", "0,0,1", cwd=tmp_path)
    assert done.returncode == 1
    assert "farm0_t0_s1 is damaged" in done.stderr


def test_results_that_only_the_merged_file_has(run, tmp_path):
    for name in ("layouts.h5", "layouts.h5.index"):
        shutil.copy(run / name, tmp_path / name)
    shutil.copytree(run / "layouts.run", tmp_path / "layouts.run")
    assert leeward_here("clean", "layouts.run", "--merged", cwd=tmp_path).returncode == 0
    assert not list(tmp_path.glob("layouts.run/results/*/*.h5"))
    done = leeward_here("export", "layouts.run", "-o", "all.csv", "--per", "layout", cwd=tmp_path)
    assert (done.returncode, len(rows_of(tmp_path / "all.csv"))) == (0, 8)


def test_a_file_appears_whole_or_not_at_all(run, tmp_path, monkeypatch):
    old = tmp_path / "all.csv"
    old.write_text("what was there before")
    layouts = open_layouts(run / "layouts.h5")
    good = layouts.results

    def breaking():
        yield next(good())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(layouts, "results", breaking)
    with pytest.raises(StorageError, match="No space left on device"):
        export_layouts(layouts, old)
    assert old.read_text() == "what was there before"
    assert [path.name for path in tmp_path.iterdir()] == ["all.csv"]


def test_what_a_killed_export_left_is_removed(source, tmp_path):
    for name in (left_behind("one.csv"), left_behind("other.csv")):
        (tmp_path / name).write_text("half of a table")
    exported(source, tmp_path, "one.csv", keys=[Key(0, 0, 0)])
    assert sorted(path.name for path in tmp_path.iterdir()) == [left_behind("other.csv"), "one.csv"]


def test_a_full_disk(run, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write, "sync", full)
    for name in ("all.nc", "all.geojson"):
        done = leeward_here("export", run / "layouts.run", "-o", tmp_path / name, cwd=tmp_path)
        assert (done.returncode, "No space left" in done.stderr) == (4, True)
    assert not list(tmp_path.iterdir())


def test_tables_are_written_as_results_are_read(monkeypatch):
    """No more than a piece of the table is held back, however long it is."""
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 100)
    file = bytearray()
    held = []

    class Source:
        attributes = {}  # noqa: RUF012

        def results(self):
            for number in range(60):
                held.append(20 * number - file.count(b"\r\n"))
                yield own_result(seed=number, turbines=20)

    for piece in tables.csv_pieces(Request(FORMATS["csv"], ".csv", Source())):
        file += piece
    assert max(held) <= 100
    assert file.count(b"\r\n") == 20 * 60 + 1


@pytest.mark.parametrize("name", ["two.yaml", "two.npz", "strangers.geojson", "none.parquet"])
def test_requests_are_refused_before_a_file_is_touched(run, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(write, "Temporary", None)
    monkeypatch.setattr(write, "remove_left_overs_of", None)
    campaign = load(campaign_data(farms=campaign_data()["farms"][:1]))
    with open_layouts(run / "layouts.h5") as layouts, pytest.raises(InputError):
        export_layouts(layouts, tmp_path / name, campaign)


def test_a_format_is_a_module_and_an_entry(run, tmp_path, monkeypatch):
    module = SimpleNamespace(pieces=lambda request: [f"{len(request.layouts)} layouts".encode()])
    monkeypatch.setitem(sys.modules, "leeward.export.tiny", module)
    monkeypatch.setitem(FORMATS, "tiny", Format("tiny", (".tiny",), "tiny:pieces"))
    with open_layouts(run / "layouts.h5") as layouts:
        assert export_layouts(layouts, tmp_path / "all.tiny") == 8
    assert (tmp_path / "all.tiny").read_text() == "8 layouts"
    assert {name.value for name in FormatName} == set(FORMATS) - {"tiny"}


def test_from_python(run, tmp_path):
    campaign = load(run / "campaign.yaml")
    with open_layouts(run / "layouts.h5") as layouts:
        assert export_layouts(layouts, tmp_path / "all.geojson", campaign) == 8
        assert export_layouts(layouts.only([Key(1, 0, 0)]), tmp_path / "one.npz", campaign) == 1
        with pytest.raises(InputError, match="no results to export"):
            export_layouts(layouts.only([]), tmp_path / "none.csv", campaign)
        assert len(layouts) == 8
