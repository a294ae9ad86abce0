"""The dashboard in a real browser: a live run that is watched, and a finished one that is walked through."""

import csv
import functools
import http.server
import io
import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from pyproj import Transformer

from browser_cases import BAD_SEED, MESSAGE, SEEDS, dashboard
from run_cases import LEEWARD, PATIENCE_S, computing, make_campaign, results, start, until

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.browser

FOCUS_IS = "return document.activeElement === document.querySelector(arguments[0])"
IN_SIGHT = """const box = document.querySelector(arguments[0]).getBoundingClientRect();
    return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && box.left >= 0"""
FILLS = """return [...document.querySelectorAll(".turbine")].map(
    (turbine) => [turbine.getAttribute("fill"), getComputedStyle(turbine).fill])"""
TURBINES_OF_PLANS = """return [...document.querySelectorAll("svg.plan")].map(
    (plan) => plan.querySelectorAll(".turbine").length)"""
ROWS = "#tasks tbody tr"


# --- while a run goes on ---------------------------------------------------------------------------------------------


@pytest.fixture
def live(tmp_path):
    """A run of six tasks that wait for their word each; those of seeds 1 and 3 fail."""
    orders = {seed: f"until=go{seed}" for seed in range(6)}
    orders[1] += f" fail={MESSAGE}"
    orders[3] += " fail=again"
    patient = {"workers": 2, "timeout_s": 3600}
    make_campaign(tmp_path, seeds=6, orders=orders, spacing_m=700, execution=patient)
    process = start("run", "campaign.yaml", cwd=tmp_path)
    run = tmp_path / "layouts.run"
    until(lambda: len(computing(run)) == 2, "two tasks are in work")
    yield tmp_path, process
    if process.poll() is None:
        for pid in computing(run).values():
            _send(pid, signal.SIGCONT)
        process.kill()
    process.wait()


def test_a_run_is_watched_without_reloading(browser, live):
    folder, process = live
    with dashboard("layouts.run", folder) as (server, address):
        browser.enter(address)
        assert browser.path == "/", "the token is still in the address bar"
        assert "0 of 6 layouts" in browser.text("#progress")
        browser.run("window.mark = 1")
        frozen = _freeze_worker_of("farm0_t0_s0", folder, browser)
        _fail_and_go_on(folder, browser)
        _sees_hung_worker(frozen, browser)
        _finish(folder, process, frozen, browser)
        _retry_as_told(folder, browser)
        assert browser.run("return window.mark") == 1, "the page was loaded again"
        assert browser.complaints() == []
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE_S)
        assert server.returncode == 0
        browser.until_text("does not respond", "#news")
        assert browser.run(IN_SIGHT, "#news"), "it stands where nobody sees it"
        browser.leave()
        assert all("Failed to load resource" in words for words in browser.complaints())  # that the server is gone


def _freeze_worker_of(task: str, folder: Path, browser) -> int:
    """It is seen at work, and is stopped; what follows happens while its silence grows."""
    words = browser.until_text("2 live workers", "#workers")
    assert re.search(rf"{task}\s+computing\s.*\d+ (s|min)\s.*\d+ (s|min) ago", words), words
    pid = until(lambda: computing(folder / "layouts.run").get(task), f"who computes {task}")
    os.kill(pid, signal.SIGSTOP)
    return pid


def _fail_and_go_on(folder: Path, browser) -> None:
    """A failure appears; what was opened and focused stays so while results come in."""
    (folder / "go1").touch()
    browser.until_text("1 task failed", "#failures")
    assert MESSAGE in browser.text("#failures")
    browser.click_until("#failures summary", "return document.querySelector('#failures details').open")
    assert "ValueError: no layout today" in browser.text("#failures pre")
    browser.run("document.querySelector('#grid tbody a.cell').focus()")
    (folder / "go2").touch()
    browser.until_text("1 of 6 layouts", "#progress")
    (folder / "go3").touch()
    browser.until_text("2 tasks failed", "#failures")
    until(lambda: browser.text("#grid tbody a.cell").split() == ["1/6", "✗2", "▶2"], "the next task is begun")
    assert browser.run(FOCUS_IS, "#grid tbody a.cell"), browser.focused()
    opened = browser.run("return [...document.querySelectorAll('#failures details')].map((each) => each.open)")
    assert opened == [True, False]
    assert browser.driver.title.startswith("1/6")


def _sees_hung_worker(pid: int, browser) -> None:
    """It alone: the other one is at work, even where it is held up for a while."""

    def hung() -> list[str]:
        return [line for line in browser.text("#workers").splitlines() if "looks hung" in line]

    until(lambda: len(hung()) == 1 and f"-{pid}-" in hung()[0], "one looks hung, the one that is")


def _finish(folder: Path, process: subprocess.Popen, frozen: int, browser) -> None:
    os.kill(frozen, signal.SIGCONT)
    for seed in (0, 4, 5):
        (folder / f"go{seed}").touch()
    process.wait(PATIENCE_S)
    assert process.returncode == 3
    browser.until_text("4 of 6 layouts", "#progress")
    browser.until_text("There are no live workers", "#workers")
    until(lambda: len(browser.all("#map .farm circle")) == 3, "the map has the best layout")


