"""Layouts from CSV files: what belongs together, what is refused, and what `leeward aep` and `optimise` make of it."""

import csv
import dataclasses
import json
import shutil

import numpy as np
import pytest
import yaml

from export_cases import LEFT, LOW, campaign_data, make_run
from foreign_files import own_result, write_own_file
from leeward.campaign import load
from leeward.errors import InputError
from leeward.formats.layout_table import read_layouts
from run_cases import leeward_here

NEIGHBOURS = [{"x_m": [LEFT + 6000.0, LEFT + 6000.0], "y_m": [LOW + 1000.0, LOW + 3000.0], "turbine": 1}]
CURVE = "wind_speed_m_s,power_mw,thrust_coefficient\n3,0,0.8\n8,3,0.8\n12,8,0.7\n25,8,0.1\n"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A folder with eight layouts of two farms and two types beside neighbours, and the table of their turbines."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "campaign.yaml").write_text(yaml.safe_dump(campaign_data(neighbours=NEIGHBOURS)))
    campaign = load(folder / "campaign.yaml")
    results = [result_of(campaign, key) for key in campaign.tasks()]
    write_own_file(folder / "layouts.h5", results, campaign=campaign.frozen_text())
    assert leeward_here("export", "layouts.h5", "-o", "all.csv", cwd=folder).returncode == 0
    return folder


def result_of(campaign, key):
    """A layout whose turbines stand where chance puts them, with its AEP."""
    left, low, right, high = campaign.physics.area(key.farm_idx).bounds
    places = np.random.default_rng(key).uniform(0, 1, (2, campaign.physics.n_turbines(*key[:2])))
    layout = np.array([left + (right - left) * places[0], low + (high - low) * places[1]])
    aep, _, _ = campaign.recompute(key, *layout)
    return dataclasses.replace(
        own_result(*key), layout=layout, aep_gwh=aep, rotor_diameter_m=campaign.physics.rotor_diameter_m(key.type_idx)
    )


def stored_aeps(folder):
    with (folder / "all.csv").open(newline="", encoding="utf-8") as file:
        return {row["key"]: float(row["layout_aep_gwh"]) for row in csv.DictReader(file)}


