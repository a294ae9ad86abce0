"""Names and values that no terminal and no table can take: bytes that are not UTF-8, control characters, words."""

import json
import os
import sys

import numpy as np
import pytest
import yaml

from foreign_files import write_foreign_file
from leeward.cli.output import Printable, table
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import Result
from leeward.watch import phases_of
from leeward.wording import command, json_text, printable
from run_cases import leeward, leeward_here, make_campaign

NO_UTF_8 = os.fsdecode(b"w\xff")
EVIL = "\x1b[31m\x9b\x07\u202e"  # colours, a bell, and text from right to left
ODD = NO_UTF_8 + EVIL
ESCAPED = "w\\udcff\\x1b[31m\\x9b\\x07\\u202e"


def assert_tame(done):
    text = done.stdout + done.stderr
    assert "Traceback" not in text
    assert not any(character in text for character in "\x1b\x9b\x07\u202e\udcff"), ascii(text)


def test_what_a_terminal_would_obey_is_escaped():
    assert printable(ODD) == ESCAPED
    assert printable("Østervig\t× 😀\n") == "Østervig\t× 😀\n"
    for mark in "\x00\r\x1b\x7f\x85\u061c\u200e\u200f\u2028\u202a\u202e\u2066\u2069":
        assert printable(mark).startswith("\\"), ascii(mark)
    assert table([["a\nb", "c"]]) == "  a\\nb  c"


def test_json_has_no_halves_of_characters():
    assert json.loads(json_text({"path": NO_UTF_8, NO_UTF_8: ["😀", float("inf")]})) == {
        "path": "w\\udcff",
        "w\\udcff": ["😀", None],
    }


def test_a_command_to_copy_names_the_very_file():
    assert command("check", NO_UTF_8) == "leeward check $'w\\xff'"
    assert command("check", "it's\x1b") == "leeward check $'it\\x27s\\x1b'"
    assert command("check", "a b") == "leeward check 'a b'"


def test_a_stream_is_escaped_and_what_rich_draws_is_not(capsys):
    stream = Printable(sys.stdout)
    print(ODD, file=stream)
    stream.rich_proxied_file.write("\x1b[K")
    assert capsys.readouterr().out == f"{ESCAPED}\n\x1b[K"


@pytest.fixture
def workers(tmp_path):
    """A folder of worker files with odd names: one is whole, one cut off, one empty."""
    folder = tmp_path / "workers"
    folder.mkdir()
    whole = write_foreign_file(folder / f"{ODD}.h5", [(0, 0, 0), (0, 0, 1)], note=f"n{EVIL}")
    (folder / f"cut{ODD}.h5").write_bytes(whole.read_bytes()[:-800])
    (folder / f"empty{ODD}.h5").touch()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "workers"],
        pytest.param(["check", "workers", "--json"], marks=pytest.mark.slow),
        ["merge", "workers", "-o", f"m{ODD}.h5", "--on-bad", "skip"],
        pytest.param(["merge", "workers", "-o", "m.h5", "--on-bad", "salvage"], marks=pytest.mark.slow),
        ["merge", f"workers/{ODD}.h5", "-o", "m.h5", "--remove-sources"],
        ["salvage", "workers", "-o", f"s{ODD}.h5"],
        pytest.param(["salvage", "workers", "-o", "s.h5", "--json"], marks=pytest.mark.slow),
        ["show", "0,0,0", f"workers/{ODD}.h5"],
        ["status", f"workers/{ODD}.h5"],
        ["export", f"workers/{ODD}.h5", "-o", f"e{ODD}.csv"],
        pytest.param(["export", f"workers/{ODD}.h5", "-o", "e.nc"], marks=pytest.mark.slow),
        ["report", f"workers/{ODD}.h5", "-o", f"r{ODD}.html"],
        ["missing", f"workers/{ODD}.h5"],
    ],
    ids=lambda arguments: " ".join(arguments).replace(ODD, "odd"),
)
def test_file_names_that_are_not_utf_8(tmp_path, workers, arguments):
    done = leeward_here(*arguments, cwd=tmp_path)
    assert done.returncode in (0, 2, 3), done.stderr
    assert_tame(done)
    for log in tmp_path.glob("merge_log_*"):
        text = log.read_bytes().decode()  # UTF-8
        assert not any(character in text for character in "\x1b\x9b\x07\u202e")
        if log.suffix == ".jsonl":
            assert "\\\\udcff" in text


