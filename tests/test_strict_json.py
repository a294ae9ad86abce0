"""JSON that every reader takes, and tables: of one turbine, whose closest neighbour is infinitely far away."""

import csv
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pyarrow.parquet
import pytest
import yaml

from export_cases import LEFT, campaign_data, square
from leeward import open_layouts
from leeward.campaign import load
from leeward.export import export_layouts
from leeward.export.arrays import array_pieces
from leeward.export.plant import plant_of
from leeward.store.directory.index import output_index_path
from leeward.wording import json_text
from run_cases import leeward_here


def strict(text):
    def refused(word):
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refused)


@pytest.fixture(scope="module")
def lone(tmp_path_factory):
    """A run of one turbine, and what it told."""
    folder = tmp_path_factory.mktemp("lone")
    farms = [{"name": "lone", "polygon_m": square(LEFT), "n_turbines": 1}]
    machine = {"rated_power_mw": 15, "rotor_diameter_m": 240, "hub_height_m": 150}
    data = campaign_data(farms=farms, seeds=1, turbines=[machine])
    (folder / "campaign.yaml").write_text(yaml.safe_dump(data))
    return folder, leeward_here("run", "campaign.yaml", "--json", cwd=folder)


def test_what_is_no_number_is_null():
    data = {"a": math.inf, "b": [math.nan, (-math.inf, 1.5)], "c": {"d": 0.1}, "e": "NaN"}
    assert strict(json_text(data)) == {"a": None, "b": [None, [None, 1.5]], "c": {"d": 0.1}, "e": "NaN"}
    assert json_text([1.0, "ä"], separators=(",", ":")) == json.dumps([1.0, "ä"], separators=(",", ":"))


def test_every_file_of_a_run_is_strict(lone):
    folder, done = lone
    events = [strict(line) for line in done.stdout.splitlines()]
    assert len(events) > 2, done.stderr
    files = [*(folder / "layouts.run").rglob("*.json*"), output_index_path(folder / "layouts.h5")]
    lines = [strict(line) for file in files for line in file.read_text().splitlines()]
    assert [line["min_spacing_m"] for line in lines if "min_spacing_m" in line] == [None, None]


@pytest.mark.parametrize("command", ["status", "check", "missing"])
def test_every_command_is_strict(lone, command):
    done = leeward_here(command, "layouts.run", "--json", cwd=lone[0])
    assert strict(done.stdout), done.stderr


def test_tables_have_no_such_distance(lone, tmp_path):
    with open_layouts(lone[0] / "layouts.h5") as layouts:
        for name in ("a.csv", "a.parquet"):
            export_layouts(layouts, tmp_path / name, per="layout")
        assert layouts.to_xarray().min_spacing_m.isnull().all()
        assert layouts["farm0_t0_s0"].details["min_spacing_m"] == math.inf  # as it is stored
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        assert [row["min_spacing_m"] for row in csv.DictReader(file)] == [""]
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet")["min_spacing_m"].null_count == 1


def test_arrays_of_a_layout_whose_energy_nobody_knows(lone):
    campaign = load(lone[0] / "campaign.yaml")
    with open_layouts(lone[0] / "layouts.h5") as layouts:
        plant = plant_of(replace(layouts["farm0_t0_s0"], aep_gwh=math.nan), campaign)
    [content] = array_pieces(SimpleNamespace(plant=plant, ending=".json"))
    assert strict(content.decode())["aep_gwh"] is None
