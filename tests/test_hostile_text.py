"""Texts that would crash a parser or fill the memory are refused in one line, wherever they come from."""

import json

import h5py
import pytest

from campaign_cases import load_study
from foreign_files import own_result, write_own_file
from leeward import parsing
from leeward.campaign import Campaign, physics
from leeward.campaign.campaign import MOST_TASKS
from leeward.campaign.selection import chosen_tasks, read_keys
from leeward.errors import InputError
from leeward.layout import Area
from leeward.store import reader_main as reading
from leeward.store.format import layout_result
from leeward.store.format.keys import Key
from leeward.watch import united
from run_cases import leeward, leeward_here, make_campaign

DEEP = {
    "lists": "a: " + 30_000 * "[",
    "keys": "a: " + 30_000 * "{b: ",
    "items on one line": 30_000 * "- ",
    "keys below keys": "".join(f"{' ' * level}k:\n" for level in range(400)),
}
BOMB = "a0: &a0 [lol, lol]\n" + "".join(f"a{n}: &a{n} [{', '.join(10 * [f'*a{n - 1}'])}]\n" for n in range(1, 9))


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_deep_nesting_is_refused_before_it_is_parsed(text):
    with pytest.raises(
        InputError, match=r"^here: line \d+, column \d+: nested too deeply; expected at most 100 levels"
    ):
        Campaign.from_text(text, "here")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BOMB, r"line \d, .*aliases expand to too much text; expected at most 1000000 characters"),
        (f"a: &a {1000 * 'x'}\nb: [{', '.join(2000 * ['*a'])}]", "line 2, .*aliases expand to too much text"),
        ("a: &a [1, *a]", r"\*a contains itself"),
        ("a: [" + 5_001 * "1," + "]", "too many values; expected at most 5000"),
        ("a: '" + 64_000_001 * "x" + "'", r"has 640000\d\d characters; expected at most 64000000"),
        ("seeds: !!bool x", "cannot be read as YAML"),
        ("seeds: !!timestamp x", "cannot be read as YAML"),
    ],
    ids=["bomb", "long word", "itself", "values", "characters", "bool", "timestamp"],
)
def test_what_would_fill_the_memory_is_refused(text, says, monkeypatch):
    monkeypatch.setattr(parsing, "MOST_VALUES", 5000)
    with pytest.raises(InputError, match=says):
        Campaign.from_text(text, "here")


def test_a_few_aliases_are_still_taken(tmp_path):
    spelt_out = load_study(tmp_path, ("[0.3, 0.2, 0.2, 0.3]", "[0.2, 0.3, 0.2, 0.3]"), ("0.08", "[0.2, 0.3, 0.2, 0.3]"))
    aliased = load_study(tmp_path, ("[0.3, 0.2, 0.2, 0.3]", "&f [0.2, 0.3, 0.2, 0.3]"), ("0.08", "*f"))
    assert aliased.frozen_text() == spelt_out.frozen_text()


COMMANDS = {
    "status": ["status", "layouts.h5"],
    "missing": ["missing", "layouts.h5"],
    "check": ["check", "layouts.h5", "--complete"],
    "merge": ["merge", "layouts.h5", "-o", "merged.h5"],
    "show": ["show", "farm0_t0_s0", "layouts.h5"],
    "plot": ["plot", "map", "layouts.h5", "-o", "map.png"],
    "report": ["report", "layouts.h5", "-o", "report.html"],
    "export": ["export", "layouts.h5", "-o", "layouts.csv"],
    "map": ["export", "layouts.h5", "-o", "layouts.geojson"],
    "salvage": ["salvage", "layouts.h5", "-o", "salvaged.h5"],
    "run": ["run", "campaign.yaml"],
}


QUICK = ("missing", "merge")


@pytest.mark.parametrize(
    "command", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in COMMANDS]
)
def test_no_command_crashes_over_a_deep_campaign(tmp_path, command):
    write_own_file(tmp_path / "layouts.h5", [own_result()], campaign=DEEP["lists"])
    (tmp_path / "campaign.yaml").write_text(DEEP["lists"])
    done = leeward(*COMMANDS[command], cwd=tmp_path)
    assert done.returncode in (0, 1, 2, 3), done
    assert "Traceback" not in done.stderr
    assert command == "report" or len(done.stderr.splitlines()) <= 1, done.stderr  # which says what it does


def nested(depth):
    ring = "[[0, 0], [9000, 0], [9000, 9000], [0, 0]]"
    return f'{{"type": "Polygon", "coordinates": [{ring}], "more": {depth * "["}{depth * "]"}}}'


def test_deep_geojson_is_refused(tmp_path):
    path = tmp_path / "area.geojson"
    path.write_text(nested(5000))
    says = r"area.geojson: line 1: nested too deeply; expected at most 100 levels of brackets"
    with pytest.raises(InputError, match=says):
        Area.from_geojson(path)
    with pytest.raises(InputError, match=says):
        load_study(tmp_path, ("  - name: north\n", "  file: area.geojson\n#"), ("    polygon_m", "#"))
    with pytest.raises(InputError, match="nested too deeply"):
        Area.from_geojson(nested(5000))
    assert Area.from_geojson(nested(50), crs="EPSG:25831").parts


