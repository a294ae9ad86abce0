"""The dashboard of a study in a real browser: watched while results arrive, and walked through."""

import pytest

from browser_cases import dashboard
from leeward.store import store_result
from watched_study import ABSENT, evaluated, run_of_study

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.browser

LINES = """return [...document.querySelectorAll("#power path.series")].map(
    (line) => getComputedStyle(line).stroke)"""


def test_a_study_is_watched_and_walked_through(browser, tmp_path):
    paths = run_of_study(tmp_path, ABSENT, merged=True)
    with dashboard("study.run", tmp_path) as (_, address):
        browser.enter(address)
        assert "10 of 12 evaluations" in browser.text("#progress")
        assert "Map" not in browser.text("nav")
        browser.run("window.mark = 1")
        for key in ABSENT:
            store_result(paths, evaluated(key))
        browser.until_text("12 of 12 evaluations", "#progress")
        assert browser.run("return window.mark") == 1, "the page was loaded again"
        assert len(browser.all("#grid tbody tr")) == 2
        browser.open("/tasks?target=1")
        assert len(browser.all("#tasks tbody tr")) == 6
        browser.click("#tasks tbody tr:nth-child(6) a")
        browser.arrives("/task/target1_scenario5")
        assert len(browser.all("svg.plan circle")) == 12  # the target and two neighbours, four turbines each
        assert len(set(browser.run(LINES))) == 6  # four cases, and two kinds of losses
        assert "15.00%" in browser.text("#facts")
