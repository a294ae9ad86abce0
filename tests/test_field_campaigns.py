"""Campaigns in wind that varies over the site, from commands to results; no task reads the file of the wind again."""

import base64
import csv
import json
import shutil
import subprocess
import sys
import zlib

import numpy as np
import pytest
import xarray
import yaml

import field_cases as cases
from field_cases import EAST, NORTH
from leeward.campaign import load, open_layouts
from leeward.campaign.remarks import wind_remarks
from leeward.wind import Shear, Site, Turbine, WindFarm
from resource_cases import TYPES, X, Y, make_field_campaign
from run_cases import leeward_here, results
from test_export_plants import EXAMPLES, needs_pywake, needs_windio
from test_wasp_grids import free, grd, write_grid

QUICK = {"optimiser": {"recipe": "smart_start"}, "execution": {"engine": "inline"}, "seeds": 1}
BINS = {"wind_directions_deg": [15.0 * i for i in range(24)], "wind_speeds_m_s": [5.0, 8.0, 11.0, 14.0]}
FIELD = cases.with_elevation(cases.weibull_field(X, Y), X, Y)
KEYS = [f"farm{farm}_t{kind}_s0" for farm in range(2) for kind in range(2)]


def made(folder, dataset=None, **changes):
    """Write a campaign and the file of its wind. dataset: replaces the wind."""
    folder.mkdir(exist_ok=True)
    return make_field_campaign(folder, dataset, **{**QUICK, **changes})


def site_with(**keys):
    return {"site": {"file": "wind.nc", **BINS, **keys}}


