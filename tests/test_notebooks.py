"""The notebooks run, and show what they store."""

import copy
import json
import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = EXAMPLES / "notebooks"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
MOST_BYTES = 600_000

each_notebook = pytest.mark.parametrize("name", sorted(path.name for path in NOTEBOOKS.glob("*.ipynb")))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def printed(cell):
    return "".join("".join(output.get("text", "")) for output in cell["outputs"] if output["output_type"] == "stream")


def key_figures(notebook):
    """The text that the cells tagged `numbers` print."""
    return "".join(printed(cell) for cell in code_cells(notebook) if "numbers" in cell["metadata"].get("tags", []))


def assert_same(fresh, stored, rel):
    """Compare two texts: the words must be equal, the numbers close."""
    assert NUMBER.sub("#", fresh) == NUMBER.sub("#", stored)
    assert [float(n) for n in NUMBER.findall(fresh)] == pytest.approx(
        [float(n) for n in NUMBER.findall(stored)], rel=rel
    )


@each_notebook
def test_the_stored_notebook(name):
    """It has outputs without errors, and nothing of the machine that made them."""
    path = NOTEBOOKS / name
    notebook = json.loads(path.read_text())
    cells = code_cells(notebook)
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert NUMBER.search(key_figures(notebook))
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    assert not [cell for cell in cells if "execution" in cell["metadata"]]
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert not re.search(r"/(tmp|home|root|work)/", json.dumps(outputs))
    assert path.stat().st_size < MOST_BYTES
    assert f"(notebooks/{name})" in (EXAMPLES / "README.md").read_text()


@pytest.mark.slow
@each_notebook
def test_notebook_runs(name, tmp_path, monkeypatch):
    """It runs in any folder, leaves nothing there, and prints the stored numbers.

    Optimised layouts depend on the last bits of the AEP, which differ between CPU families.
    """
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    stored = nbformat.read(NOTEBOOKS / name, as_version=4)
    if "py_wake" in "".join(cell.source for cell in code_cells(stored)):
        pytest.importorskip("py_wake")
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
        (tmp_path / variable.lower()).mkdir()
    (tmp_path / "here").mkdir()
    fresh = copy.deepcopy(stored)
    resources = {"metadata": {"path": str(tmp_path / "here")}}
    nbclient.NotebookClient(fresh, timeout=None, startup_timeout=600, resources=resources).execute()
    assert_same(key_figures(fresh), key_figures(stored), rel=1e-6 if name == "beside_pywake.ipynb" else 5e-3)
    assert not list((tmp_path / "here").iterdir())


def test_changed_numbers_are_noticed():
    assert_same("west 10.001 GWh", "west 10.002 GWh", rel=1e-3)
    with pytest.raises(AssertionError):
        assert_same("west 10.1 GWh", "west 10.2 GWh", rel=1e-3)
    with pytest.raises(AssertionError):
        assert_same("east 10 GWh", "west 10 GWh", rel=1e-3)
