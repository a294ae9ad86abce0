"""`leeward plot`: from a run directory or a file to pictures."""

import dataclasses
import re
import shutil

import numpy as np
import pytest

from foreign_files import own_result, write_foreign_file, write_own_file
from leeward import open_layouts
from leeward.plots import style
from leeward.store.format.keys import Key
from leeward.watch import campaign_of, find_result
from run_cases import leeward_here, make_campaign

CHOSEN = ["layout", "convergence", "flow"]  # of which the best result is drawn
KINDS = ["layout", "map", "aep", "convergence", "rose", "flow"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a small run of two farms, two types and two seeds, that nobody changes."""
    folder = tmp_path_factory.mktemp("run")
    types = [
        {"rated_power_mw": power, "rotor_diameter_m": width, "hub_height_m": 150}
        for power, width in ((10, 195), (15, 240))
    ]
    make_campaign(
        folder,
        seeds=2,
        farms=2,
        turbines=types,
        optimiser={"recipe": "smart_start+refine", "work": 20_000, "grid_size": 20},
    )
    done = leeward_here("run", "campaign.yaml", "--engine", "inline", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def plot(folder, *arguments):
    return leeward_here("plot", *arguments, cwd=folder)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(made, tmp_path, kind):
    few = ["--points", "20"] if kind == "flow" else []
    before = sorted(made.rglob("*"))
    done = plot(made, kind, "-o", tmp_path / "a.png", *few)
    chosen = "leeward: note: the figure shows farm{}: installed power differs by more than 0.5 %"
    assert done.returncode == 0
    assert re.sub(r"farm\d_t\d_s\d", "farm{}", done.stderr).startswith(chosen if kind in CHOSEN else "")
    assert bool(done.stderr) is (kind in CHOSEN)
    assert done.stdout == f"written: {tmp_path / 'a.png'}\n"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(made.rglob("*")) == before


@pytest.mark.slow
def test_the_same_from_a_run_and_from_a_file(made, tmp_path):
    shutil.copy(made / "layouts.h5", tmp_path / "alone.h5")
    for source, name in ((made / "layouts.run", "a.svg"), ("alone.h5", "b.svg")):
        assert plot(tmp_path, "map", source, "-o", name).returncode == 0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.slow
def test_vector_files_tell_what_they_show(made, aeps, tmp_path):
    assert plot(made, "map", "-o", tmp_path / "map.svg").returncode == 0
    text = (tmp_path / "map.svg").read_text(encoding="utf-8")
    for farm in (0, 1):
        best = max(aep for key, aep in aeps.items() if key.farm_idx == farm)
        assert re.search(rf">{farm}  square {farm}, 3 × generic 1[05] MW: {best:.1f} GWh, (30|45) MW, \d+\.\d %<", text)
    assert "Types are compared by capacity factor" in text


@pytest.fixture(scope="module")
def aeps(made):
    """By key."""
    with open_layouts(made / "layouts.h5") as layouts:
        found = {result.key: result.aep_gwh for result in layouts.results()}
    assert len(found) == 8
    return found


@pytest.mark.parametrize("options", [{}, {"farm": 1}, {"farm": 0, "kind": 0}])
def test_the_best_of_what_is_chosen(made, aeps, tmp_path, drawn, options):
    names = {"farm": "--farm", "kind": "--type"}
    choice = [word for name, value in options.items() for word in (names[name], value)]
    assert plot(made, "layout", *choice, "-o", tmp_path / "a.svg").returncode == 0
    farm, kind = options.get("farm"), options.get("kind")
    chosen = [key for key in aeps if farm in (None, key.farm_idx) and kind in (None, key.type_idx)]
    best = max(chosen, key=lambda key: aeps[key])
    campaign = campaign_of(made / "layouts.run")
    assert drawn[0].get_suptitle() == (
        f"{campaign.farms[best.farm_idx]}, {campaign.types[best.type_idx]}, seed {best.seed}"
    )
    assert f"{aeps[best]:.1f} GWh a year" in drawn[0].axes[0].get_title()


def test_one_result_by_its_key(made, tmp_path, drawn):
    assert plot(made, "layout", "--key", "1,0,1", "-o", tmp_path / "a.svg").returncode == 0
    assert drawn[0].get_suptitle() == "square 1, generic 10 MW, seed 1"
    dots = drawn[0].axes[0].collections[-1].get_offsets()
    assert dots.T.tolist() == find_result(made / "layouts.run", Key(1, 0, 1)).result.layout.tolist()


def test_aep_of_chosen_farms_and_types(made, tmp_path, drawn):
    assert plot(made, "aep", "--farm", "1", "-o", tmp_path / "a.svg").returncode == 0
    shown = [label.get_text() for label in drawn[0].axes[1].get_xticklabels()]
    assert shown == ["generic 10 MW, 30 MW", "generic 15 MW, 45 MW"]
    assert drawn[0].axes[0].get_ylabel().startswith("capacity factor, %")  # as their installed power differs


def test_convergence_of_several(made, tmp_path, drawn):
    keys = ["--key", "farm0_t0_s0", "--key", "0 1 0"]
    assert plot(made, "convergence", *keys, "-o", tmp_path / "a.svg").returncode == 0
    assert plot(made, "convergence", "--key", "0,0,0", "--all-seeds", "-o", tmp_path / "b.svg").returncode == 0
    texts = [[text.get_text().split("\n")[0] for text in f.axes[0].get_legend().get_texts()] for f in drawn]
    assert set(texts[0][:2]) == {"farm0_t0_s0", "farm0_t1_s0"}
    assert set(texts[1][:2]) == {"farm0_t0_s0", "farm0_t0_s1"}


def test_convergence_ends_with_what_was_stored(tmp_path, drawn):
    """Also where the last improvement came after the last step that was recorded."""
    result = own_result(aep=100.0, phases="start,polish", aep_by_phase=np.array([97.0, 100.0]))
    result = dataclasses.replace(result, history=np.array([[1.0, 6.0], [97.0, 99.0]]), steps=10)
    write_own_file(tmp_path / "layouts.h5", [result])
    assert plot(tmp_path, "convergence", "-o", "a.svg").returncode == 0
    (line,) = [line for line in drawn[0].axes[0].lines if len(line.get_xdata()) > 1]
    assert line.get_xdata().tolist() == [1, 6, 10]
    assert line.get_ydata().tolist() == [97, 99, 100]
    marks = [line for line in drawn[0].axes[0].lines if len(line.get_xdata()) == 1]
    assert [(float(m.get_xdata()[0]), m.get_label()) for m in marks] == [(1, "end of start"), (10, "end of polish")]


def test_flow_of_one_wind(made, tmp_path, drawn):
    wind = ["--direction", "-90", "--speed", "9", "--height-m", "60", "--points", "30"]
    assert plot(made, "flow", *wind, "-o", tmp_path / "a.svg").returncode == 0
    assert drawn[0].axes[0].get_title() == "wind from 270°, 9 m/s"
    assert drawn[0].axes[1].get_ylabel() == "wind speed 60 m above ground, m/s"


def test_the_place_may_come_first(made, tmp_path):
    for words in (["layouts.run", "aep"], ["aep", "layouts.run"]):
        assert plot(made, *words, "-o", tmp_path / f"{words[0]}.svg").returncode == 0
    assert (tmp_path / "aep.svg").read_bytes() == (tmp_path / "layouts.run.svg").read_bytes()


def test_a_rose_needs_only_a_campaign(made, tmp_path):
    assert plot(tmp_path, "rose", "--campaign", made / "campaign.yaml", "-o", "rose.svg").returncode == 0
    assert "wind speed, m/s" in (tmp_path / "rose.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["layout", "-o", "a.gif"], 2, "expected one of .png, .svg, .pdf"),
        (["layout", "-o", "layouts.run/a.png"], 2, "is in the run directory"),
        (["layout", "-o", "layouts.run/logs/a.png"], 2, "is in the run directory"),
        (["layout", "-o", "nowhere/a.png"], 2, "cannot be written"),
        (["layout", "nowhere.run", "-o", "a.png"], 2, "nowhere.run: no such file or folder"),
        (["layout", "--key", "0,0,9", "-o", "a.png"], 1, "farm0_t0_s9 is missing"),
        (["convergence", "--key", "0,0,0", "--key", "0,0,9", "-o", "a.png"], 1, "farm0_t0_s9 is missing"),
        (["layout", "--key", "farm0", "-o", "a.png"], 2, "farm0"),
        (["layout", "--key", "0,0,0", "--key", "0,0,1", "-o", "a.png"], 2, "give one --key"),
        (
            ["layout", "--farm", "7", "-o", "a.png"],
            1,
            "no result of farm 7 has a known AEP (0 results of farm 7, 8 in all)",
        ),
        (
            ["layout", "--farm", "square 1", "--type", "7", "-o", "a.png"],
            1,
            "no result of farm 1 with type 7 has a known AEP",
        ),
        (["layout", "--key", "square 1/generic 15 MW/9", "-o", "a.png"], 1, "farm1_t1_s9 is missing"),
        (["layout", "--farm", "circle", "-o", "a.png"], 2, "no farm has the name 'circle'; the farms are 0 'square 0'"),
        (["map", "--key", "0,0,0", "-o", "a.png"], 2, "--key has no effect on map"),
        (["layout", "--speed", "8", "-o", "a.png"], 2, "--speed has no effect on layout; it belongs to flow"),
        (["flow", "--all-seeds", "-o", "a.png"], 2, "--all-seeds has no effect on flow"),
        (["flow", "--speed", "8", "-o", "a.png"], 2, "--direction and --speed must be given together"),
        (["flow", "--points", "1", "-o", "a.png"], 2, "points is 1"),
        (["flow", "--direction", "0", "--speed", "-3", "-o", "a.png"], 2, "speed_m_s is -3"),
        (["cake", "-o", "a.png"], 2, "'cake' does not name a figure; expected one of layout, map"),
        (["layouts.run", "-o", "a.png"], 2, "expected one of layout, map"),
        (["map"], 2, "--output"),
    ],
)
def test_wrong_use(made, arguments, code, says):
    before = sorted(made.rglob("*"))
    done = plot(made, *arguments)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(made.rglob("*")) == before


def test_results_of_other_origin(made, tmp_path, drawn):
    """A layout can be drawn with a campaign; how it came about nobody knows."""
    write_foreign_file(tmp_path / "worker_1.h5", [(0, 0, 0)])
    done = plot(tmp_path, "convergence", "worker_1.h5", "-o", "a.png", "--key", "0,0,0")
    assert done.returncode == 2
    assert "farm0_t0_s0 has no AEP by phase" in done.stderr
    done = plot(tmp_path, "layout", "worker_1.h5", "-o", "a.png")
    assert done.returncode == 2
    assert "this figure needs one; give it with --campaign" in done.stderr
    done = plot(tmp_path, "layout", "worker_1.h5", "--campaign", made / "campaign.yaml", "-o", "a.svg")
    assert (done.returncode, done.stderr) == (0, "")
    assert drawn[0].axes[0].get_title().startswith("5 turbines of 10 MW\n")  # not the three of the campaign


def test_types_of_one_name_are_told_apart(tmp_path, drawn):
    types = [{"rated_power_mw": 10, "rotor_diameter_m": width, "hub_height_m": 150} for width in (195, 200)]
    make_campaign(tmp_path, turbines=types)
    write_own_file(tmp_path / "layouts.h5", [own_result(type_=0), own_result(type_=1)])
    assert plot(tmp_path, "aep", "--campaign", "campaign.yaml", "-o", "a.svg").returncode == 0
    shown = [label.get_text() for label in drawn[0].axes[1].get_xticklabels()]
    assert shown == ["generic 10 MW (0), 30 MW", "generic 10 MW (1), 30 MW"]
    assert drawn[0].axes[0].get_ylabel() == "AEP, GWh"


def test_a_folder_of_files(tmp_path, drawn):
    (tmp_path / "workers").mkdir()
    write_foreign_file(tmp_path / "workers" / "worker_1.h5", [(0, 0, 0), (0, 0, 1)], aep=100.0)
    write_foreign_file(tmp_path / "workers" / "worker_2.h5", [(0, 0, 2)], aep=None)
    (tmp_path / "workers" / "worker_3.h5").touch()
    done = plot(tmp_path, "aep", "workers", "-o", "a.svg")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(drawn[0].axes[0].collections[0].get_offsets()) == 2  # the seeds whose AEP is known


@pytest.mark.slow
def test_absent_empty_and_damaged_are_three_answers(made, tmp_path):
    content = (made / "layouts.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(content[: len(content) // 2])
    (tmp_path / "empty.h5").touch()
    write_own_file(tmp_path / "none.h5", [])
    said = {name: plot(tmp_path, "aep", f"{name}.h5", "-o", "a.png") for name in ("cut", "empty", "none")}
    assert {done.returncode for done in said.values()} == {1}
    assert "truncated" in said["cut"].stderr
    assert "empty" in said["empty"].stderr.partition("empty.h5: ")[2]
    assert "no result of any farm has a known AEP (0 results of any farm" in said["none"].stderr


@pytest.mark.parametrize(("aep", "told"), [(123.4, "123.4 GWh a year, "), (None, "AEP not known, ")])
def test_a_layout_has_its_stored_energy(tmp_path, drawn, aep, told):
    """That of another program may be of another wake model; wake losses are those of the campaign's."""
    make_campaign(tmp_path, optimiser={"recipe": "smart_start"}, turbines_per_farm=2)
    write_foreign_file(tmp_path / "worker_1.h5", [(0, 0, 0)], aep=aep)
    words = ["layout", "worker_1.h5", "--key", "0,0,0", "--campaign", "campaign.yaml", "-o", "a.png"]
    done = plot(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert f"\n{told}wake loss " in drawn[0].axes[0].get_title()


def test_no_campaign_is_no_hindrance_for_aep(made, tmp_path, drawn):
    shutil.copytree(made / "layouts.run", tmp_path / "layouts.run")
    (tmp_path / "layouts.run" / "campaign.yaml").unlink()
    assert plot(tmp_path, "aep", "-o", "a.png").returncode == 0
    assert [label.get_text() for label in drawn[0].axes[1].get_xticklabels()] == ["farm 0", "farm 1"]


def test_a_picture_is_replaced_whole(made, tmp_path, monkeypatch):
    (tmp_path / "a.png").write_text("the old one")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(style, "replace_file", full)
    done = plot(made, "rose", "-o", tmp_path / "a.png")
    assert done.returncode == 4
    assert "a.png: cannot be written" in done.stderr
    assert (tmp_path / "a.png").read_text() == "the old one"


def test_letters_that_no_font_has_are_told_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(style, "FALLBACKS", ())
    path = make_campaign(tmp_path)
    path.write_text(f"name: 風力\n{path.read_text()}", encoding="utf-8")
    done = plot(tmp_path, "rose", "--campaign", "campaign.yaml", "-o", "rose.png")
    assert (done.returncode, done.stdout) == (0, "written: rose.png\n")
    assert done.stderr.startswith("leeward: note: no installed font has the characters 風力, ")
    assert done.stderr.count("\n") == 1
