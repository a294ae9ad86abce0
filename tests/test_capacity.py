"""Installed power and capacity factor: the numbers, where they are shown, and how turbine types are compared."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from campaign_cases import load_study
from foreign_files import own_result, write_own_file
from leeward import open_layouts
from leeward.campaign import Campaign, builtin_campaign
from leeward.campaign.compute import compute
from leeward.campaign.remarks import HUB_HEIGHTS, comparison_remarks, is_by_capacity_factor, optimiser_words
from leeward.campaign.work import LayoutWork
from leeward.capacity import by_capacity_factor, capacity_factor, comparison_remark
from leeward.cli.run_summary import capacity_lines, print_summary
from leeward.cli.status import lines
from leeward.engines.worker import last_line
from leeward.errors import InfeasibleError
from leeward.export import export_layouts, open_results
from leeward.layout.driver import _no_room
from leeward.pages.overview import progress
from leeward.pages.settings import settings
from leeward.plots.runs import Choice, aep_cells, best_key, best_of_each_farm, known_aeps
from leeward.report import report_html
from leeward.runs.context import RunReport
from leeward.store.directory.index import Brief
from leeward.store.directory.records import Failure, Record
from leeward.store.format.keys import Key
from leeward.store.paths import RunPaths
from leeward.watch import TaskTable, best_of_all, best_of_farms, observe, snapshot
from leeward.wind import Site, Turbine, WindFarm
from run_cases import leeward_here

SENTENCE = comparison_remark(["0 north"], 1)
CURVE = "wind_speeds_m_s: [3, 8, 12, 25], power_mw: [0, 3, 7.6, 7.6], thrust_coefficient: [0.8, 0.8, 0.4, 0.1]"
UNEQUAL = (
    ("hub_height_m: 150}", f"hub_height_m: 150}}\n  - {{{CURVE}, rotor_diameter_m: 164, hub_height_m: 110}}"),
    ("turbines_per_farm: 12", "capacity_mw: 60\ncrs: EPSG:25832"),
)
FACTOR = 190.0 / (53.2 * 8.76)  # of the better type, whose AEP is the lower one


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """60 MW of 15 MW turbines, or 53.2 MW of 7.6 MW turbines."""
    return load_study(tmp_path_factory.mktemp("campaign"), *UNEQUAL)


@pytest.fixture(scope="module")
def path(campaign, tmp_path_factory):
    """A file whose results do not state their installed power, as older ones do not."""
    results = [
        replace(own_result(0, kind, 0, turbines=turbines, aep=aep), fingerprint=campaign.fingerprint(0, kind))
        for kind, turbines, aep in ((0, 4, 200.0), (1, 7, 190.0))
    ]
    folder = tmp_path_factory.mktemp("results")
    return write_own_file(folder / "layouts.h5", results, campaign=campaign.frozen_text(), campaign_name="study")


@pytest.mark.parametrize(
    ("powers", "expected"),
    [([100.0, 100.5], False), ([100.0, 100.51], True), ([None, math.nan, 5.0], False), ([60.0, 53.2, None], True)],
)
def test_compared_by_capacity_factor_above_half_a_per_cent(powers, expected):
    assert by_capacity_factor(powers) is expected


def test_the_hours_are_those_of_the_wake_engine():
    """A turbine at full load all year has a capacity factor of 1."""
    turbine = Turbine(
        wind_speeds_m_s=[3, 10, 25],
        power_mw=[0, 8, 8],
        thrust_coefficient=[0.8, 0.8, 0.1],
        rotor_diameter_m=170,
        hub_height_m=110,
    )
    farm = WindFarm(Site.from_table([0.0], [12.0], [[1.0]]), turbine)
    assert capacity_factor(farm.aep_gwh([0.0], [0.0]), 8.0) == 1.0


def test_installed_power_and_labels(campaign):
    assert [campaign.physics.n_turbines(0, kind) for kind in (0, 1)] == [4, 7]
    assert [campaign.physics.installed_mw(0, kind) for kind in (0, 1)] == pytest.approx([60.0, 53.2], rel=1e-15)
    assert campaign.physics.capacity_wanted_mw(0) == 60.0
    assert dict(campaign.types) == {0: "generic 15 MW", 1: "7.6 MW, rotor 164 m"}
    assert capacity_lines(campaign) == [
        "installed power:",
        "  t0 generic 15 MW: 4 turbines, 60 MW of 60 MW",
        "  t1 7.6 MW, rotor 164 m: 7 turbines, 53.2 MW of 60 MW, 6.8 MW (11.3%) short",
        SENTENCE,
        HUB_HEIGHTS,
    ]


def test_given_turbine_counts_fall_short_of_nothing(tmp_path):
    campaign = load_study(tmp_path)
    assert campaign.physics.capacity_wanted_mw(0) is None
    assert capacity_lines(campaign) == ["installed power:", "  t0 generic 15 MW: 12 turbines, 180 MW"]


def test_labels_change_no_fingerprint(campaign):
    """Campaigns that were frozen with other labels resume."""
    old = Campaign.from_text(campaign.frozen_text().replace("7.6 MW, rotor 164 m", "generic 7.6 MW"), "old")
    assert old.types[1] == "generic 7.6 MW"
    assert old.fingerprint(0, 1) == campaign.fingerprint(0, 1)


def test_nearly_equal_types_are_compared_by_aep(tmp_path):
    more = (
        "hub_height_m: 150}",
        "hub_height_m: 150}\n  - {rated_power_mw: 15.05, rotor_diameter_m: 240, hub_height_m: 150}",
    )
    campaign = load_study(tmp_path, more)
    assert not is_by_capacity_factor(campaign, 0)
    assert list(comparison_remarks(campaign)) == []
    results = [own_result(0, kind, 0, turbines=12, aep=aep) for kind, aep in ((0, 200.0), (1, 200.1))]
    path = write_own_file(tmp_path / "layouts.h5", results)
    seen = observe(path, campaign=campaign).snapshot
    assert best_of_farms(seen.cells) == {0: Key(0, 1, 0)}  # although its capacity factor is the lower one
    assert seen.cells[1].capacity_factor < seen.cells[0].capacity_factor
    assert not seen.comparison_remark


@pytest.mark.slow
def test_the_best_is_the_one_with_the_highest_capacity_factor(path, campaign):
    seen = observe(path)
    cells = seen.snapshot.cells
    assert [cell.installed_mw for cell in cells] == pytest.approx([60.0, 53.2])
    assert cells[1].capacity_factor == pytest.approx(FACTOR)
    best = Key(0, 1, 0)
    assert best_of_farms(cells) == {0: best}
    assert best_of_all(cells) == best
    assert best_key(known_aeps(path, Choice()), campaign) == (best, True)
    table = TaskTable(seen)
    assert table.find(best).capacity_factor == pytest.approx(FACTOR)
    (farm,) = best_of_each_farm(path, campaign, Choice())
    assert (farm.aep_gwh, farm.is_by_factor) == (190.0, True)
    assert farm.installed_mw == pytest.approx(53.2)
    assert [cell.turbine for cell in aep_cells(path, campaign, Choice())] == [
        "generic 15 MW, 60 MW",
        "7.6 MW, rotor 164 m, 53.2 MW",
    ]


def test_status_and_show(path):
    shown = "\n".join(lines(snapshot(path)))
    assert "190.00  53.2           40.77%  farm0_t1_s0" in shown
    assert SENTENCE in shown
    assert HUB_HEIGHTS in shown
    assert "recipe smart_start+refine, effort normal" in shown
    done = leeward_here("show", "0,1,0", path, cwd=path.parent)
    assert done.returncode == 0
    told = dict(line.strip().split("  ", 1) for line in done.stdout.splitlines() if "  " in line.strip())
    told = {name: value.strip() for name, value in told.items()}
    assert (told["installed"], told["capacity factor"]) == ("53.2 MW", "40.77%")
    assert (told["farm"], told["turbine type"]) == ("0 north", "t1 7.6 MW, rotor 164 m")
    assert told["optimiser"] == "recipe smart_start+refine, effort normal"
    assert SENTENCE in done.stdout


def test_report(path):
    page = report_html(path)
    for words in (SENTENCE, "53.2", "40.77%", "capacity factor", "recipe smart_start+refine, effort normal"):
        assert words in page
    assert HUB_HEIGHTS.replace("'", "&#x27;") in page
    assert 'layouts["farm0_t1_s0"]' in page.replace("&quot;", '"')


def test_a_finished_run_has_no_rate(path):
    seen = replace(snapshot(path), rate_per_hour=60.0)
    assert "per hour" not in progress(seen)
    assert "recipe smart_start+refine, effort normal" in progress(seen)


def test_rated_power_of_a_tabulated_turbine(campaign):
    page = settings(campaign, {})
    assert '<td>7.6 MW, rotor 164 m</td><td class="number">7.6</td>' in page
    assert "7 (53.2 MW)" in page


def test_tables(path):
    with open_layouts(path) as layouts:
        frame = layouts.to_pandas()
        turbines = layouts.to_pandas(per="turbine")
        grid = layouts.to_xarray()
    assert frame["installed_mw"].tolist() == pytest.approx([60.0, 53.2])
    assert frame["capacity_factor"].tolist() == pytest.approx([200.0 / (60.0 * 8.76), FACTOR])
    assert turbines["capacity_factor"].iloc[-1] == pytest.approx(FACTOR)
    assert grid["installed_mw"].values.ravel().tolist() == pytest.approx([60.0, 53.2])
    assert (grid["installed_mw"].units, grid["capacity_factor"].units) == ("MW", "1")


def test_exports(path, campaign, tmp_path):
    with open_results(path) as layouts:
        export_layouts(layouts, tmp_path / "a.csv", campaign, per="layout")
        export_layouts(layouts, tmp_path / "b.csv", campaign)
        export_layouts(layouts, tmp_path / "c.geojson", campaign)
        one = layouts.only([Key(0, 1, 0)])
        export_layouts(one, tmp_path / "d.npz", campaign)
        export_layouts(one, tmp_path / "e.yaml", campaign, format_name="windio")
    for name in ("a.csv", "b.csv"):
        last = list(csv.DictReader((tmp_path / name).open(newline="")))[-1]
        assert (float(last["installed_mw"]), float(last["capacity_factor"])) == pytest.approx((53.2, FACTOR))
    last = json.loads((tmp_path / "c.geojson").read_text())["features"][-1]["properties"]
    assert (last["installed_mw"], last["capacity_factor"]) == pytest.approx((53.2, FACTOR))
    arrays = np.load(tmp_path / "d.npz")
    assert (float(arrays["installed_mw"]), float(arrays["capacity_factor"])) == pytest.approx((53.2, FACTOR))
    assert "190.0 GWh; 53.2 MW installed, capacity factor 40.77%" in (tmp_path / "e.yaml").read_text()


def test_a_result_states_its_installed_power(tmp_path):
    """As a detail: two honest computations have the same digest with and without it."""
    fast = load_study(
        tmp_path, ("seeds: 2", "seeds: 1\noptimiser: {recipe: random}"), ("turbines_per_farm: 12", "capacity_mw: 32")
    )
    result = compute(fast, Key(0, 0, 0), lambda **_: None)
    assert result.details["installed_mw"] == 30.0
    assert replace(result, details={}).digest == result.digest


@pytest.mark.parametrize(
    ("optimiser", "words"),
    [
        ({}, "recipe smart_start+refine, effort normal"),
        ({"recipe": "random"}, "recipe random, without refinement"),
        (
            {"effort": "fast", "time_budget_s": 60},
            "recipe smart_start+refine, time budget 60 s per layout (effort fast)",
        ),
        ({"work": 9}, "recipe smart_start+refine, work budget 9 pair evaluations per layout (effort normal)"),
    ],
)
def test_recipe_and_effort(tmp_path, optimiser, words):
    campaign = load_study(tmp_path, ("seeds: 2", f"seeds: 2\noptimiser: {json.dumps(optimiser)}"))
    assert optimiser_words(campaign) == words


def test_the_effort_of_the_built_in_campaign():
    assert optimiser_words(builtin_campaign()) == "recipe smart_start+refine, effort fast"


def failed(key, message):
    return Record(str(key), failure=Failure("exception", message, "", 1, "w", "h", 1.0, "", True))


def test_the_summary_of_a_run(campaign, tmp_path, capsys):
    wanted = list(campaign.tasks())
    no_room = last_line(InfeasibleError(_no_room(campaign.problem(0, 0))))
    report = RunReport(
        RunPaths(tmp_path / "layouts.h5"),
        LayoutWork(campaign),
        wanted,
        results={Key(0, 0, 0): Brief(200.0, 0.1), Key(0, 1, 0): Brief(190.0, 0.1)},
        failures={Key(0, 0, 1): failed(Key(0, 0, 1), no_room)},
    )
    print_summary(report, "leeward run")
    out = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "0 north t0 generic 15 MW 1/2 1 60 0 200.00 38.05% 200.00 10.00%" in rows
    assert "0 north t1 7.6 MW, rotor 164 m 1/2 0 53.2 6.8 190.00 40.77% 190.00 10.00% best type" in rows
    assert SENTENCE in out
    assert HUB_HEIGHTS in out
    assert "study: recipe smart_start+refine, effort normal" in out
    assert "fewer turbines, less spacing, or a larger area" in out
    assert "--retry-failed" not in out
    report.failures[Key(0, 1, 1)] = failed(Key(0, 1, 1), "ValueError: no")
    print_summary(report, "leeward run")
    assert "leeward run --retry-failed" in capsys.readouterr().out
