"""How the dashboard looks and is read: on a phone, in the dark, without colours, by a screen reader."""

import io
import itertools
import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from browser_cases import DESKTOP, PHONE, Browser
from run_cases import leeward_here

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.browser

CHECKS = Path(__file__).with_name("browser_checks.js").read_text()
PAGES = (
    "/",
    "/map?type=1",
    "/tasks",
    "/tasks?farm=0",
    "/tasks?farm=0&type=1",
    "/tasks?seed=99",
    "/workers",
    "/failures",
    "/settings",
    "/audit",
    "/task/farm0_t0_s0",
    "/task/farm0_t1_s3",
    "/compare?a=farm0_t0_s0&b=farm1_t1_s1",
)
OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
BROKEN = """
const lines = word => {
    const range = document.createRange();
    range.setStart(word.node, word.at);
    range.setEnd(word.node, word.at + word.text.length);
    return new Set([...range.getClientRects()].map(box => Math.round(box.top))).size;
};
const words = node => [...node.data.matchAll(/\\S+/g)].map(found => ({node, at: found.index, text: found[0]}));
const found = [];
for (const cell of document.querySelectorAll("th, td.number")) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) found.push(...words(walker.currentNode));
}
return found.length ? found.filter(word => lines(word) > 1).map(word => word.text) : ["no words at all"];
"""
CUT_OFF = """return [...document.querySelectorAll(".wide, figure, pre")]
    .filter((e) => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)
    .map((e) => e.textContent.slice(0, 60))"""
PAPER = (720, 1000)  # A4 without its margins, pixels
STATES = ("done", "failed", "running", "missing")

# G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, A physiologically-based model for simulation of color vision
# deficiency, IEEE TVCG 15(6), 2009, table 1, severity 1.0; for linear RGB
SIGHT = {
    "full": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def wrong(browser: Browser, check: str, *arguments) -> list[str]:
    """What is wrong with every page."""
    found = []
    for page in PAGES:
        browser.open(page)
        browser.run(OPEN_ALL)
        found += [f"{page}: {words}" for words in browser.run(CHECKS, check, *arguments)]
    return found


def test_pages_are_well_formed(shown):
    assert wrong(shown, "structure") == []


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_nothing_is_wider_than_the_window(shown, size):
    shown.looks(size=size)
    assert wrong(shown, "width", size[0]) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("page", "box"), [("/tasks", "#tasks .wide"), ("/task/farm0_t0_s0", "figure:has(.chart)")])
def test_what_goes_on_beyond_an_edge_has_a_shadow_there(shown, page, box, scheme):
    """And none once it is scrolled to its end: at the left before, at the right then."""
    shown.looks(size=PHONE, scheme=scheme)
    shown.open(page)
    assert _shadows(shown, box, 0) == (False, True)
    assert _shadows(shown, box, 100) == (True, True)
    assert _shadows(shown, box, 10_000) == (True, False)


def _shadows(browser: Browser, box: str, scrolled: int) -> tuple[bool, bool]:
    """Whether the outermost pixels at the left and at the right are of another colour than the page, mostly."""
    found = browser.all(box)[0]
    browser.run("arguments[0].scrollLeft = arguments[1]; arguments[0].scrollIntoView()", found, scrolled)
    browser.drawn()
    pixels = matplotlib.image.imread(io.BytesIO(found.screenshot_as_png))[..., :3]
    off = np.abs(pixels - np.asarray(_colour(browser, "body", "background-color"))).max(axis=2)
    return tuple(bool(np.median(off[:, column]) > 0.1) for column in (1, -2))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out(shown, scheme):
    shown.looks(scheme=scheme)
    assert wrong(shown, "contrast") == []
    is_dark = sum(_colour(shown, "body", "background-color")) < 1.5
    assert is_dark == (scheme == "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_states_can_be_told_apart(shown, scheme):
    """By their colours, however few somebody sees: 20 is about ten times the least difference that eyes notice."""
    shown.looks(scheme=scheme)
    shown.open("/")
    colours = {state: _colour(shown, f".key-list .fill-{state}", "background-color") for state in STATES}
    for sight, (one, other) in itertools.product(SIGHT, itertools.combinations(STATES, 2)):
        difference = np.linalg.norm(_seen(colours[one], sight) - _seen(colours[other], sight))
        assert difference > 20, f"{one} and {other} to somebody with {sight}: {difference:.1f}"


def test_states_have_signs_and_words(shown):
    shown.open("/")
    entries = [entry.split(maxsplit=1) for entry in shown.texts("#grid .key-list li")]
    assert len(entries) == len(STATES)
    assert len({sign for sign, _ in entries}) == len({words for _, words in entries}) == len(STATES)
    cell = shown.one("#grid a.cell[href*='farm=0&type=0']")
    assert re.fullmatch(r"13/14 ✗1", cell.text), cell.text
    assert "13 of 14 done, 1 failed" in cell.get_attribute("title")


def _colour(browser: Browser, selector: str, name: str) -> tuple[float, ...]:
    """Red, green and blue, 0 to 1, as it is shown."""
    css = browser.run("return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, name)
    return tuple(int(part) / 255 for part in re.findall(r"\d+", css)[:3])


def _seen(colour: tuple[float, ...], sight: str) -> np.ndarray:
    """In CIELAB (D65), where differences are about as large as they look; as somebody sees it."""
    rgb = np.asarray(colour)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.asarray(SIGHT[sight]) @ linear, 0.0, 1.0)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = (_cube_root(value) for value in np.asarray(to_xyz) @ linear / (0.9505, 1.0, 1.089))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def _cube_root(value: float) -> float:
    return float(np.cbrt(value)) if value > 0.008856 else 7.787 * value + 16 / 116


def test_a_report_is_as_good_as_a_page(window, campaign, tmp_path):
    """From a disk: nothing is asked for, nothing complained about, nothing wider than a phone."""
    done = leeward_here("report", "layouts.run", "-o", tmp_path / "report.html", "-q", cwd=campaign)
    assert done.returncode == 0, done.stderr
    window.leave()
    window.complaints()
    window.requests()
    for size in (PHONE, DESKTOP):
        window.looks(size=size)
        window.driver.get(f"file://{tmp_path / 'report.html'}")
        window.run(OPEN_ALL)
        assert window.run(CHECKS, "width", size[0]) == []
        assert window.run(CHECKS, "structure") == []
    assert window.complaints() == []
    assert {address.partition(":")[0] for address in window.requests()} == {"file"}


def test_nothing_is_cut_off_on_paper(window, campaign, tmp_path):
    """Which does not scroll."""
    done = leeward_here("report", "layouts.run", "-o", tmp_path / "report.html", "-q", cwd=campaign)
    assert done.returncode == 0, done.stderr
    window.looks(size=PAPER)
    window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    window.driver.get(f"file://{tmp_path / 'report.html'}")
    window.run(OPEN_ALL)
    cut, broken = window.run(CUT_OFF), window.run(BROKEN)
    window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert cut == []
    assert broken == [], "a number or a heading that goes on in the next line within a word"
