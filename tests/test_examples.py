"""The examples run."""

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from run_cases import leeward_here

EXAMPLES = Path(__file__).parent.parent / "examples"

needs_topfarm = pytest.mark.skipif(importlib.util.find_spec("topfarm") is None, reason="topfarm is not installed")


@pytest.mark.slow  # importing TopFarm alone takes four seconds
@needs_topfarm
def test_topfarm_as_a_recipe(tmp_path):
    """It ends only if leeward found the layout feasible."""
    command = [sys.executable, str(EXAMPLES / "topfarm_recipe.py"), "--turbines", "3", "--steps", "5"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = re.findall(r"^(TopFarm|leeward): AEP +([\d.]+) GWh.* closest +([\d.]+) m", result.stdout, re.M)
    assert [name for name, _, _ in found] == ["TopFarm", "leeward"]
    for _, aep, closest in found:
        assert 200 < float(aep) < 300
        assert float(closest) >= 720
    assert not list(tmp_path.iterdir())


@pytest.mark.slow  # importing TopFarm alone takes four seconds
@needs_topfarm
def test_what_the_topfarm_recipe_cannot_do(tmp_path):
    program = (
        "import topfarm_recipe; from leeward.campaign import builtin; from leeward.layout import Area, LayoutProblem; "
        "from leeward.wind import WindFarm; "
        "area = Area.from_arrays([0, 9000, 0], [0, 0, 9000], holes=[([500, 900, 500], [500, 500, 900])]); "
        "problem = LayoutProblem(WindFarm(builtin.site(), builtin.turbines()[0]), area, 2, spacing_m=500); "
        "topfarm_recipe.optimise(problem, 0)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, cwd=EXAMPLES)
    assert "cannot do an area that is not one polygon without holes" in result.stderr


@pytest.mark.slow
@needs_topfarm
def test_smart_start_beside_topfarm_on_a_ridge(tmp_path):
    """It has TopFarm's positions and PyWake's AEP."""
    shutil.copytree(EXAMPLES / "complex-terrain", tmp_path, dirs_exist_ok=True)
    grids = Path(importlib.util.find_spec("py_wake").origin).parent / "examples" / "data" / "ParqueFicticio"
    shutil.copytree(grids, tmp_path / "ridge", ignore=shutil.ignore_patterns("*.pkl", "*.py", "__pycache__"))
    done = leeward_here("run", "campaign.yaml", "--recipe", "smart_start", "--seeds", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "beside_topfarm.py"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (row,) = re.findall(r"^0 .*", result.stdout, re.M)
    theirs, ours, _, away, *_ = map(float, row.split()[1:])
    assert (theirs, away) == (ours, 0.0)
    assert 60 < ours < 65
    assert float(re.search(r"differ by at most (\S+)", result.stdout)[1]) < 1e-9


def test_every_example_is_listed():
    listed = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f"({path.name})" in listed


README = (EXAMPLES.parent / "README.md").read_text()


def test_the_readme_shows_the_example():
    shown = re.search(r"```yaml\n(.*?)```", README, re.S)
    assert shown[1] == (EXAMPLES / "three-areas" / "campaign.yaml").read_text()


@pytest.mark.slow
def test_the_first_campaign_of_the_readme(tmp_path):
    """Its commands run as they are pasted, in a checkout."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    block = README.split("## A first campaign")[1].split("```")[1]
    commands = [shlex.split(line, comments=True) for line in block.strip().splitlines()]
    assert [command[:2] for command in commands][:2] == [["leeward", "run"], ["leeward", "run"]]
    for name, *words in commands:
        ended = leeward_here(*words, cwd=tmp_path)
        assert (name, ended.returncode) == ("leeward", 0), f"{words}\n{ended.stderr}"
    assert (tmp_path / "layout.png").is_file()
    assert (tmp_path / "report.html").is_file()
