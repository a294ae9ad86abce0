"""Imports, command line, and what the files of the project say."""

import contextlib
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import leeward
from leeward.campaign import builtin
from leeward.wind import Site, Turbine, WindFarm, known_wake_models
from run_cases import leeward_here

ROOT = Path(__file__).parent.parent
HEAVY = ("numba", "h5py", "xarray", "pandas", "shapely", "matplotlib", "dask")


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=600)


def command(*arguments):
    return run("-c", "from leeward.cli import main; main()", *arguments)


def test_importing_is_light():
    program = f"import sys, leeward; print([m for m in {HEAVY} if m in sys.modules])"
    assert run("-c", program).stdout.strip() == "[]"


def test_help_imports_nothing_heavy():
    program = (
        "import sys, leeward.cli, typer.testing; "
        "result = typer.testing.CliRunner().invoke(leeward.cli.app, ['--help']); "
        "assert result.exit_code == 0 and 'aep' in result.output; "
        f"print([m for m in {(*HEAVY, 'numpy')} if m in sys.modules])"
    )
    assert run("-c", program).stdout.strip() == "[]"


def test_sites_and_turbines_need_no_compiler():
    program = (
        "import sys; from leeward.wind import Site, Turbine; Turbine.generic(15, 240, 150); "
        "Site.from_table([0], [8], [[1]]); print('numba' in sys.modules)"
    )
    assert run("-c", program).stdout.strip() == "False"


def test_version():
    assert command("--version").stdout.strip() == f"leeward {leeward.__version__}"
    assert f"## {leeward.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_aep_of_the_built_in_layout():
    _, turbine, x, y = builtin.example_layout()
    farm = WindFarm(builtin.site(), turbine)
    # made with TopFarm 2.7.1 and PyWake 2.6.20
    assert farm.aep_gwh(x, y) == pytest.approx(5246.569031939287, rel=1e-9)
    out = command("aep").stdout
    assert "5246.57  GWh" in out
    assert f"{farm.wake_loss(x, y):.2%}" in out


def test_aep_of_a_file(tmp_path, site_file):
    layout = tmp_path / "layout.csv"
    layout.write_text("name,x_m,y_m\na,0,0\nb,1000,0\n")
    turbine = ["--rated-power-mw", "10", "--rotor-diameter-m", "195"]
    result = leeward_here("aep", layout, "--site", site_file, *turbine, cwd=tmp_path)
    assert result.returncode == 0
    assert "x 10 MW, rotor 195 m" in result.stdout
    farm = WindFarm(Site.from_netcdf(site_file), Turbine.generic(10, 195, 150))
    assert f"{farm.aep_gwh([0, 1000], [0, 0]):.2f}  GWh" in result.stdout


def test_a_file_from_a_spreadsheet(tmp_path):
    layout = tmp_path / "layout.csv"
    layout.write_text("\ufeffx_m,y_m\r\n0,0\r\n\r\n\r\n5,oops\r\n", encoding="utf-8")
    assert "line 5: y_m is 'oops'" in leeward_here("aep", layout, cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("x_m\n1\n", "no column y_m; found x_m"),
        ("x_m,y_m\n1,2\n3,north\n", "line 3: y_m is 'north'; expected a number"),
        ("x_m,y_m\n", "no turbines; expected one row"),
        ("x_m,y_m\n1,2\n1,2\n", "turbines 0 and 1 are at the same point"),
        ("", "no column x_m; found nothing"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, content, says):
    layout = tmp_path / "layout.csv"
    layout.write_text(content)
    result = leeward_here("aep", layout, cwd=tmp_path)
    assert result.returncode == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["aep", "nowhere.csv"], "nowhere.csv: no such file"),
        (["aep", "--site", "nowhere.nc"], "nowhere.nc: no such file"),
        (["aep", "--wake-model", "larsen"], "unknown wake model 'larsen'"),
        (["aep", "--rated-power-mw", "15000"], "looks like kilowatts"),
    ],
)
def test_wrong_use(arguments, says, tmp_path):
    result = leeward_here(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_every_wake_model_is_documented():
    page = (ROOT / "docs" / "wake-models.md").read_text()
    for name in known_wake_models():
        assert f"`{name}`" in page


def test_readme():
    text = (ROOT / "README.md").read_text()
    assert re.search(r"^make demo", text, re.M)
    assert re.search(r"^make test", text, re.M)


PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
# test_tutorials.py and test_study_docs.py run these, with their commands
TUTORIALS = tuple(f"docs/{n}.md" for n in ("coming-from", "complex-terrain", "first-campaign", "own-farm", "studies"))
# these run a campaign with workers; so does docs/format.md, which is the quickest
RUNS = ("README.md", "docs/running.md", "docs/export.md", "docs/report.md")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = ROOT / page
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
        assert (path.parent / link).exists(), link


def example_of(page):
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page in RUNS else [])
        for page in PAGES
        if page not in TUTORIALS and example_of(page)
    ],
)
def test_the_examples_of_a_page_run(page, tmp_path, site_file):
    shutil.copy(site_file, tmp_path / "ref_site.nc")
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(example_of(page), page, "exec"), {"__name__": "__main__"})
