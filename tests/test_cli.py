"""The command `leeward optimise`, in this process and in processes of its own; `leeward aep` is in test_package.py."""

import codecs
import csv
import errno
import importlib
import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import typer

from leeward import cli
from leeward.campaign import builtin
from leeward.layout import Area, LayoutProblem
from leeward.wind import Turbine, WindFarm
from run_cases import PATIENCE_S, leeward_here, until, without_compiling

COMMAND = [sys.executable, "-c", "from leeward.cli import main; main()"]
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4000, 0], [4000, 4000], [0, 4000], [0, 0]]], "crs": None}


def command(*arguments, cwd=None):
    ended = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, cwd=cwd)
    ended.stderr = without_compiling(ended.stderr)
    return ended


@pytest.fixture
def inside(monkeypatch, capsys, tmp_path):
    """The command line within this process, in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["leeward", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capsys.readouterr()
        return end.value.code or 0, out, without_compiling(err)

    return run


@pytest.fixture(scope="module")
def problem():
    farm = WindFarm(builtin.site(), Turbine.generic(15, 240, 150))
    return LayoutProblem(farm, builtin.area(0), 66, spacing_diameters=3)


def read(path):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def printed_aep(text):
    return re.search(r"^  AEP +([\d.]+)  GWh", text, re.M)[1]


@pytest.mark.parametrize("arguments", [[], ["aep"], ["optimise"]])
def test_help(arguments):
    result = command(*arguments, "--help")
    assert result.returncode == 0
    assert "Usage: " in result.stdout
    assert not result.stderr


def test_every_command_says_what_it_does():
    commands = typer.main.get_command(cli.app).commands
    assert set(commands) >= {"aep", "optimise"}
    for each in commands.values():
        assert each.help
        assert all(option.help for option in each.params)


# AEP in GWh of farm 0, which SmartStart places and a descent improves
SMART_START_GWH, REFINED_GWH = 5246.57, 5290.0


@pytest.mark.parametrize("recipe", ["smart_start", pytest.param("smart_start+refine", marks=pytest.mark.slow)])
def test_without_an_area(tmp_path, problem, recipe):
    options = ["--effort", "fast", "--recipe", recipe, "-o", "layout.csv", "--picture", "layout.png"]
    result = command("optimise", *options, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert not result.stderr  # progress is for terminals
    assert sorted(p.name for p in tmp_path.iterdir()) == ["layout.csv", "layout.png"]
    assert (tmp_path / "layout.png").read_bytes().startswith(b"\x89PNG")
    layout = read(tmp_path / "layout.csv")
    assert list(layout) == ["turbine", "x_m", "y_m", "aep_gwh", "wake_loss"]
    assert np.array_equal(layout["turbine"], np.arange(66))
    assert problem.violation(layout["x_m"], layout["y_m"]).is_feasible
    assert layout["aep_gwh"].sum() == pytest.approx(problem.farm.aep_gwh(layout["x_m"], layout["y_m"]), abs=1e-4)
    if recipe == "smart_start":
        assert printed_aep(result.stdout) == str(SMART_START_GWH)
    else:
        assert float(printed_aep(result.stdout)) > REFINED_GWH
        assert "after descent" in result.stdout
        assert "the work budget is spent" in result.stdout
    assert printed_aep(result.stdout) == printed_aep(leeward_here("aep", "layout.csv", cwd=tmp_path).stdout)
    for said in ("after smart_start", str(SMART_START_GWH), "wake loss", "closest spacing", "layout.csv", "layout.png"):
        assert said in result.stdout


def test_the_default_recipe_refines(inside, tmp_path):
    (tmp_path / "area.json").write_text(json.dumps(SQUARE))
    code, out, err = inside("optimise", "--area", "area.json", "--turbines", "3", "--effort", "fast", "-o", "x.csv")
    assert (code, err) == (0, "")
    for said in ("after smart_start", "after race", "smart_start+refine, effort fast", "the work budget is spent"):
        assert said in out


def test_an_area_a_start_and_a_turbine_of_ones_own(inside, tmp_path):
    (tmp_path / "area.json").write_text(json.dumps(SQUARE))
    (tmp_path / "start.csv").write_text("x_m,y_m\n100,100\n2000,2000\n3900,3000\n")
    common = ["optimise", "--area", "area.json", "--rated-power-mw", "10", "--rotor-diameter-m", "195"]
    common += ["--hub-height-m", "121", "--spacing-m", "900", "--effort", "fast"]
    code, out, err = inside(*common, "--start", "start.csv", "-o", "better.csv", "--picture", "better.svg")
    assert (code, err) == (0, "")
    assert "x 10 MW, rotor 195 m" in out
    assert "after given" in out
    assert (tmp_path / "better.svg").read_text().startswith("<?xml")
    better = read(tmp_path / "better.csv")
    farm = WindFarm(builtin.site(), Turbine.generic(10, 195, 121))
    square = LayoutProblem(farm, Area.from_geojson(SQUARE), 3, spacing_m=900)
    assert square.violation(better["x_m"], better["y_m"]).is_feasible
    assert farm.aep_gwh(better["x_m"], better["y_m"]) > farm.aep_gwh([100, 2000, 3900], [100, 2000, 3000])
    # measured only, it is what it was
    code, again, _ = inside(*common, "--start", "better.csv", "--recipe", "start")
    assert code == 0
    assert printed_aep(again) == printed_aep(out)
    assert "not written" in again


def test_the_same_seed_gives_the_same_file(inside, tmp_path):
    (tmp_path / "area.json").write_text(json.dumps(SQUARE))
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        arguments = ["--area", "area.json", "--turbines", "4", "--recipe", "random", "--seed", seed]
        assert inside("optimise", *arguments, "-o", f"{name}.csv")[0] == 0
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_a_timed_run_can_be_repeated_by_its_work(inside, tmp_path, monkeypatch):
    """Here a millisecond passes whenever the optimiser looks at the clock, which it does after each step."""
    ticks = itertools.count()
    moved = SimpleNamespace(perf_counter=lambda: next(ticks) / 1000)
    monkeypatch.setattr(importlib.import_module("leeward.layout.driver"), "time", moved)
    (tmp_path / "area.json").write_text(json.dumps(SQUARE))
    common = ["optimise", "--area", "area.json", "--turbines", "5"]
    code, out, _ = inside(*common, "--time-budget-s", "1.5", "-o", "timed.csv")
    assert code == 0
    assert "the time budget is spent" in out
    work = re.search(r"work (\d+)$", out, re.M)[1]
    assert inside(*common, "--work", work, "-o", "counted.csv")[0] == 0
    assert (tmp_path / "timed.csv").read_bytes() == (tmp_path / "counted.csv").read_bytes()


def test_nobody_reads_the_output_and_the_file_is_there(tmp_path):
    (tmp_path / "area.json").write_text(json.dumps(SQUARE))
    reader, writer = os.pipe()
    os.close(reader)
    arguments = ["optimise", "--area", "area.json", "--turbines", "3", "--recipe", "random", "-o", "layout.csv"]
    result = subprocess.run([*COMMAND, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    os.close(writer)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert len(read(tmp_path / "layout.csv")["x_m"]) == 3


def test_a_start_can_be_repaired(inside, tmp_path):
    (tmp_path / "area.json").write_text(json.dumps(SQUARE))
    (tmp_path / "start.csv").write_text("x_m,y_m\n-100,100\n2000,2000\n2010,2000\n")
    arguments = ["optimise", "--area", "area.json", "--start", "start.csv", "--recipe", "start", "-o", "moved.csv"]
    code, _, err = inside(*arguments)
    assert code == 2
    assert "--repair-start" in err
    assert inside(*arguments, "--repair-start")[0] == 0
    moved = read(tmp_path / "moved.csv")
    assert moved["x_m"][0] >= 0
    assert np.hypot(moved["x_m"][1] - moved["x_m"][2], moved["y_m"][1] - moved["y_m"][2]) >= 720


def test_a_recipe_in_the_current_folder(tmp_path):
    (tmp_path / "area.json").write_text(json.dumps(SQUARE))
    (tmp_path / "mine.py").write_text("def good(problem, seed): return [0, 4000], [0, 4000]\n")
    (tmp_path / "mine.py").open("a").write("def bad(problem, seed): return [0, 4000], [0, 5000]\n")
    arguments = ["optimise", "--area", "area.json", "--turbines", "2", "-o", "x.csv", "--recipe"]
    result = command(*arguments, "mine:good", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert read(tmp_path / "x.csv")["x_m"].tolist() == [0, 4000]
    (tmp_path / "x.csv").unlink()
    result = leeward_here(*arguments, "mine:bad", cwd=tmp_path)
    sys.modules.pop("mine")
    assert result.returncode == 1
    assert "not feasible: outside the area: turbine 1 (by 1000 m)" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--picture", "layout.gif"], "expected one of .png, .svg, .pdf"),
        (["-o", "nowhere/layout.csv"], "nowhere/layout.csv: cannot be written (No such file or directory)"),
        (["--picture", "nowhere/layout.png"], "nowhere/layout.png: cannot be written"),
        (["-o", "/"], "is a folder"),
        (["-o", "a.png", "--picture", "a.png"], "give two different files"),
        (["--area", "nowhere.json"], "nowhere.json: no such file"),
        (["--farm-idx", "10"], "farm_idx is 10; expected one of the 10 built-in areas"),
        (["--area-name", "somewhere"], "give --area too"),
        (["--turbines", "0"], "n_turbines is 0"),
        (["--turbines", "5000"], "5000 turbines 720 m apart do not fit"),
        (["--spacing-m", "500", "--spacing-diameters", "2"], "as spacing_m or as spacing_diameters, not both"),
        (["--spacing-m", "-1"], "spacing_m is -1"),
        (["--rotor-diameter-m", "0"], "rotor_diameter_m is 0"),
        (["--seed", "-1"], "seed is -1"),
        (["--recipe", "magic"], "recipe is 'magic'; expected one of"),
        (["--recipe", "nowhere_at_all:magic"], "cannot be imported"),
        (["--recipe", "start"], "needs a start layout"),
        (["--effort", "heroic"], "effort is 'heroic'"),
        (["--time-budget-s", "0"], "time_budget_s is 0"),
        (["--grid-size", "1"], "grid_size is 1"),
        (["--random-pct", "101"], "random_pct is 101"),
        (["--start", "nowhere.csv"], "nowhere.csv: no such file"),
        (["--site", "nowhere.nc"], "nowhere.nc: no such file"),
        (["--wake-model", "larsen"], "unknown wake model 'larsen'"),
    ],
)
def test_wrong_use(inside, tmp_path, arguments, says):
    # good names for the files, unless those are what is wrong: none may be there afterwards
    files = [] if {"-o", "--picture"} & set(arguments) else ["-o", "layout.csv", "--picture", "layout.png"]
    code, out, err = inside("optimise", *arguments, *files)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_start_that_is_not_feasible(inside, tmp_path):
    (tmp_path / "start.csv").write_text("x_m,y_m\n0,0\n100,0\n")
    code, _, err = inside("optimise", "--start", "start.csv", "-o", "layout.csv")
    assert code == 2
    assert "start is not feasible: outside the area: turbine 0" in err
    assert err.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["start.csv"]


# In this process every step of the optimiser is shown: nobody can miss the one that a test waits for.
SHOW_ALL = "import leeward.cli.optimise; leeward.cli.optimise.PROGRESS_EVERY_S = 0.0; "


class Terminal:
    """The command line with a terminal for its standard error.

    A thread reads the screen all the time: whoever writes to a screen that nobody reads waits once it is full.
    """

    def __init__(self, *arguments, cwd):
        self.screen, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND[:-1], SHOW_ALL + COMMAND[-1], *arguments],
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
            cwd=cwd,
            # a test run in the background ignores Ctrl-C, and its processes inherit that
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(theirs)
        self.seen = ""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        """Read until nobody has the screen open, which Linux reports as an error; a letter may come in two pieces."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        while True:
            try:
                piece = os.read(self.screen, 4096)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                return
            self.seen += decoder.decode(piece)

    def wait_for(self, text):
        until(lambda: text in self.seen or not self.reader.is_alive(), f"{text!r} on the screen")
        assert text in self.seen

    def press_ctrl_c(self):
        self.process.send_signal(signal.SIGINT)

    def result(self):
        """Return the exit code and the standard output."""
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        self.reader.join(PATIENCE_S)
        return self.process.returncode, out

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.reader.join(PATIENCE_S)
        os.close(self.screen)


