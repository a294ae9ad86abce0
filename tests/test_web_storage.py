"""The dashboard and storage that is slow, refuses or hangs; and what is kept of results."""

import threading

import pytest

from foreign_files import own_result
from leeward.errors import StorageError
from leeward.store.format.keys import Key
from leeward.watch import best_of_farms, snapshot
from leeward.web import model as model_module, reading as reading_module
from run_cases import leeward_here, make_campaign, until
from web_cases import HANGS_S, Checked, Clock, empty_run, serving, store

TASK = "/task/farm0_t0_s0"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A real run of two seeds, merged."""
    folder = tmp_path_factory.mktemp("finished")
    make_campaign(folder, seeds=2)
    ended = leeward_here("run", "campaign.yaml", "--quiet", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return folder / "layouts.run"


def test_a_long_look_that_fails_is_told(tmp_path, monkeypatch):
    """Nobody takes old figures for new ones because the disk is slow to refuse."""
    paths = empty_run(tmp_path)
    fails, may_end = threading.Event(), threading.Event()

    def refusing(path, real=reading_module.observe, **options):
        if fails.is_set():
            may_end.wait()
            raise StorageError("the disk is gone")
        return real(path, **options)

    monkeypatch.setattr(reading_module, "observe", refusing)
    with serving(paths.root, look_s=0.05) as browser:
        assert browser.ask("/")[0] == 200
        fails.set()
        assert browser.ask("/")[0] == 200
        may_end.set()
        until(lambda: browser.ask("/")[0] == 503, "the page says so")
        assert "the disk is gone" in browser.text("/tasks", 503)
        fails.clear()
        until(lambda: browser.ask("/")[0] == 200, "it is back")


def test_a_place_that_does_not_answer_is_told(tmp_path, monkeypatch):
    paths = empty_run(tmp_path)
    hangs, may_end, clock = threading.Event(), threading.Event(), Clock()

    def hanging(path, real=reading_module.observe, **options):
        if hangs.is_set():
            may_end.wait()
        return real(path, **options)

    monkeypatch.setattr(reading_module, "observe", hanging)
    monkeypatch.setattr(reading_module, "time", clock)
    words = "the storage has not responded for"
    with serving(paths.root, look_s=0.05) as browser:
        assert words not in browser.text("/")
        hangs.set()
        assert words not in browser.text("/")

        def is_said():
            clock.seconds += reading_module.OVERDUE_S + 1.0  # a look that began before the place hung may still end
            return words in browser.text("/")

        until(is_said, "the page says so")
        may_end.set()
        until(lambda: words not in browser.text("/"), "it is said no longer")


def test_files_that_may_not_be_looked_at(finished, monkeypatch):
    """Storage that refuses is no fault of ours."""
    with serving(finished) as browser:
        assert browser.ask(TASK)[0] == 200

        def refused(path):
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(model_module, "file_identity", refused)
        for path in (TASK, "/map", f"{TASK}.csv"):
            assert "Permission denied" in Checked(browser.text(path, 503)).text, path


def test_more_layouts_than_are_kept(finished, monkeypatch):
    """A page still gets the layout that it waits for when another one takes its place."""
    monkeypatch.setattr(model_module, "VIEWS_KEPT", 1)
    monkeypatch.setattr(model_module, "WAIT_S", HANGS_S - 30.0)
    may_go, began = threading.Event(), threading.Event()

    def slow(*arguments, real=model_module.layout_view, **options):
        began.set()
        may_go.wait()
        return real(*arguments, **options)

    monkeypatch.setattr(model_module, "layout_view", slow)
    statuses = []
    keys = [f"/task/farm0_t0_s{seed}" for seed in (0, 1)]
    with serving(finished) as browser:
        threads = [threading.Thread(target=lambda key=key: statuses.append(browser.ask(key)[0])) for key in keys]
        threads[0].start()
        began.wait()
        threads[1].start()
        until(lambda: browser.model._work._queue.qsize() == 1, "the second layout waits for its turn")
        may_go.set()
        for thread in threads:
            thread.join(HANGS_S)
    assert statuses == [200] * 2


def test_one_best_result_everywhere(tmp_path):
    """Of equal ones the first."""
    paths = empty_run(tmp_path)
    for seed in (2, 1, 3):
        store(paths, own_result(0, 0, seed, aep=100.0, turbines=3))
    seen = snapshot(paths.root)
    assert [cell.best_key for cell in seen.cells if cell.best_key] == ["farm0_t0_s1"]
    assert best_of_farms(seen.cells) == {0: Key(0, 0, 1)}
    with serving(paths.root) as browser:
        for path in ("/", "/map", "/tasks?farm=0&type=0"):
            assert "/task/farm0_t0_s1" in browser.text(path), path
        assert 'value="farm0_t0_s1"' in browser.text("/task/farm0_t0_s2")  # to be compared with