def _retry_as_told(folder: Path, browser) -> None:
    """The command is selected by a click, as for copying, and does what it says in a shell elsewhere."""
    copied = browser.click_until("#failure-farm0_t0_s1 .command", "return getSelection().toString()")
    assert copied.startswith("leeward run ")
    (folder / "orders" / "1").write_text("")
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "leeward"
    program.write_text(f'#!/bin/sh\nexec {" ".join(map(_quoted, LEEWARD))} "$@"\n')
    program.chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", copied],
        cwd=programs,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert set(results(folder / "layouts.h5")) == {f"farm0_t0_s{seed}" for seed in (0, 1, 2, 4, 5)}
    browser.until_text("5 of 6 layouts", "#progress")
    browser.until_text("1 task failed", "#failures")


def test_the_page_of_a_task_in_work_becomes_that_of_its_layout(browser, live):
    folder, _ = live
    with dashboard("layouts.run", folder) as (_, address):
        browser.enter(address)
        browser.open("/task/farm0_t0_s0")
        assert "running" in browser.text("#state")
        browser.run("window.mark = 1")
        (folder / "go0").touch()
        until(lambda: len(browser.all("#plan .turbine")) == 3, "the layout is shown")
        assert browser.run("return window.mark") == 1
        browser.leave()


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it has ended


# --- afterwards ------------------------------------------------------------------------------------------------------


def test_nobody_is_let_in_without_the_token(browser, served):
    browser.enter(served.partition("?")[0])
    browser.driver.delete_all_cookies()
    browser.driver.refresh()
    assert "token" in browser.text("body")
    assert "layouts" not in browser.text("body")
    refused = until(browser.complaints, "the browser says that it was refused")
    assert all("403" in words for words in refused), refused
    browser.enter(served)
    assert browser.run("return document.cookie") == "", "scripts can read the token"
    assert browser.path == "/"
    late = browser.complaints()  # the refused favicon, which the browser may report after the page
    assert all("403" in words for words in late), late


def test_the_address_may_be_clicked_on_another_sites_page(window, served, tmp_path):
    """In a web shell, or in a mail: the page that it leads to gets the cookie that was just set."""
    window.enter(served.partition("?")[0])
    window.driver.delete_all_cookies()
    (tmp_path / "mail.html").write_text(f'<a id="go" href="{served}">look</a>')
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        window.driver.get(f"http://localhost:{elsewhere.server_port}/mail.html")  # another site than 127.0.0.1
        window.click("#go")
        window.until_text("layouts", "body")
        elsewhere.shutdown()
    assert window.path == "/"


def test_a_cell_leads_to_its_tasks(shown):
    shown.open("/")
    shown.click("#grid a.cell[href*='farm=1&type=1']")
    shown.arrives("/tasks?farm=1&type=1&sort=-aep_gwh")
    rows = [row.split() for row in shown.texts(ROWS)]
    assert {row[0] for row in rows} == {f"farm1_t1_s{seed}" for seed in range(SEEDS)}
    aeps = [float(row[3]) for row in rows if row[2] == "done"]
    assert len(aeps) == SEEDS - 1
    assert aeps == sorted(aeps, reverse=True)
    shown.click(f"{ROWS}:first-child a")
    shown.arrives(f"/task/{rows[0][0]}")


def test_a_page_holds_fifty_tasks(shown):
    shown.open("/tasks")
    assert len(shown.all(ROWS)) == 50
    assert "1 to 50 of 56" in shown.text("#tasks .pager")
    shown.click("#tasks .pager a:first-of-type")  # there is none to an earlier page
    shown.arrives("/tasks?page=1")
    assert len(shown.all(ROWS)) == 6
    assert "51 to 56 of 56" in shown.text("#tasks .pager")


def test_a_task_shows_its_layout(shown, campaign):
    known = results(campaign / "layouts.h5")["farm1_t0_s5"]
    shown.open("/task/farm1_t0_s5")
    assert len(shown.all("#plan circle.turbine")) == known.n_turbines == 3
    assert f"{known.aep_gwh:.4f} GWh" in shown.text("#facts")
    until(lambda: _are_coloured(shown, 3), "the wake losses")
    assert shown.run("return getComputedStyle(document.querySelector('.spacing')).display") == "none"
    shown.click(".show-spacing")
    assert shown.run("return getComputedStyle(document.querySelector('.spacing')).display") == "inline"
    circles = shown.all("#plan .spacing circle")
    assert len(circles) == 3
    assert all(circle.is_displayed() for circle in circles)
    for code, drawn in shown.run(FILLS):
        assert _rgb(code) == tuple(map(int, re.findall(r"\d+", drawn)))


def _are_coloured(browser, count: int) -> bool:
    return browser.run("return document.querySelectorAll('.turbine[fill]').length") == count


def _rgb(code: str) -> tuple[int, ...]:
    return tuple(int(code[i : i + 2], 16) for i in (1, 3, 5))