@pytest.fixture
def terminal(tmp_path):
    """Start a command on a terminal; it is killed at the end of the test if it still runs."""
    started = []

    def run(*arguments):
        started.append(Terminal(*arguments, cwd=tmp_path))
        return started[-1]

    yield run
    for each in started:
        each.close()


ENDLESS = str(10**15)  # more work than any machine gets done


@pytest.mark.parametrize(
    ("moment", "grid_size"), [("descent", "18"), pytest.param("placing turbines", "50", marks=pytest.mark.slow)]
)
def test_ctrl_c_keeps_the_best_layout(tmp_path, problem, terminal, moment, grid_size):
    command = terminal("optimise", "--work", ENDLESS, "--grid-size", grid_size, "-o", "x.csv", "--picture", "x.png")
    command.wait_for(moment)
    command.press_ctrl_c()
    code, out = command.result()
    assert code == 130
    assert "a stop was requested" in out
    layout = read(tmp_path / "x.csv")
    assert problem.violation(layout["x_m"], layout["y_m"]).is_feasible
    assert f"{problem.farm.aep_gwh(layout['x_m'], layout['y_m']):.2f}" == printed_aep(out)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.csv", "x.png"]


def test_ctrl_c_ends_a_recipe_that_cannot_be_asked(tmp_path, terminal):
    (tmp_path / "slow.py").write_text(
        "import sys, time\n"
        "def recipe(problem, seed):\n"
        "    print('started', file=sys.stderr)\n"
        "    while True:\n"
        "        time.sleep(1)\n"
    )
    command = terminal("optimise", "--recipe", "slow:recipe", "-o", "x.csv")
    command.wait_for("started")
    command.press_ctrl_c()
    command.wait_for("interrupted; nothing was written")
    assert command.result() == (130, "")
    assert not (tmp_path / "x.csv").exists()
