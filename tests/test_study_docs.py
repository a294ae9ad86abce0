"""The example of docs/studies.md: its commands run in order, and print the lines that the page shows."""

import contextlib
import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys

import pytest

from leeward.study import load_study
from test_tutorials import BLOCK, EXAMPLES, ROOT, shape, type_in

EXAMPLE = EXAMPLES / "neighbours"
PAGE = (ROOT / "docs" / "studies.md").read_text()
PARTS = {"neighbours": PAGE.partition("\n## Regret\n")[0]}  # the part of the page about each example
PARTS["regret"] = PAGE.partition("\n## Regret\n")[2].partition("\n## Keys\n")[0]


def test_the_committed_wind_is_what_the_script_writes(tmp_path):
    script = shutil.copy(EXAMPLE / "make_wind.py", tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert (tmp_path / "wind-daily.csv").read_bytes() == (EXAMPLE / "wind-daily.csv").read_bytes()


def test_the_page_shows_the_files():
    shown = {(name, title): text for name in PARTS for _, title, text in BLOCK.findall(PARTS[name]) if title}
    assert {title for name, title in shown if name == "neighbours"} == {"campaign.yaml", "study.yaml", "surrogate.py"}
    assert ("regret", "study.yaml") in shown
    for (name, title), text in shown.items():
        assert text == (EXAMPLES / name / title).read_text(), f"{name}/{title} is not what the page shows"
    wind = next(text for _, _, text in BLOCK.findall(PAGE) if text.startswith("date,wind_speed_m_s"))
    assert (EXAMPLE / "wind-daily.csv").read_text().startswith(wind)


def yaml_of(text):
    """The block of the page that starts with this text."""
    return next(block for language, _, block in BLOCK.findall(PAGE) if language == "yaml" and block.startswith(text))


def layouts_csv(folder, keys):
    """A file of layouts with two turbines each, far apart from each other."""
    lines = [f"{key},{20_000 * number + x},0" for number, key in enumerate(keys) for x in (0, 2000)]
    (folder / "layouts.csv").write_text("\n".join(["key,x_m,y_m", *lines]) + "\n")


STUDY = """
layouts: {alone: {file: layouts.csv, campaign: danish-energy-island}}
targets: farm0_t0_s0
wind: {file: wind-daily.csv, columns: {time: date}, hours_per_step: 24}
"""


def test_the_lists_and_tables_of_the_reference_are_read(tmp_path):
    shutil.copy(EXAMPLE / "wind-daily.csv", tmp_path)
    layouts_csv(tmp_path, ["farm0_t0_s0", "farm1_t0_s2", "farm1_t0_s0", "farm2_t0_s0"])
    path = tmp_path / "study.yaml"
    path.write_text(STUDY + yaml_of("scenarios:\n  - name: today") + yaml_of("windows: {whole"))
    study = load_study(path)
    assert list(study.scenarios.values()) == ["today", "one neighbour", "rough sea"]
    assert [one.first for one in study.neighbours(1)] == [485]
    assert study.overrides(2) == {"turbulence_intensity": 0.12, "wake_model.expansion": 0.06}
    assert study.windows == ("whole", "first", "2022", "2023", "2024")
    table = next(text for _, _, text in BLOCK.findall(PAGE) if text.startswith("scenario,weight"))
    (tmp_path / "scenarios.csv").write_text(table)
    path.write_text(STUDY + yaml_of("scenarios: {file: scenarios.csv}"))
    study = load_study(path)
    assert dict(study.weights) == {0: 0.7, 1: 0.3}
    assert [(one.first, one.end) for one in study.neighbours(0)] == [(0, None), (151, 730)]


def test_the_mapping_of_published_samples_is_read(tmp_path):
    xarray = pytest.importorskip("xarray")
    shutil.copy(EXAMPLE / "wind-daily.csv", tmp_path)
    layouts_csv(tmp_path, ["farm0_t0_s0", "farm1_t5_s7", "farm2_t0_s8"])
    numbers = {"rated_power": [[15, 10]], "construction_day": [[3, 0]], "ss_seed": [[7, 8]]}
    variables = {name: (("sample", "farm"), values) for name, values in numbers.items()}
    samples = xarray.Dataset(variables, coords={"sample": [4], "farm": [0, 1]})
    samples.to_netcdf(tmp_path / "samples.nc", engine="h5netcdf")
    (tmp_path / "study.yaml").write_text(STUDY + yaml_of("scenarios:\n  file: samples.nc"))
    study = load_study(tmp_path / "study.yaml")
    assert [(one.name, one.first) for one in study.neighbours(4)] == [
        ("alone:farm2_t0_s8", 0),
        ("alone:farm1_t5_s7", 3),
    ]


def run_other(line, shown, folder):
    """Run a command that is not one of leeward; every line that the page shows must be printed."""
    name, *words = shlex.split(line)
    program = {"python": sys.executable, "sed": "sed"}[name]
    done = subprocess.run([program, *words], capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    printed = [shape(line) for line in done.stdout.splitlines()]
    assert [shape(line) for line in shown.splitlines()] == printed, line


@pytest.mark.slow  # 36 layouts, 80 evaluations and scikit-learn; 36 refined layouts
@pytest.mark.parametrize(("name", "commands"), [("neighbours", 14), ("regret", 5)])
def test_the_tutorial(tmp_path, name, commands):
    pytest.importorskip("sklearn")
    shutil.copytree(EXAMPLES / name, tmp_path, dirs_exist_ok=True)
    ran = []
    for language, title, text in BLOCK.findall(PARTS[name]):
        if language == "console":
            for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
                line, _, shown = part.partition("\n")
                if line.startswith("leeward "):
                    type_in(f"$ {part}", tmp_path)
                else:
                    run_other(line, shown, tmp_path)
                ran.append(line)
        elif language == "python" and not title:
            with contextlib.chdir(tmp_path), contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(text, "studies.md", "exec"), {})
            assert printed.getvalue()
    assert len(ran) == commands, ran