# Statements for the process of a dashboard: the wake losses come when there is a file.
HELD = """
import os, time
from leeward.web import model

def held(*arguments, real=model.layout_view, **options):
    while options.get("with_losses", True) and not os.path.exists({go!r}):
        time.sleep(0.05)
    return real(*arguments, **options)

model.layout_view = held
"""


def test_colours_come_in_as_soon_as_they_are_known(browser, campaign, tmp_path):
    """The first ones take half a minute where the wake engine has to be compiled. Here the test holds them back."""
    with dashboard("layouts.run", campaign, before=HELD.format(go=str(tmp_path / "go"))) as (_, address):
        browser.enter(address)
        browser.open("/compare?a=farm0_t0_s0&b=farm1_t0_s1")
        browser.run("window.mark = 1")
        assert _are_coloured(browser, 0)
        assert "they are being computed" in browser.text("#comparison")
        (tmp_path / "go").touch()
        until(lambda: _are_coloured(browser, 6), "the wake losses")
        assert browser.run("return window.mark") == 1
        browser.leave()


def test_two_layouts_are_compared(shown, campaign):
    known = results(campaign / "layouts.h5")
    first, second = known["farm0_t0_s0"], known["farm0_t1_s2"]
    shown.open(f"/task/{first.key}")
    until(lambda: _are_coloured(shown, 3), "the wake losses")
    field = shown.one("#compare input[name=b]")
    field.clear()
    field.send_keys(str(second.key))
    shown.click("#compare button")
    shown.arrives(f"/compare?a={first.key}&b={second.key}")
    assert shown.run(TURBINES_OF_PLANS) == [3, 3]
    line = next(row for row in shown.texts("#comparison tbody tr") if row.startswith("AEP"))
    figures = [float(number) for number in re.findall(r"[-+]?\d+\.\d+", line)]
    assert figures[:3] == pytest.approx([first.aep_gwh, second.aep_gwh, second.aep_gwh - first.aep_gwh], abs=2e-3)


def test_files_are_saved(shown, campaign):
    known = results(campaign / "layouts.h5")["farm1_t1_s7"]
    shown.open("/task/farm1_t1_s7")
    files = {link.text: link for link in shown.all("main > p a")}
    rows = list(csv.DictReader(io.StringIO(shown.download(files["CSV"], "farm1_t1_s7.csv"))))
    columns = [name for name in rows[0] if name.endswith("_m")]
    layout = np.array([[float(row[name]) for row in rows] for name in columns[:2]])
    assert np.array_equal(layout, known.layout)
    drawn = json.loads(shown.download(files["GeoJSON"], "farm1_t1_s7.geojson"))
    points = [f["geometry"]["coordinates"] for f in drawn["features"] if f["geometry"]["type"] == "Point"]
    back = Transformer.from_crs("EPSG:4326", "EPSG:25831", always_xy=True).transform(*np.array(points).T)
    assert np.allclose(back, known.layout, atol=0.01)


def test_a_filtered_table_is_saved(shown):
    shown.open(f"/tasks?farm=1&seed={BAD_SEED}")
    link = next(link for link in shown.all("main a") if "CSV" in link.text)
    rows = list(csv.DictReader(io.StringIO(shown.download(link, "tasks.csv"))))
    assert [(row["key"], row["state"]) for row in rows] == [(f"farm1_t{t}_s3", "failed") for t in (0, 1)]


def test_failures_tell_what_to_do(shown):
    shown.open("/failures")
    assert "4 tasks failed" in shown.text("#failures")
    article = shown.text("#failure-farm1_t0_s3")
    assert MESSAGE in article
    assert "--only 'farm=1 type=0 seed=3'" in article
    shown.click("#failure-farm1_t0_s3 h3 a")
    shown.arrives("/task/farm1_t0_s3")
    assert "failed" in shown.text("#state")


def test_tasks_are_filtered_by_keyboard_alone(shown):
    from selenium.webdriver.common.keys import Keys

    shown.open("/tasks")
    shown.press(Keys.TAB)
    assert "Skip to content" in shown.focused()
    assert shown.run(IN_SIGHT, ".skip"), "where the focus is cannot be seen"
    shown.press(Keys.ENTER)
    until(lambda: shown.run("return location.hash") == "#content", "the content is gone to")
    shown.drawn()
    shown.press(Keys.TAB)
    assert shown.focused().startswith("select farm"), shown.focused()
    shown.press("1")
    shown.press(Keys.TAB, Keys.TAB, "6", Keys.ENTER)
    shown.arrives("/tasks?farm=1&type=&seed=6&state=")
    assert [row.split()[0] for row in shown.texts(ROWS)] == ["farm1_t0_s6", "farm1_t1_s6"]
    assert shown.run("return document.querySelector('[name=farm]').value") == "1"


def test_the_map_leads_to_layouts(shown):
    from selenium.webdriver.common.keys import Keys

    shown.open("/map?type=0")
    assert shown.text("nav.pager [aria-current]") == "t0 generic 10 MW"
    assert len(shown.all("#map .farm circle")) == 6
    shown.run("document.querySelector('#map svg a').focus()")
    shown.press(Keys.ENTER)
    until(lambda: re.fullmatch(r"/task/farm0_t0_s\d+", shown.path), "the key leads there")
