"""docs/architecture.md and its picture say what is true."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
sys.path.insert(0, str(ROOT / "tools"))

import architecture  # noqa: E402


def test_the_picture_shows_the_layers_of_the_import_contract():
    assert architecture.PICTURE.read_text() == architecture.svg(), "run python tools/architecture.py"


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([\w/]+\.py)`", PAGE))))
def test_a_file_that_the_page_names_is_there(name):
    folder = ROOT if name.startswith(("tests/", "tools/")) else ROOT / "src" / "leeward"
    # within a step, files of the package named before are named without it
    assert (folder / name).is_file() or list(folder.glob(f"*/{name}")), f"{name} is not in {folder}"


@pytest.mark.parametrize(("table", "file"), re.findall(r"\| `([A-Z]+)` in `([\w/]+\.py)` \|", PAGE))
def test_a_table_that_the_page_names_is_there(table, file):
    source = (ROOT / "src" / "leeward" / file).read_text()
    assert re.search(rf"^{table}\b.* = ", source, re.MULTILINE), f"no {table} in {file}"


def test_all_tables_of_the_page_are_looked_at():
    rows = PAGE.split("| to add |")[1].split("\n\n")[0].count("\n| ")
    assert len(re.findall(r"\| `([A-Z]+)` in `([\w/]+\.py)` \|", PAGE)) == rows == 11