def aep(folder, *arguments):
    done = leeward_here("aep", *arguments, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return {each["layout"]: each for each in json.loads(done.stdout)["layouts"]}, done.stderr


@pytest.mark.parametrize("campaign", ["campaign.yaml", "layouts.h5"])
def test_each_layout_has_the_stored_aep(ran, campaign):
    found, said = aep(ran, "all.csv", "--campaign", campaign)
    assert said == ""
    stored = stored_aeps(ran)
    assert len(stored) == 8
    assert {name: each["aep_gwh"] for name, each in found.items()} == pytest.approx(stored, rel=1e-9, abs=0)
    one = found["farm1_t1_s0"]
    assert (one["n_turbines"], one["installed_mw"], one["wake_model"]) == (5, 75.0, "nygaard_2022")
    assert one["capacity_factor"] == pytest.approx(one["aep_gwh"] / 75 / 8.76)
    assert 0 < one["wake_loss"] < 0.3


@pytest.mark.slow
def test_the_layouts_of_a_run_have_the_stored_aep(tmp_path):
    make_run(tmp_path, neighbours=NEIGHBOURS, wake_model="jensen")
    assert leeward_here("export", "-o", "all.csv", cwd=tmp_path).returncode == 0
    found, _ = aep(tmp_path, "all.csv", "--campaign", "layouts.run")
    assert {name: each["aep_gwh"] for name, each in found.items()} == pytest.approx(stored_aeps(tmp_path), rel=1e-9)
    assert {each["wake_model"] for each in found.values()} == {"jensen"}


def test_a_line_for_each_layout(ran, tmp_path):
    done = leeward_here("aep", "all.csv", "--campaign", "campaign.yaml", "--csv", tmp_path / "a.csv", cwd=ran)
    assert done.returncode == 0, done.stderr
    title, header, *lines = done.stdout.splitlines()
    assert "8 layouts" in title
    assert header.split() == ["layout", "turbine", "turbines", "MW", "AEP", "GWh", "capacity", "factor", "wake", "loss"]
    aeps = stored_aeps(ran)
    for line, (key, stored) in zip(lines, aeps.items(), strict=False):
        assert line.split()[0] == key
        assert f"{stored:.2f}" in line
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = {row["layout"]: float(row["aep_gwh"]) for row in csv.DictReader(file)}
    assert rows == pytest.approx(aeps, rel=1e-9)


def test_a_site_overrides_that_of_the_campaign(ran, site_file):
    stored = stored_aeps(ran)
    found, said = aep(ran, "all.csv", "--campaign", "campaign.yaml", "--site", site_file)
    assert all(found[key]["aep_gwh"] > 1.3 * stored[key] for key in stored)
    assert "the file states a different AEP for 8 of 8 layouts" in said


@pytest.mark.slow
def test_a_wake_model_overrides_that_of_the_campaign(ran):
    stored = stored_aeps(ran)
    found, _ = aep(ran, "all.csv", "--campaign", "campaign.yaml", "--wake-model", "no_wake")
    assert all(found[key]["aep_gwh"] > stored[key] for key in stored)
    assert {each["wake_model"] for each in found.values()} == {"no_wake"}


def part(folder, tmp_path, *keys, header=True, **changes):
    """Write a table of some layouts, with some cells of all of its rows changed; None removes a column."""
    with (folder / "all.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["key"] in keys]
    rows = [{name: cell for name, cell in {**row, **changes}.items() if cell is not None} for row in rows]
    with (tmp_path / "part.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return tmp_path / "part.csv"


def test_a_turbine_of_a_file(ran, tmp_path):
    """The file has only the curves; the table of the layout must not say that it has other turbines."""
    (tmp_path / "curve.csv").write_text(CURVE)
    path = part(ran, tmp_path, "farm0_t0_s0", "farm0_t0_s1", rated_power_mw="8")
    lengths = ["--rotor-diameter-m", "195", "--hub-height-m", "121"]
    found, _ = aep(tmp_path, path, "--turbine", "curve.csv", *lengths, "--campaign", ran / "campaign.yaml")
    assert [each["installed_mw"] for each in found.values()] == [32.0, 32.0]
    assert {each["turbine_type"] for each in found.values()} == {"generic 10 MW"}  # as the table has it
    for options, said in (
        (lengths[:2], "give --rotor-diameter-m and --hub-height-m too"),
        ([*lengths, "--rated-power-mw", "8"], "give one or the other, not both"),
        (["--rotor-diameter-m", "200", "--hub-height-m", "121"], "rotor_diameter_m of farm0_t0_s0 is 195"),
        (["--rotor-diameter-m", "-1", "--hub-height-m", "121"], "rotor_diameter_m is -1"),
    ):
        done = leeward_here("aep", path, "--turbine", "curve.csv", *options, cwd=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert said in done.stderr


@pytest.mark.parametrize(
    ("keys", "changes", "options", "said"),
    [
        (["farm0_t0_s0", "farm0_t1_s0"], {}, [], "layouts of the turbine types 0, 1, but only one turbine is given"),
        (["farm0_t0_s0"], {}, [], "hub_height_m"),  # the default turbine is another one
        (["farm0_t0_s0"], {"key": None, "type_idx": "7"}, ["C"], "is of type 7, but sample has the types 0 'gen"),
        (["farm0_t0_s0"], {}, ["C", "--type", "1"], "farm0_t0_s0 is of type 0, but --type is 1"),
        (["farm0_t0_s0"], {"crs": "EPSG:25832"}, ["C"], "is in EPSG:25832, but the campaign is in EPSG:25831"),
        (["farm0_t0_s0"], {}, ["C", "--rated-power-mw", "10"], "give one or the other"),
        (["farm0_t0_s0"], {}, ["--type", "0"], "without --campaign; give both"),
        (["farm0_t0_s0"], {"key": None, "type_idx": None, "turbine_type": "?"}, ["C"], "no type has the name '?'"),
        (["farm0_t0_s0"], {"key": "", "type_idx": "", "turbine_type": ""}, ["C"], "choose one with --type: 0"),
        (["farm0_t0_s0"], {"rotor_diameter_m": "200"}, ["C"], "rotor_diameter_m of farm0_t0_s0 is 200, but that of"),
    ],
)
def test_what_is_ambiguous_is_refused(ran, tmp_path, keys, changes, options, said):
    path = part(ran, tmp_path, *keys, **changes)
    options = [
        word for option in options for word in (["--campaign", ran / "campaign.yaml"] if option == "C" else [option])
    ]
    if said == "hub_height_m":
        options, said = ["--rotor-diameter-m", "195"], "hub_height_m of farm0_t0_s0 is 121, but that of the turbine"
    done = leeward_here("aep", path, *options, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert said in done.stderr


def test_types_by_name(ran, tmp_path):
    stored = stored_aeps(ran)["farm0_t1_s0"]
    told = part(ran, tmp_path, "farm0_t1_s0", key=None, type_idx=None)
    found, _ = aep(tmp_path, told, "--campaign", ran / "campaign.yaml")
    plain = part(ran, tmp_path, "farm0_t1_s0", key=None, type_idx=None, turbine_type=None, farm=None, farm_idx=None)
    asked, _ = aep(tmp_path, plain, "--campaign", ran / "campaign.yaml", "--type", "generic 15 MW")
    for each in (*found.values(), *asked.values()):
        assert each["aep_gwh"] == pytest.approx(stored, rel=1e-9)


# --- which rows belong together --------------------------------------------------------------------------------------


def read(tmp_path, text):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    return read_layouts(tmp_path / "a.csv")


def test_columns_tell_layouts_apart(tmp_path):
    mixed = read(tmp_path, "turbine,seed,x_m,y_m\n0,1,10,20\n0,0,11,21\n1,1,12,22\n\n1,0.0,13,23\n")
    assert [(each.name, each.seed, each.x, each.y) for each in mixed] == [
        ("seed 1", 1, [10.0, 12.0], [20.0, 22.0]),
        ("seed 0", 0, [11.0, 13.0], [21.0, 23.0]),
    ]
    by_key = read(tmp_path, "\ufeffkey, x_m,y_m,farm\nfarm3_t5_s7,1,2,'=x\nmine,3,4,y\n")
    assert [(each.name, each.farm_idx, each.type_idx, each.seed) for each in by_key] == [
        ("farm3_t5_s7", 3, 5, 7),
        ("mine", None, None, None),
    ]
    plain = read(tmp_path, "name,x_m,y_m,key\na,0,0,\nb,1000,0,\n")  # as today: one farm
    assert [(each.name, each.x) for each in plain] == [("", [0.0, 1000.0])]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("turbine,x_m,y_m\n0,1,2\n1,3,4\n0,5,6\n", r"lines 2 and 4: turbine 0 twice in one layout; several layouts in"),
        ("seed,turbine,x_m,y_m\n0,0,1,2\n0,0,3,4\n", "lines 2 and 3: turbine 0 twice"),
        ("x_m,y_m,rotor_diameter_m\n1,2,195\n3,4,240\n", "rotor_diameter_m is 195 and 240 in one layout"),
        ("x_m,y_m,layout_aep_gwh\n1,2,195\n3,4,\n", "layout_aep_gwh is 195 and empty in one layout"),
        ("key,x_m,y_m\nfarm0_t0_s0,1,2\n,3,4\n", "line 3: key is empty, but other lines have a value"),
        ("key,farm_idx,x_m,y_m\nfarm0_t0_s0,1,1,2\n", "line 2: key is farm0_t0_s0 but farm_idx is 1"),
        ("key,seed,x_m,y_m\na,0,1,2\na,1,3,4\n", "lines 2 and 3: key a has two values of seed, 0 and 1"),
        (
            "key,farm_idx,type_idx,seed,x_m,y_m\na,0,0,0,1,2\nb,0,0,0,3,4\n",
            "farm_idx 0, type_idx 0, seed 0 has two values of key, 'a' and 'b'",
        ),
        ("farm_idx,farm,x_m,y_m\n0,a,1,2\n0,b,3,4\n", "farm_idx 0 has two values of farm, 'a' and 'b'"),
        ("seed,x_m,y_m\n0.5,1,2\n", "line 2: seed is '0.5'; expected a whole number, 0 or more"),
        ("x_m,y_m,x_m\n1,2,3\n", "2 columns are called x_m"),
        ("key,n_turbines,aep_gwh\nfarm0_t0_s0,3,4\n", "it has a row per layout: export it with --per turbine"),
    ],
)
def test_tables_that_contradict_themselves(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        read(tmp_path, text)


def test_two_layouts_without_any_column_are_noted(tmp_path):
    (tmp_path / "a.csv").write_text("x_m,y_m\n0,0\n5000,0\n10,10\n5010,0\n")
    done = leeward_here("aep", "a.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert "turbines are closer than a rotor diameter; if the file holds several layouts" in done.stderr
    (tmp_path / "a.csv").write_text("x_m,y_m\n0,0\n5000,0\n100,1000\n")
    assert leeward_here("aep", "a.csv", cwd=tmp_path).stderr == ""


# --- optimise --------------------------------------------------------------------------------------------------------


def optimise(folder, *arguments):
    return leeward_here("optimise", *arguments, "--recipe", "start", "--effort", "fast", cwd=folder)


def test_optimise_starts_from_a_layout_of_a_campaign(ran, tmp_path):
    """Farm, turbine, wind, wakes and neighbours are those of the layout's campaign."""
    shutil.copy(ran / "all.csv", tmp_path / "all.csv")
    known = ["--campaign", ran / "campaign.yaml", "--start", "all.csv"]
    done = optimise(tmp_path, *known, "--key", "Østervig/generic 15 MW/1", "-o", "better.csv")
    assert done.returncode == 0, done.stderr
    assert f"{stored_aeps(ran)['farm1_t1_s1']:.2f}  GWh" in done.stdout
    assert done.stdout.startswith("sample, Østervig, 16.0 km2\n")
    with (tmp_path / "better.csv").open() as file:
        written = [float(row["x_m"]) for row in csv.DictReader(file)]
    layouts = {each.name: each for each in read_layouts(tmp_path / "all.csv")}
    np.testing.assert_array_equal(written, layouts["farm1_t1_s1"].x)
    several = optimise(tmp_path, *known)
    assert (several.returncode, several.stderr.count("\n")) == (2, 1)
    assert "holds 8 layouts (farm0_t0_s0, farm0_t0_s1, farm0_t1_s0 and 5 more); choose one with --key" in several.stderr
    assert "has no layout farm0_t0_s9" in optimise(tmp_path, *known, "--key", "0,0,9").stderr


def test_optimise_takes_farm_and_type_by_name(ran, tmp_path):
    known = ["--campaign", ran / "campaign.yaml", "--recipe", "random", "--effort", "fast"]
    done = leeward_here(
        "optimise", *known, "--farm", "Østervig", "--type", "generic 10 MW", "-o", "a.csv", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "5  x 10 MW, rotor 195 m" in done.stdout  # as many as the farm has
    assert "at least 390 m" in done.stdout  # the spacing of the campaign
    [layout] = read_layouts(tmp_path / "a.csv")
    expected = load(ran / "campaign.yaml").physics.wind_farm(0).aep_gwh(layout.x, layout.y)
    assert f"{expected:.2f}  GWh" in done.stdout
    assert (
        "has 2 farms; choose one with --farm: 0" in leeward_here("optimise", *known, "--type", "0", cwd=tmp_path).stderr
    )