def test_brackets_in_words_do_not_count(tmp_path):
    words = json.dumps(
        {"type": "Polygon", "name": 500 * '["\\', "coordinates": [[[0, 0], [9e3, 0], [9e3, 9e3], [0, 0]]]}
    )
    assert Area.from_geojson(words, crs="EPSG:25831").parts
    with pytest.raises(InputError, match="not JSON"):
        Area.from_geojson('{"' + 100_000 * '\\"')


def test_deep_list_of_keys_is_refused(tmp_path):
    path = tmp_path / "keys.json"
    path.write_text(100_000 * "[")
    with pytest.raises(InputError, match="nested too deeply"):
        read_keys(path, Key.parse)


def test_huge_numbers_of_turbines_are_refused_at_once(tmp_path):
    assert physics.MOST_TURBINES == layout_result.MOST_TURBINES
    says = "line 15: turbines_per_farm is too large: 100000000 turbines in one farm; expected at most 100000"
    with pytest.raises(InputError, match=says):
        load_study(tmp_path, ("turbines_per_farm: 12", "turbines_per_farm: 100000000"))
    with pytest.raises(InputError, match="capacity_mw is too large: 66666666666 turbines in one farm"):
        load_study(tmp_path, ("turbines_per_farm: 12", "capacity_mw: 1e12"))
    with pytest.raises(InputError, match="grid_size is 100000000; expected a number of at most 2000"):
        load_study(tmp_path, more="optimiser: {grid_size: 100000000}\n")


EVERY_SEED = ("seeds: 2", "seeds: 0:4294967295")


def test_a_few_of_four_billion_tasks(tmp_path):
    campaign = load_study(tmp_path, EVERY_SEED)
    assert chosen_tasks(campaign, "seed=0") == [Key(0, 0, 0)]
    assert chosen_tasks(campaign, "seed=9,3:5,4294967295") == [Key(0, 0, seed) for seed in (3, 4, 9)]
    assert chosen_tasks(campaign, [Key(0, 0, 7), Key(0, 0, 5)]) == [Key(0, 0, 5), Key(0, 0, 7)]
    assert chosen_tasks(campaign, "seed=0 farm=1") == []
    for ask in (lambda: chosen_tasks(campaign, "seed=5:"), lambda: chosen_tasks(campaign, "farm=0")):
        with pytest.raises(InputError, match=f"--only selects more than {MOST_TASKS} of the 4294967295 tasks of study"):
            ask()
    for ask in (lambda: chosen_tasks(campaign, None), campaign.tasks):
        with pytest.raises(InputError, match="study has 4294967295 tasks; expected at most 10000000; give it fewer"):
            ask()


def test_the_order_of_the_tasks_asked_for_is_that_of_the_campaign(tmp_path):
    campaign = load_study(tmp_path, ("seeds: 2", "seeds: [5, 1, 3]"))
    everything = list(campaign.tasks())
    assert chosen_tasks(campaign, None) == everything
    assert chosen_tasks(campaign, "seed=0:9") == everything
    assert chosen_tasks(campaign, set(everything)) == everything
    assert chosen_tasks(campaign, "seed=3,5") == [Key(0, 0, 5), Key(0, 0, 3)]


def test_campaigns_of_four_billion_seeds_are_not_listed(tmp_path):
    one, other = load_study(tmp_path, EVERY_SEED), load_study(tmp_path)
    assert united([one, other]) == [one, other]


@pytest.mark.slow
def test_run_of_one_task_of_four_billion(tmp_path):
    make_campaign(tmp_path, seeds="0:4294967295", execution={"engine": "inline"})
    done = leeward_here("run", "campaign.yaml", "--only", "seed=0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for command in (["status"], ["check", "layouts.h5"], ["show", "0,0,0"], ["report", "-o", "report.html"]):
        again = leeward_here(*command, cwd=tmp_path)
        assert again.returncode in (0, 3), (command, again.stderr)
    for command in (["missing", "layouts.h5"], ["run", "campaign.yaml"], ["merge", "layouts.run", "-o", "merged.h5"]):
        refused = leeward_here(*command, cwd=tmp_path)
        assert refused.returncode == 2, command
        assert "has 4294967295 tasks; expected at most 10000000" in refused.stderr


def test_the_text_of_a_file_is_first_read_in_the_child(tmp_path, monkeypatch):
    """Should libyaml crash, only the child that reads the file is gone."""
    path = write_own_file(tmp_path / "a.h5", [own_result()], campaign="seeds: 2")
    seen = []
    monkeypatch.setattr(parsing, "check_yaml", seen.append)
    with h5py.File(path) as file:
        reading._root_attributes(file.id)
    assert seen == ["seeds: 2"]
