"""docs/reliability.md names the tests behind each promise: they are there, and run where the page says."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reliability.md"
WHOLE_SUITE = 60  # test files: fewer are collected where somebody names the files to run


def promises():
    """Return the numbers of the promises, and the test files in both columns of the table of each."""
    text = PAGE.read_text()
    numbers = re.findall(r"^(\d)\. \*\*", text, re.MULTILINE)
    rows = re.findall(r"^\| (\d) [^|]*\|([^|]*)\|([^|]*)\|$", text, re.MULTILINE)
    return numbers, {number: [re.findall(r"`([\w/]+\.py)`", cell) for cell in cells] for number, *cells in rows}


def test_each_promise_names_tests_that_exist():
    numbers, named = promises()
    assert numbers == sorted(named)
    for number, (quick, added) in named.items():
        assert quick, number
        assert added, number
        assert [name for name in quick + added if not (ROOT / "tests" / name).is_file()] == []


def test_each_promise_has_tests_among_those_that_run(request):
    """In `make test` the slow ones are not among them."""
    collected = {item.path.relative_to(ROOT / "tests").as_posix() for item in request.session.items}
    if len(collected) < WHOLE_SUITE:
        pytest.skip("only where the whole suite is collected")
    for number, (quick, _) in promises()[1].items():
        assert set(quick) <= collected, f"promise {number}: no test of {set(quick) - collected} runs"


def test_the_front_page_repeats_what_is_not_promised():
    section = PAGE.read_text().split("## What is not promised")[1]
    limits = re.findall(r"^- \*\*([^*]+?)[.:]?\*\*", section, re.MULTILINE)
    front = (ROOT / "docs" / "index.md").read_text()
    assert len(limits) > 5
    assert [limit for limit in limits if f"**{limit}" not in front] == []
