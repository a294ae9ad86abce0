"""Pages of the dashboard: of every kind of place, whatever its files say, whatever happens to them meanwhile."""

import csv
import io
import os
import re
import shutil
import threading
from unittest import mock

import pytest

from foreign_files import own_result, write_foreign_file, write_own_file
from leeward.store.directory.lock import Lock
from leeward.store.directory.quarantine import quarantine
from leeward.store.directory.shards import shard_bytes
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.web import model as model_module, reading as reading_module
from resource_cases import make_field_campaign
from run_cases import leeward_here, make_campaign, until
from web_cases import FORMULA, HANGS_S, PAGES, Checked, Clock, beat, empty_run, fail, hostile_run, serving, store

TASK = "/task/farm0_t0_s0"


def visited(browser, *more):
    """Every page, each one checked; by address."""
    found = {}
    for path in (*PAGES, *more):
        text = browser.text(path)
        found[path] = Checked(text) if text.startswith("<!doctype") else text
    return found


def contents(folder):
    """Of everything in a folder: what it is, when it was changed, what is in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        state = path.stat()
        content = path.read_bytes() if path.is_file() else sorted(os.listdir(path))
        found[path] = state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_mode, content
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A real run of two seeds, merged."""
    folder = tmp_path_factory.mktemp("finished")
    beside = [{"x_m": [-1500.0], "y_m": [2500.0], "turbine": 0}]
    make_campaign(folder, seeds=2, crs="EPSG:25831", neighbours=beside)
    ended = leeward_here("run", "campaign.yaml", "--quiet", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return folder / "layouts.run"


@pytest.mark.slow
def test_nothing_is_written(finished):
    """Visiting all there is changes no file, no time, no folder."""
    before = contents(finished.parent)
    more = (f"{TASK}", f"{TASK}.csv", f"{TASK}.geojson", "/compare?a=farm0_t0_s0&b=farm0_t0_s1", "/tasks?farm=0&type=0")
    with serving(finished) as browser:
        pages = visited(browser, *more)
        for path in ("/nothing", "/task/farm5_t0_s0", "/tasks?page=-1"):
            assert browser.ask(path)[0] in (400, 404)
    assert contents(finished.parent) == before
    assert "2 of 2 layouts" in pages["/"].text
    assert "to scale. Rings: existing turbines." in pages["/map"].text
    assert pages["/tasks.csv"].count("\r\n") == 3
    assert "farm0_t0_s1" in pages["/compare?a=farm0_t0_s0&b=farm0_t0_s1"].text
    assert pages[f"{TASK}.geojson"].startswith('{"type": "FeatureCollection"')


def test_links_lead_somewhere(finished):
    with serving(finished, fresh=False) as browser:
        addresses = {address for path in (*PAGES, TASK, "/tasks?farm=0") for address in _addresses(browser, path)}
        for address in sorted(addresses):
            assert browser.ask(address)[0] == 200, address
    assert {TASK, f"{TASK}.csv", "/settings", "/style.css", "/live.js", "/icon.svg"} <= addresses


def _addresses(browser, path):
    text = browser.text(path)
    found = Checked(text).addresses if text.startswith("<!doctype") else []
    return {address for address in found if not address.startswith("#")} - {"/compare"}  # a form: it needs two names


def test_wake_losses_come_later(finished, monkeypatch):
    """A page does not wait for them, and says so; the next one has them."""
    may_end = threading.Event()

    def slow(*arguments, real=model_module.layout_view, **options):
        if options.get("with_losses", True):
            may_end.wait()
        return real(*arguments, **options)

    monkeypatch.setattr(model_module, "layout_view", slow)
    with serving(finished) as browser:
        first = Checked(browser.text(TASK))
        assert "they are being computed" in first.text
        may_end.set()
        until(lambda: "being computed" not in Checked(browser.text(TASK)).text, "the wake losses", 600)
        page = Checked(browser.text(TASK))
    assert "wake loss of a turbine" not in page.text  # in an attribute, for screen readers
    assert "No wake losses" not in page.text


# --- kinds of places -------------------------------------------------------------------------------------------------


def test_the_map_of_the_wind_is_computed_once(tmp_path, monkeypatch):
    """Where the wind varies, the settings have a map of it; without one while it is being computed."""
    make_field_campaign(tmp_path)
    ended = leeward_here("run", "campaign.yaml", "--engine", "inline", "--quiet", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    may_end, calls = threading.Event(), []

    def slow(campaign, real=model_module.resource_view):
        calls.append(campaign)
        may_end.wait()
        return real(campaign)

    monkeypatch.setattr(model_module, "resource_view", slow)
    with serving(tmp_path / "layouts.run") as browser:
        first = Checked(browser.text("/settings"))
        assert "The map of the wind is being computed." in first.text
        may_end.set()
        until(lambda: "being computed" not in Checked(browser.text("/settings")).text, "the map", 600)
        text = browser.text("/settings")
        assert "Mean free wind speed at 100 m above ground" in Checked(text).text
        assert text.partition('<g class="placed">')[2].partition("</g>")[0].count("<circle") == 6
        Checked(browser.text(TASK))
    assert len(calls) == 1


def test_uniform_wind_has_no_map(finished):
    with serving(finished) as browser:
        text = browser.text("/settings")
    assert "Frequency by direction and wind speed" in text
    assert "being computed" not in text
    assert 'class="resource"' not in text


def test_a_lone_file(finished, tmp_path):
    lone = tmp_path / "lone.h5"
    shutil.copyfile(finished.with_suffix(".h5"), lone)
    with serving(lone) as browser:
        pages = visited(browser, TASK)
    assert "2 of 2 layouts" in pages["/"].text
    assert "to scale. Rings: existing turbines." in pages["/map"].text
    assert "a merged file" in pages["/"].text
    assert "square 0" in pages["/settings"].text


def test_a_lone_file_with_its_index(finished, tmp_path):
    lone = tmp_path / "lone.h5"
    for ending in ("", ".index"):
        shutil.copy2(f"{finished.with_suffix('.h5')}{ending}", f"{lone}{ending}")
    with serving(lone) as browser:
        assert "2 of 2 layouts" in Checked(browser.text("/")).text
        assert browser.text("/tasks.csv").count(",done,") == 2


@pytest.mark.slow
def test_files_without_a_campaign(tmp_path):
    own = write_own_file(tmp_path / "own.h5", [own_result(0, 0, 0), own_result(3, 1, 5)])
    foreign = write_foreign_file(tmp_path / "foreign.h5", [(0, 0, 0), (3, 1, 5)], aep=-5300.1)
    one = write_own_file(tmp_path / "one.h5", [own_result(0, 0, 0, turbines=1)])
    for place in (own, foreign, one):
        with serving(place) as browser:
            pages = visited(browser, TASK, f"{TASK}.csv", "/tasks?farm=0", "/tasks?farm=0&type=0")
            assert "layout" in pages["/"].text
            assert "The campaign is not known" in pages["/settings"].text
            assert browser.ask(f"{TASK}.geojson")[0] == 404


def test_an_empty_run(tmp_path):
    with serving(empty_run(tmp_path).root) as browser:
        pages = visited(browser, TASK)
    assert "0 of 10 layouts" in pages["/"].text
    assert "not started" in pages[TASK].text


def test_a_run_without_its_campaign(tmp_path):
    paths = empty_run(tmp_path)
    store(paths, own_result(0, 0, 0, turbines=3))
    paths.campaign.unlink()
    with serving(paths.root) as browser:
        pages = visited(browser, TASK)
    assert "1 layout" in pages["/"].text
    assert "The campaign is not known" in pages["/settings"].text


def test_a_run_that_goes_on(tmp_path):
    paths = empty_run(tmp_path)
    store(paths, own_result(0, 0, 0, turbines=3))
    beat(paths, "farm0_t0_s1")
    lock = Lock.take(paths.lock)
    try:
        with serving(paths.root) as browser:
            pages = visited(browser, "/task/farm0_t0_s1")
            assert "running: process" in pages["/"].text
            assert "running" in pages["/task/farm0_t0_s1"].text
            assert "1 live worker" in pages["/workers"].text
            store(paths, own_result(0, 0, 1, turbines=3))
            assert "2 of 10 layouts" in Checked(browser.text("/")).text
            assert "farm0_t0_s1" in Checked(browser.text("/task/farm0_t0_s1")).text
    finally:
        lock.release()


# --- what files say --------------------------------------------------------------------------------------------------


def test_nothing_comes_out_of_texts(tmp_path):
    paths = hostile_run(tmp_path)
    more = (TASK, "/task/farm0_t0_s1", "/task/farm0_t0_s3", "/compare?a=farm0_t0_s0&b=farm1_t0_s0", "/tasks?farm=0")
    with serving(paths.root) as browser:
        pages = visited(browser, *more, "/map?type=0")
        for hostile in ("<script>zq()</script>", "%3Cscript%3Ezq()%3C/script%3E", "'\"><img src=x onerror=zq()>"):
            for path in ("/tasks?farm=", "/tasks?state=", "/tasks?sort=", "/?farms=", "/task/", "/compare?a=", "/"):
                status, _, body = browser.ask(path + hostile.replace(" ", "%20"))
                assert status in (400, 404)
                assert "zq" not in Checked(body.decode()).elements
    for path in ("/", "/map", "/failures", "/workers", "/settings", "/audit", TASK, "/task/farm0_t0_s1"):
        assert "<script>zq()</script>" in pages[path].text, path  # it is there, as a text
        assert pages[path].elements.count("script") == 1
    assert not any(set("\x00\x1b\x7f\u2028") & set(page.text) for page in pages.values() if isinstance(page, Checked))


def test_no_cell_is_a_formula(tmp_path):
    with serving(hostile_run(tmp_path).root) as browser:
        for path in ("/tasks.csv", f"{TASK}.csv", "/task/farm1_t0_s0.csv"):
            rows = list(csv.reader(io.StringIO(browser.text(path), newline="")))
            cells = [cell for row in rows for cell in row]
            assert not any(cell.lstrip(" ").startswith(tuple("=+@\t\r")) for cell in cells)
        assert f"'{FORMULA}" in cells


def test_a_campaign_with_half_a_character(tmp_path):
    """YAML can write it; no file of text can hold it."""
    paths = empty_run(tmp_path)
    text = paths.campaign.read_text()
    assert "name: square 0" in text
    paths.campaign.write_text(text.replace("name: square 0", 'name: "\\ud800 square"'))
    store(paths, own_result(0, 0, 0, turbines=3))
    with serving(paths.root) as browser:
        for path in (*PAGES, TASK, f"{TASK}.csv"):
            assert browser.ask(path)[0] in (200, 503), path


def test_a_damaged_result(tmp_path):
    paths = empty_run(tmp_path)
    store(paths, own_result(0, 0, 0, turbines=3), own_result(0, 0, 1, turbines=3), own_result(1, 0, 0, turbines=3))
    with serving(paths.root) as browser:
        assert "farm0_t0_s1" in Checked(browser.text("/map")).text  # the best of farm 0
        shard = paths.shard(Key(0, 0, 1))
        content = bytearray(shard.read_bytes())
        content[len(content) // 2] ^= 0xFF
        shard.write_bytes(content)
        assert "is damaged" in Checked(browser.text("/task/farm0_t0_s1", 404)).text
        pages = visited(browser, TASK)
        assert "farm1_t0_s0" in pages["/map"].text
        assert "farm0_t0_s1" not in pages["/map"].text
        quarantine(paths, shard, Verdict.BAD_SEAL, "<script>")
        assert "1 file in quarantine" in Checked(browser.text("/")).text


def test_failures_and_pages_of_them(tmp_path):
    paths = empty_run(tmp_path, seeds=130)
    for seed in range(120):
        paths.failure(Key(0, 0, seed)).parent.mkdir(exist_ok=True)
    fail(paths, Key(0, 0, 0))
    record = paths.failure(Key(0, 0, 0)).read_text()
    for seed in range(1, 120):
        paths.failure(Key(0, 0, seed)).write_text(record.replace("farm0_t0_s0", f"farm0_t0_s{seed}"))
    with serving(paths.root) as browser:
        assert "120 tasks failed" in Checked(browser.text("/failures")).text
        assert Checked(browser.text("/failures")).elements.count("article") == 100
        assert Checked(browser.text("/failures?page=1")).elements.count("article") == 20
        assert Checked(browser.text("/failures?page=999999")).elements.count("article") == 0
        assert browser.text("/tasks.csv?state=failed").count(",failed,") == 120


# --- what happens meanwhile ------------------------------------------------------------------------------------------


def test_an_empty_folder_has_no_table_without_rows(tmp_path):
    (tmp_path / "empty.run").mkdir()
    with serving(tmp_path / "empty.run") as browser:
        page = browser.text("/")
    assert "There are no results yet, and the campaign is not known." in page
    assert "best, GWh" not in page


def test_a_place_that_vanishes_and_comes_back(tmp_path):
    paths = empty_run(tmp_path)
    store(paths, own_result(0, 0, 0, turbines=3))
    with serving(paths.root) as browser:
        visited(browser, TASK)
        paths.root.rename(tmp_path / "away")
        for path in (*PAGES, TASK, f"{TASK}.csv", "/compare?a=farm0_t0_s0&b=farm0_t0_s0"):
            status, _, body = browser.ask(path)
            assert status == 503, path
            assert "no such file or folder" in Checked(body.decode()).text
            assert 'data-refresh="10"' in body.decode()  # it looks again by itself
        (tmp_path / "away").rename(paths.root)
        visited(browser, TASK)


def test_results_that_are_replaced(tmp_path):
    """Also where no index tells of it: what was read before is not shown again."""
    paths = empty_run(tmp_path)
    store(paths, own_result(0, 0, 0, turbines=3))
    with serving(paths.root) as browser:
        assert "100.0000 GWh" in Checked(browser.text(TASK)).text
        other = paths.shard(Key(0, 0, 0)).with_name("other")
        other.write_bytes(shard_bytes(own_result(0, 0, 0, turbines=3, aep=123.0)))
        other.rename(paths.shard(Key(0, 0, 0)))
        assert "123.0000 GWh" in Checked(browser.text(TASK)).text
        assert "123.0" in browser.text(f"{TASK}.csv")


def test_a_file_that_is_replaced(tmp_path):
    place = write_own_file(tmp_path / "own.h5", [own_result(0, 0, 0)])
    with serving(place) as browser:
        assert "1 layout" in Checked(browser.text("/")).text
        assert "100.00" in Checked(browser.text("/tasks")).text
        write_own_file(tmp_path / "new.h5", [own_result(0, 0, 0, aep=321.0), own_result(0, 0, 1)]).rename(place)
        assert "2 layouts" in Checked(browser.text("/")).text
        assert "321.00" in Checked(browser.text("/tasks")).text
        assert "321.0000 GWh" in Checked(browser.text(TASK)).text


def test_a_long_look_keeps_nobody_waiting(tmp_path, monkeypatch):
    """A page shows what the last look saw until the new one has ended. Only the first page waits for it."""
    paths = empty_run(tmp_path)
    may_end, clock = threading.Event(), Clock()
    looks = []

    def slow(path, real=reading_module.observe, **options):
        looks.append(path)
        if len(looks) > 1:
            may_end.wait()
        return real(path, **options)

    monkeypatch.setattr(reading_module, "observe", slow)
    monkeypatch.setattr(reading_module, "time", clock)
    with serving(paths.root, look_s=0.1) as browser:
        browser.text("/")
        store(paths, own_result(0, 0, 0, turbines=3))
        until(lambda: _layouts(browser) == "0 of 10" and len(looks) == 2, "a new look has begun")
        with mock.patch.object(reading_module, "WAIT_S", 10 * HANGS_S):
            clock.seconds += 10 * HANGS_S  # the first page has waited: another one that waits would never come
            assert _layouts(browser) == "0 of 10"
        assert len(looks) == 2  # one at a time
        may_end.set()
        until(lambda: _layouts(browser) == "1 of 10", "the new look is shown")


def _layouts(browser):
    """Return how many layouts the page shows, "0 of 10"."""
    return re.search(r"(\d+ of \d+) layouts", Checked(browser.text("/")).text)[1]