def ran(folder, *arguments, code=0):
    done = leeward_here(*arguments, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of all four layouts, whose campaign file and wind are gone."""
    folder = tmp_path_factory.mktemp("finished")
    path = made(folder, crs="EPSG:25832")
    ran(folder, "run", "campaign.yaml", "--quiet")
    for each in (path, folder / "wind.nc"):
        each.rename(folder.parent / f"gone-{each.name}")
    return folder


@pytest.fixture
def copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "copy")


# --- commands ---


def test_results_are_those_of_the_library(finished):
    found = results(finished / "layouts.h5")
    assert sorted(found) == KEYS
    with open_layouts(finished / "layouts.h5") as layouts:
        for key, result in layouts.items():
            farm = layouts.campaign.problem(key.farm_idx, key.type_idx).farm
            assert farm.site.field is not None
            assert result.aep_gwh == pytest.approx(farm.aep_gwh(result.x, result.y), rel=1e-13)
            expected = WindFarm(
                Site.from_dataset(FIELD, directions=BINS["wind_directions_deg"], speeds=BINS["wind_speeds_m_s"]),
                layouts.campaign.physics.turbine(key.type_idx),
                neighbours=farm.neighbours,
            )
            assert result.aep_gwh == pytest.approx(expected.aep_gwh(result.x, result.y), rel=1e-13)


def test_the_dry_run_names_the_grid(tmp_path):
    made(tmp_path)
    text = ran(tmp_path, "run", "campaign.yaml", "--dry-run")
    assert "wind: Weibull distributions on a grid of 5 × 4 points × 2 heights: 8 sectors" in text
    assert "on 24 directions × 4 speeds" in text
    assert "warning: wind: " in text  # the file names no coordinate system
    assert "coordinate system" in text
    assert not list(tmp_path.glob("layouts*"))


def test_the_dry_run_reports_an_area_outside(tmp_path):
    made(tmp_path, FIELD.isel(x=slice(4)))
    text = ran(tmp_path, "run", "campaign.yaml", "--dry-run", code=2)
    assert "the area reaches outside the grid of the wind in wind.nc" in text
    assert ": 2000 m to the east" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("name", ["layouts.h5", pytest.param("layouts.run", marks=pytest.mark.slow)])
def test_a_deep_check_needs_no_file_of_the_wind(name, finished):
    assert "No errors." in ran(finished, "check", name, "--deep")


def test_a_deep_check_finds_other_wind(finished, tmp_path):
    """The yields of another field are not those of the results."""
    path = made(tmp_path, FIELD.assign(Weibull_A=1.01 * FIELD["Weibull_A"]), crs="EPSG:25832")
    text = ran(finished, "check", "layouts.h5", "--deep", "--campaign", path, code=3)
    assert "4 of 4 results bad" in text
    assert "farm0_t0_s0" in text


def test_the_frozen_campaign_refers_to_no_file(finished):
    with open_layouts(finished / "layouts.h5") as layouts:
        text = layouts.campaign_text
    data = yaml.safe_load(text)
    assert data["site"] == yaml.safe_load((finished / "layouts.run" / "campaign.yaml").read_text())["site"]
    assert list(data["site"]) == ["field"]
    assert data["site"]["field"]["source"] == "wind.nc"
    assert str(finished) not in text
    assert "file" not in json.dumps(data)


@pytest.mark.slow
def test_merge(copy):
    (copy / "layouts.h5").unlink()
    ran(copy, "merge", "layouts.run", "-o", "merged.h5")
    assert sorted(results(copy / "merged.h5")) == KEYS


def test_more_seeds_without_the_file_of_the_wind(copy):
    """A run of the stored campaign keeps the old results."""
    before, after = results(copy / "layouts.h5"), more_seeds(copy)
    assert len(after) == 8
    for key, result in before.items():
        np.testing.assert_array_equal(result.x, after[key].x)
        assert (result.aep_gwh, result.fingerprint) == (after[key].aep_gwh, after[key].fingerprint)
    assert "No errors." in ran(copy, "check", "layouts.h5", "--deep")


def more_seeds(folder):
    """Run the stored campaign with a second seed, and return all results."""
    shutil.copy(folder / "layouts.run" / "campaign.yaml", folder / "stored.yaml")
    ran(folder, "run", "stored.yaml", "--seeds", "2", "--quiet")
    return results(folder / "layouts.h5")


@pytest.mark.slow
def test_more_seeds_are_those_of_a_new_run(copy):
    after = more_seeds(copy)
    made(copy / "anew", crs="EPSG:25832", seeds=2)
    ran(copy / "anew", "run", "campaign.yaml", "--quiet")
    for key, result in results(copy / "anew" / "layouts.h5").items():
        np.testing.assert_array_equal(result.x, after[key].x)
        assert (result.aep_gwh, result.fingerprint) == (after[key].aep_gwh, after[key].fingerprint)


@pytest.mark.slow
def test_the_same_command_resumes_although_the_file_moved(copy):
    """The path of the file does not count."""
    original = finished_campaign(copy)
    (copy / "winds").mkdir()
    FIELD.to_netcdf(copy / "winds" / "other-name.nc", engine="h5netcdf")
    original["site"]["file"] = "winds/other-name.nc"
    (copy / "campaign.yaml").write_text(yaml.safe_dump(original))
    text = ran(copy, "run", "campaign.yaml")
    assert "4 of 4 layouts done, 0 computed now" in text


def finished_campaign(folder):
    """Return the campaign file of `finished` as data."""
    made(folder / "again", crs="EPSG:25832")
    return yaml.safe_load((folder / "again" / "campaign.yaml").read_text())


def test_results_of_different_fields_never_mix(copy):
    original = finished_campaign(copy)
    (copy / "campaign.yaml").write_text(yaml.safe_dump(original))
    data = FIELD.copy(deep=True)
    data["Weibull_k"].values[4, 3, 1, 7] = np.nextafter(data["Weibull_k"].values[4, 3, 1, 7], 3.0)
    data.to_netcdf(copy / "wind.nc", engine="h5netcdf")
    before = (copy / "layouts.h5").read_bytes()
    text = ran(copy, "run", "campaign.yaml", code=2)
    assert "site.field.values.weibull_k.sha256" in text
    assert (copy / "layouts.h5").read_bytes() == before


@pytest.mark.slow
def test_results_of_different_fields_are_not_merged(copy):
    made(copy, FIELD.assign(Weibull_k=1.01 * FIELD["Weibull_k"]), crs="EPSG:25832")
    ran(copy, "run", "campaign.yaml", "-o", "other.h5", "--quiet")
    names = {entry.fingerprint for name in ("layouts.h5", "other.h5") for entry in results(copy / name).values()}
    assert len(names) == 8
    text = ran(copy, "merge", "layouts.h5", "other.h5", "-o", "both.h5", code=3)
    assert "farm0_t0_s0: different settings (their fingerprints differ), in layouts.h5 and other.h5" in text
    assert not (copy / "both.h5").exists()


def test_show_and_report(finished, tmp_path):
    text = ran(finished, "show", "farm1_t1_s0", "layouts.h5")
    assert "1 east" in text
    assert "wake loss" in text
    ran(finished, "report", "layouts.h5", "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "a grid of 5 × 4 points × 2 heights" in page


def test_exports_of_all_layouts(finished, tmp_path):
    ran(finished, "export", "layouts.h5", "-o", tmp_path / "all.csv")
    rows = list(csv.DictReader((tmp_path / "all.csv").open()))
    found = results(finished / "layouts.h5")
    assert len(rows) == 3 * len(found)
    ran(finished, "export", "layouts.h5", "-o", tmp_path / "all.nc")
    with xarray.open_dataset(tmp_path / "all.nc") as data:
        assert data["aep_gwh"].values.ravel() == pytest.approx([found[key].aep_gwh for key in KEYS], rel=0)


def test_arrays_hold_the_wind_at_each_turbine(finished, tmp_path):
    """The gross yield by hand."""
    ran(finished, "export", "layouts.h5", "--key", KEYS[1], "-o", tmp_path / "one.npz")
    found = np.load(tmp_path / "one.npz")
    for name in ("local_wind_speed_m_s", "local_probability", "local_turbulence_intensity"):
        assert found[name].shape == (4, 24, 4)  # the neighbour is the last turbine
    assert float(found["local_air_density_kg_m3"]) == pytest.approx(1.225)
    names = ("turbine0_wind_speed_m_s", "turbine0_power_mw")
    power = np.interp(found["local_wind_speed_m_s"][:3], *(found[name] for name in names), left=0.0, right=0.0)
    gross = (power * found["local_probability"][:3]).sum() * 8.76
    with open_layouts(finished / "layouts.h5") as layouts:
        farm = layouts.campaign.problem(0, 1).farm
    simulation = farm.simulate(found["x_m"], found["y_m"])
    assert gross == pytest.approx(simulation.gross_aep_gwh.sum(), rel=1e-6)


@pytest.mark.slow
@needs_pywake
@pytest.mark.parametrize("data", [FIELD, FIELD.assign(Air_density=1.1 + 0.0 * FIELD["TI"])], ids=["field", "density"])
def test_the_example_of_arrays_in_pywake(data, tmp_path):
    """It ends with an error if PyWake's AEP differs by more than 1e-9."""
    if "Air_density" in data:
        data = data.assign(Air_density=data["Air_density"] + 0.001 * (data["x"] - EAST) / 1000.0)
    made(tmp_path, data)
    ran(tmp_path, "run", "campaign.yaml", "--quiet")
    ran(tmp_path, "export", "layouts.h5", "--key", KEYS[1], "-o", "one.npz")
    script = EXAMPLES / "01_arrays.py"
    done = subprocess.run(
        [sys.executable, script, "one.npz"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PyWake" in done.stdout


@pytest.mark.slow
def test_a_program_without_fields_gets_no_file(finished, tmp_path):
    output = tmp_path / "plant.yaml"
    text = ran(finished, "export", "layouts.h5", "--key", KEYS[0], "-o", output, "--format", "floris", code=2)
    assert "the wind varies over the site or with height" in text
    assert "export arrays (.npz), or use to_pywake" in text
    assert "Traceback" not in text
    assert not list(tmp_path.iterdir())


@needs_windio
def test_a_windio_plant_has_the_same_yield(finished, tmp_path):
    ran(finished, "export", "layouts.h5", "--key", KEYS[1], "-o", tmp_path / "plant.yaml")
    printed = json.loads(leeward_here("aep", "plant.yaml", "--json", cwd=tmp_path).stdout)
    assert printed["layouts"][0]["aep_gwh"] == pytest.approx(
        results(finished / "layouts.h5")[KEYS[1]].aep_gwh, rel=1e-12
    )


@pytest.mark.slow
@needs_pywake
def test_stored_layouts_in_pywake(finished):
    with open_layouts(finished / "layouts.h5") as layouts:
        for key, result in layouts.items():
            assert layouts.to_pywake(key).aep_gwh() == pytest.approx(result.aep_gwh, rel=1e-9)


# --- fingerprints ---


def fingerprint(folder, dataset=None, **changes):
    return load(made(folder, dataset, **changes)).fingerprint(0, 0)


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    return fingerprint(tmp_path_factory.mktemp("usual"))


ENCODINGS = {
    "compressed": {"encoding": {name: {"zlib": True, "complevel": 9} for name in FIELD.data_vars}},
    "chunked": {"encoding": {"Weibull_A": {"chunksizes": (2, 2, 1, 3)}, "TI": {"chunksizes": (1, 1, 1, 1)}}},
    "netcdf 3": {"engine": "scipy", "format": "NETCDF3_64BIT"},
    "unlimited": {"unlimited_dims": ["x"]},
    "big-endian": {"encoding": {"Weibull_A": {"dtype": ">f8"}, "x": {"dtype": ">f8"}}},
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_the_encoding_of_the_file_does_not_count(name, tmp_path, usual):
    path = made(tmp_path)
    (tmp_path / "wind.nc").unlink()
    FIELD.to_netcdf(tmp_path / "wind.nc", **{"engine": "h5netcdf", **ENCODINGS[name]})
    assert load(path).fingerprint(0, 0) == usual


def test_the_order_of_dimensions_and_attributes_do_not_count(tmp_path, usual):
    turned = FIELD.transpose("wd", "h", "y", "x").assign_attrs(title="hills", history="made by hand")
    assert fingerprint(tmp_path, turned) == usual


def test_path_and_name_of_the_file_do_not_count(tmp_path, usual):
    path = made(tmp_path)
    (tmp_path / "a b").mkdir()
    (tmp_path / "wind.nc").rename(tmp_path / "a b" / "über.nc")
    for file in ("a b/über.nc", str(tmp_path / "a b" / "über.nc")):
        data = yaml.safe_load(path.read_text())
        data["site"]["file"] = file
        path.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
        assert load(path).fingerprint(0, 0) == usual


def test_freezing_does_not_count(tmp_path, usual):
    path = made(tmp_path)
    (tmp_path / "frozen.yaml").write_text(load(path).frozen_text(), encoding="utf-8")
    (tmp_path / "wind.nc").unlink()
    again = load(tmp_path / "frozen.yaml")
    assert again.fingerprint(0, 0) == usual
    assert again.frozen_text() == (tmp_path / "frozen.yaml").read_text(encoding="utf-8")


def test_another_compression_of_the_packed_values_does_not_count(tmp_path, usual):
    """The compressed bytes may differ between versions of zlib."""
    path = made(tmp_path)
    data = yaml.safe_load(load(path).frozen_text())
    for packed in data["site"]["field"]["values"].values():
        raw = zlib.decompress(base64.b64decode(packed["data"]))
        packed["data"] = base64.b64encode(zlib.compress(raw, 1)).decode()
    path.write_text(yaml.safe_dump(data))
    assert load(path).fingerprint(0, 0) == usual


@pytest.mark.parametrize("name", [*FIELD.data_vars, "x", "y", "h"])
def test_the_last_bit_of_a_value_counts(name, tmp_path, usual):
    """That of the terrain counts only where distances depend on it."""
    values = FIELD[name].values.copy()
    values[(-1,) * values.ndim] = np.nextafter(values[(-1,) * values.ndim], np.inf)
    data = (
        FIELD.assign_coords({name: values})
        if name in FIELD.coords
        else FIELD.assign({name: (FIELD[name].dims, values)})
    )
    assert (fingerprint(tmp_path, data) != usual) is (name != "Elevation")
    elevated = [fingerprint(tmp_path, each, **site_with(distances="elevated")) for each in (data, FIELD)]
    assert elevated[0] != elevated[1]


@pytest.mark.parametrize(
    "keys",
    [
        {"interpolation": "linear"},
        {"turbulence_intensity": 0.08},
        {"distances": "elevated"},
        {"distances": "terrain_following"},
        {"shear": {"exponent": 0.1, "reference_height_m": 80}},
        {"wind_speeds_m_s": [5.0, 8.0, 11.0]},
    ],
    ids=lambda keys: "-".join(map(str, next(iter(keys.items()))))[:40],
)
def test_the_keys_of_the_site_count(keys, tmp_path, usual):
    assert fingerprint(tmp_path, **site_with(**keys)) != usual


def test_what_changes_no_number_does_not_count(tmp_path, usual):
    turned = FIELD.assign(Turning=("wd", np.linspace(-5.0, 5.0, FIELD.sizes["wd"])))
    assert fingerprint(tmp_path, turned) == usual
    assert fingerprint(tmp_path, FIELD.drop_vars("Elevation")) == usual
    assert fingerprint(tmp_path, **site_with(extrapolate=True)) == usual


def test_each_exponent_of_the_shear_counts(tmp_path):
    exponents = [[0.1] * 8, [0.1] * 7 + [np.nextafter(0.1, 1.0).item()]]
    found = [
        fingerprint(tmp_path, **site_with(shear={"exponent": each, "reference_height_m": 80})) for each in exponents
    ]
    assert found[0] != found[1]


# --- shear ---

WEIBULL = {
    "sector_frequency": [0.2, 0.3, 0.4, 0.1],
    "weibull_a_m_s": [9.0, 10.0, 11.0, 8.0],
    "weibull_k": [2.0, 2.1, 2.2, 1.9],
    "turbulence_intensity": 0.08,
    **BINS,
}
TABLE = {
    "wind_directions_deg": [0.0, 120.0, 240.0],
    "wind_speeds_m_s": [8.0, 12.0],
    "probability": [[0.1, 0.2], [0.1, 0.1], [0.3, 0.2]],
    "turbulence_intensity": 0.07,
    "kind": "exact",
}
SERIES = {
    "wind_direction_deg": [10.0, 80.0, 200.0, 310.0, 311.0],
    "wind_speed_m_s": [6.0, 9.0, 12.0, 8.0, 7.5],
    "turbulence_intensity": [0.06, 0.07, 0.08, 0.09, 0.1],
    "weight": [0.1, 0.2, 0.3, 0.3, 0.1],
}
FORMS = {
    "built_in": {"built_in": "danish-energy-island"},
    "weibull": {"weibull": WEIBULL},
    "table": {"table": TABLE},
    "time_series": {"time_series": SERIES},
    "file": site_with()["site"],
}
POWER = {"exponent": 0.2, "reference_height_m": 100.0}
LOGARITHMIC = {"roughness_length_m": [0.03, 0.5], "reference_height_m": 100.0}


@pytest.mark.parametrize("law", [POWER, LOGARITHMIC], ids=["power", "logarithmic"])
@pytest.mark.parametrize("form", FORMS)
def test_shear_beside_every_form_of_wind(form, law, tmp_path):
    """Turbines whose hub is at the reference height have the wind of the form; higher ones have more."""
    data = FIELD.isel(h=0, drop=True)
    plain, sheared = (
        load(made(tmp_path / name, data, site=FORMS[form] | keys))
        for name, keys in (("plain", {}), ("sheared", {"shear": law}))
    )
    x, y = EAST + np.array([1000.0, 2500.0, 4000.0]), NORTH + np.array([1000.0, 1500.0, 2000.0])
    aep = [[c.problem(0, kind).farm.aep_gwh(x, y) for kind in range(2)] for c in (plain, sheared)]
    assert [TYPES[kind]["hub_height_m"] for kind in range(2)] == [100, 140]
    assert aep[0][0] == pytest.approx(aep[0][1], rel=0.02)  # wakes differ, because the neighbour's hub is at 100 m
    assert aep[1][1] > 1.03 * aep[1][0]
    own = [c.problem(0, 0).farm.simulate(x, y).gross_aep_gwh for c in (plain, sheared)]
    np.testing.assert_allclose(*own, rtol=1e-12)
    again = load_frozen(sheared, tmp_path)
    assert [again.problem(0, kind).farm.aep_gwh(x, y) for kind in range(2)] == aep[1]
    assert again.fingerprint(0, 1) == sheared.fingerprint(0, 1) != plain.fingerprint(0, 1)


def test_a_table_with_shear_keeps_its_gap(tmp_path):
    """Bins that cover a part of the circle bring a warning, with shear too."""
    part = {"wind_directions_deg": [0.0, 10.0, 20.0], "probability": [[0.1, 0.2]] * 3, "kind": "bins"}
    site = {"table": {**TABLE, **part}, "shear": POWER}
    campaign = load(made(tmp_path, site=site))
    assert campaign.physics.site.covered_degrees == pytest.approx(30.0)
    assert any("cover 30 of 360 degrees" in line for line in wind_remarks(campaign))
    restored = Site.from_settings(campaign.physics.site.settings())
    assert (restored.covered_degrees, restored.describe()) == (30.0, campaign.physics.site.describe())
    assert restored.describe().startswith("a list of conditions that is the same everywhere, with shear")


def load_frozen(campaign, folder):
    """Return the campaign from the text that a run stores."""
    path = folder / "frozen.yaml"
    path.write_text(campaign.frozen_text(), encoding="utf-8")
    return load(path)


@pytest.mark.slow
def test_a_run_with_shear(tmp_path):
    made(tmp_path, site={"time_series": SERIES, "shear": POWER})
    text = ran(tmp_path, "run", "campaign.yaml", "--dry-run")
    assert "wind: a list of conditions" in text
    assert "with shear" in text
    ran(tmp_path, "run", "campaign.yaml", "--quiet")
    found = results(tmp_path / "layouts.h5")
    for farm in range(2):
        low, high = (found[f"farm{farm}_t{kind}_s0"].aep_gwh for kind in range(2))
        assert high > 1.03 * low
    (tmp_path / "wind.nc").unlink()
    assert "No errors." in ran(tmp_path, "check", "layouts.h5", "--deep")


# --- other kinds of wind, and other files ---


SECTOR_FREQUENCY, SHAPE = [0.4, 0.35, 0.25], [2.05, 2.1, 2.15]


def scales():
    """Return the Weibull scale of three sectors at each point, with one digit after the comma; shape (x, y, sector)."""
    i, j = np.arange(len(X))[:, None], np.arange(len(Y))
    return np.stack(np.broadcast_arrays(8.0 + 0.3 * i, 9.0 + 0.4 * j, 10.0 + 0.1 * (i + j)), axis=2).round(1)


def resource():
    """Return wind at 80 m that files of WAsP can hold."""
    by_sector = {"Sector_frequency": ("wd", SECTOR_FREQUENCY), "Weibull_k": ("wd", SHAPE)}
    varied = {"Weibull_A": (("x", "y", "h", "wd"), scales()[:, :, None])}
    return xarray.Dataset({**by_sector, **varied, "TI": 0.1}, {"x": X, "y": Y, "h": [80.0], "wd": [0.0, 120.0, 240.0]})


def write_resource(folder, ending):
    """Write `resource` as a file or folder of WAsP, and return its name."""
    if ending == "grd":
        (folder / "grids").mkdir()
        limits = (X[0], X[-1], Y[0], Y[-1])
        for sector in range(3):
            for quantity, values in (
                ("Sector frequency", np.full((len(X), len(Y)), SECTOR_FREQUENCY[sector])),
                ("Weibull-A", scales()[:, :, sector]),
                ("Weibull-k", np.full((len(X), len(Y)), SHAPE[sector])),
            ):
                write_grid(grd(folder / "grids", sector + 1, 80, quantity), values, limits)
        return "grids"
    lines = [f"{len(X)} {len(Y)} {X[0]:.0f} {Y[0]:.0f} 4000"] if ending == "wrg" else []
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            row = [int(x), int(y), 10 * i, 80, 8.5, 2.06, 412, 3]
            for frequency, scale, shape in zip(SECTOR_FREQUENCY, scales()[i, j], SHAPE, strict=True):
                row += [round(1000 * frequency), round(10 * scale), round(100 * shape)]
            lines.append(free("GridPoint", row))
    (folder / f"wind.{ending}").write_text("\n".join([*lines, ""]))
    return f"wind.{ending}"


@pytest.mark.parametrize("ending", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("wrg", "rsf")), "grd"])
def test_files_of_wasp(ending, tmp_path):
    """As sites and in a run, which needs them no more at its end."""
    name = write_resource(tmp_path, ending)
    shear = {"exponent": 0.15, "reference_height_m": 80.0}
    made(tmp_path, site={"file": name, **BINS, "turbulence_intensity": 0.1, "shear": shear}, turbines=TYPES[:1])
    bins = {"directions": BINS["wind_directions_deg"], "speeds": BINS["wind_speeds_m_s"]}
    options = {**bins, "shear": Shear.power(0.15, 80.0)}
    turbine = Turbine.generic(5, 130, 100)
    x, y = EAST + np.array([1000.0, 2500.0, 9000.0]), NORTH + np.array([1000.0, 1500.0, 9000.0])
    read = WindFarm(Site.from_file(tmp_path / name, turbulence_intensity=0.1, **options), turbine)
    data = cases.with_local_bins(resource()) if ending == "grd" else resource()
    expected = WindFarm(Site.from_dataset(data, **options), turbine)
    assert read.aep_gwh(x, y) == pytest.approx(expected.aep_gwh(x, y), rel=1e-13)
    ran(tmp_path, "run", "campaign.yaml", "--quiet")
    path = tmp_path / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert len(results(tmp_path / "layouts.h5")) == 2
    assert "No errors." in ran(tmp_path, "check", "layouts.h5", "--deep")


OTHERS = {
    "table": (cases.table_field(X, Y), ("wind_directions_deg", "interpolation"), "a table on a grid of 5 × 4 points"),
    "series": (cases.series_field(X, Y), ("interpolation",), "a time series on a grid of 5 × 4 points: 150 steps"),
    "elevated": (FIELD, (*BINS, "distances"), "Weibull distributions on a grid"),
    "terrain following": (FIELD, (*BINS, "distances"), "Weibull distributions on a grid"),
    "local bins": (cases.with_local_bins(cases.with_speed_up(cases.WEIBULL, X, Y)), BINS, "Weibull distributions"),
}
KEYS_OF_OTHERS = {**BINS, "interpolation": "linear"}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_every_kind_of_field_in_a_run(name, tmp_path):
    """With a recipe that refines. The results pass a deep check without the file."""
    data, keys, says = OTHERS[name]
    values = {**KEYS_OF_OTHERS, "distances": name.replace(" ", "_")}
    optimiser = {"recipe": "smart_start+refine", "effort": "fast", "work": 200_000}
    site = {"file": "wind.nc", **{key: values[key] for key in keys}}
    made(tmp_path, data, site=site, turbines=TYPES[:1], optimiser=optimiser)
    assert says in ran(tmp_path, "run", "campaign.yaml", "--dry-run")
    ran(tmp_path, "run", "campaign.yaml", "--quiet")
    (tmp_path / "wind.nc").unlink()
    assert "No errors." in ran(tmp_path, "check", "layouts.h5", "--deep")
    ran(tmp_path, "report", "layouts.h5", "-o", "report.html")
    ran(tmp_path, "export", "layouts.h5", "--key", "farm0_t0_s0", "-o", "one.npz")


# --- one layout ---


def write_layout(path):
    x, y = EAST + np.array([1000.0, 2500.0, 9000.0]), NORTH + np.array([1000.0, 1500.0, 9000.0])
    rows = [f"{a!r},{b!r}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join(["x_m,y_m", *rows, ""]))
    return x, y


GENERIC = ("--rated-power-mw", 5, "--rotor-diameter-m", 130, "--hub-height-m", 100)


def test_the_aep_of_a_layout(tmp_path):
    FIELD.to_netcdf(tmp_path / "field.nc", engine="h5netcdf")
    x, y = write_layout(tmp_path / "layout.csv")
    text = ran(tmp_path, "aep", "layout.csv", "--site", "field.nc", *GENERIC, "--json")
    (found,) = json.loads(text)["layouts"] if "layouts" in json.loads(text) else [json.loads(text)]
    expected = WindFarm(Site.from_dataset(FIELD), Turbine.generic(5, 130, 100)).simulate(x, y)
    assert found["aep_gwh"] == pytest.approx(expected.total_aep_gwh, rel=1e-12)
    FIELD.isel(x=slice(2)).to_netcdf(tmp_path / "small.nc", engine="h5netcdf")
    text = ran(tmp_path, "aep", "layout.csv", "--site", "small.nc", *GENERIC, code=2)
    assert "turbine 2 at (709000, 6249000) is 5000 m outside the grid of the wind in" in text
    text = ran(tmp_path, "aep", "layout.csv", "--site", "field.nc", *GENERIC[:-1], 70, code=2)
    assert "has its hub at 70 m" in text


def write_area(path):
    left, low, side = EAST + 500.0, NORTH + 500.0, 4000.0
    corners = [[left, low], [left + side, low], [left + side, low + side], [left, low + side], [left, low]]
    geometry = {"type": "Polygon", "coordinates": [corners]}
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}
    feature = {"type": "Feature", "properties": {}, "geometry": geometry}
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": [feature]}))


def test_the_wind_of_an_option_is_in_another_coordinate_system(tmp_path):
    FIELD.assign_attrs(crs="EPSG:25833").to_netcdf(tmp_path / "field.nc", engine="h5netcdf")
    write_area(tmp_path / "area.geojson")
    (tmp_path / "layout.csv").write_text(f"x_m,y_m,crs\n{EAST + 2000},{NORTH + 2000},EPSG:25832\n")
    wind = ("--site", "field.nc", *GENERIC)
    for command in (("aep", "layout.csv"), ("optimise", "--area", "area.geojson", "--turbines", 4, "-o", "no.csv")):
        text = ran(tmp_path, *command, *wind, code=2)
        assert "the wind is in ETRS89 / UTM zone 33N, but the areas or layouts are in EPSG:25832" in text
    assert not (tmp_path / "no.csv").exists()
    FIELD.assign_attrs(crs="EPSG:25832").to_netcdf(tmp_path / "field.nc", engine="h5netcdf")
    ran(tmp_path, "aep", "layout.csv", *wind)


def test_the_best_layout(tmp_path):
    FIELD.to_netcdf(tmp_path / "field.nc", engine="h5netcdf")
    write_area(tmp_path / "area.geojson")
    options = ("--area", "area.geojson", "--turbines", 4, "--spacing-m", 500, "--work", 200_000)
    ran(tmp_path, "optimise", *options, "--site", "field.nc", *GENERIC, "-o", "best.csv")
    text = ran(tmp_path, "aep", "best.csv", "--site", "field.nc", *GENERIC)
    rows = list(csv.DictReader((tmp_path / "best.csv").open()))
    x, y = (np.array([float(row[name]) for row in rows]) for name in ("x_m", "y_m"))
    aep = WindFarm(Site.from_dataset(FIELD), Turbine.generic(5, 130, 100)).aep_gwh(x, y)
    assert f"{aep:.2f}"[:-1] in text
    text = ran(tmp_path, "optimise", *options, "--site", "field.nc", *GENERIC[:-1], 70, "-o", "no.csv", code=2)
    assert "has its hub at 70 m" in text
    assert not (tmp_path / "no.csv").exists()
