"""Fixtures of the tests in a browser: one window for all of them, and a finished campaign with failures to look at."""

import pytest

from browser_cases import BAD_SEED, MESSAGE, SEEDS, TURBINES, Browser, dashboard
from run_cases import leeward, make_campaign


@pytest.fixture(scope="session")
def window(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture
def browser(window):
    """Nothing may be said on the console, and nobody but the dashboard may be asked for anything."""
    window.leave()  # what an earlier test opened looks for news still
    window.looks()
    window.complaints()
    window.requests()
    yield window
    assert window.complaints() == []
    asked = window.requests()
    assert asked, "the browser did not tell what it asked for"
    assert [address for address in asked if not address.startswith(f"{window.base}/")] == []


@pytest.fixture(scope="session")
def campaign(tmp_path_factory):
    """The folder of 2 farms x 2 types x 14 seeds, 52 of which are done; those of one seed have failed."""
    folder = tmp_path_factory.mktemp("campaign")
    make_campaign(
        folder,
        farms=2,
        seeds=SEEDS,
        orders={BAD_SEED: f"fail={MESSAGE}"},
        turbines=TURBINES,
        crs="EPSG:25831",
    )
    done = leeward("run", "campaign.yaml", cwd=folder)
    assert done.returncode == 3, done.stderr
    return folder


@pytest.fixture(scope="session")
def served(campaign):
    """The address of its dashboard."""
    with dashboard("layouts.run", campaign) as (_, address):
        yield address


@pytest.fixture
def shown(browser, served):
    """The browser, let in."""
    browser.enter(served)
    return browser