def test_a_real_terminal_stream_that_is_not_utf_8(tmp_path, workers):
    done = leeward("check", "workers", cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 3, done.stderr
    assert "w\\udcff" in done.stdout


def test_names_in_a_campaign_and_its_run(tmp_path):
    farm = {"name": f"f{EVIL}", "polygon_m": [[0.0, 0.0], [5000.0, 0.0], [5000.0, 5000.0], [0.0, 5000.0]]}
    turbine = {"name": f"t{EVIL}", "rated_power_mw": 10, "rotor_diameter_m": 195, "hub_height_m": 121}
    changes = {"turbines": [turbine], "optimiser": {"recipe": "random"}, "execution": {"engine": "inline"}}
    path = make_campaign(tmp_path, seeds=1, **changes)
    data = {**yaml.safe_load(path.read_text()), "farms": [farm]}
    (tmp_path / f"c{ODD}.yaml").write_text(yaml.safe_dump(data))
    output = f"layouts{ODD}.h5"
    for arguments in (["run", f"c{ODD}.yaml", "-o", output], ["status", output], ["missing", output]):
        done = leeward_here(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert_tame(done)
    assert "\\u202e" in done.stdout


def test_a_recipe_in_a_folder_that_is_not_utf_8(tmp_path):
    folder = tmp_path / NO_UTF_8
    folder.mkdir()
    make_campaign(folder, seeds=1, execution={"engine": "inline"})
    done = leeward_here("run", "campaign.yaml", cwd=folder)
    assert done.returncode == 2
    assert "cannot be written in UTF-8; rename that folder or farm" in done.stderr
    assert_tame(done)


ODD_VALUES = {
    "words": {"seconds": "fast", "wake_loss": "lots", "min_spacing_m": "near", "phases": "a,b,a", "work": "much"},
    "arrays": {"seconds": np.ones(2), "wake_loss": np.ones(3), "min_spacing_m": np.ones(2), "aep_by_phase": "x"},
    "endless": {"seconds": np.inf, "wake_loss": np.nan, "min_spacing_m": -np.inf, "violation_m": np.inf},
    "truths": {"seconds": True, "wake_loss": False, "phases": True, "aep_by_phase": True},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["words", *(pytest.param(kind, marks=pytest.mark.slow) for kind in list(ODD_VALUES)[1:])]
)
def test_foreign_values_that_are_no_numbers(tmp_path, kind):
    values = {"aep_by_phase": np.array([1.0, 2.0]), **ODD_VALUES[kind]}
    write_foreign_file(tmp_path / "workers.h5", [(0, 0, 0), (0, 0, 1)], **values)
    for arguments in (
        ["export", "workers.h5", "-o", "e.nc"],
        ["export", "workers.h5", "-o", "e.csv"],
        ["export", "workers.h5", "-o", "e.parquet"],
        ["report", "workers.h5", "-o", "r.html"],
        ["show", "0,0,0", "workers.h5"],
        ["status", "workers.h5"],
    ):
        done = leeward_here(*arguments, cwd=tmp_path)
        assert done.returncode in (0, 3), (arguments, done.stderr)


def test_phases_whose_names_do_not_fit_are_numbered():
    def phases(**details):
        return phases_of(Result(Key(0, 0, 0), np.zeros((2, 1)), 1.0, 100.0, "f" * 64, "steps", 1, details=details))

    aeps = np.array([1.0, 2.0])
    assert phases(phases="a,b", aep_by_phase=aeps) == {"a": 1.0, "b": 2.0}
    for names in ("a,b,a", "a,a", "a", ""):
        assert phases(phases=names, aep_by_phase=aeps) == {"phase 1": 1.0, "phase 2": 2.0}
