"""Every task in columns: states, figures, orders and filters; and indexes that grow, are torn, and are replaced."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from foreign_files import own_result, write_own_file
from leeward.errors import InputError
from leeward.store.directory.index import IndexLines, encode_line, write_output_index
from leeward.store.format.keys import Key
from leeward.watch import STATES, TaskFilter, TaskTable, observe, present_at, task_filter
from leeward.watch.layouts import tasks as tasks_module
from leeward.watch.layouts.tasks import FIGURES, figures_in
from web_cases import beat, empty_run, fail, store


def table(paths):
    return TaskTable(observe(paths.root))


def keys(tasks, **wanted):
    return [str(task.key) for task in tasks.rows(tasks.chosen(TaskFilter(**wanted)))]


def line(seed, farm=0, **figures):
    return encode_line({**own_result(farm, 0, seed, turbines=3).index_line(), **figures})


def known(path):
    """The seconds that each result took, by key."""
    column = FIGURES.index("seconds")
    return {Key.parse(name): figures[column] for name, figures in figures_in(present_at(path).contents).items()}


# --- the table -------------------------------------------------------------------------------------------------------


def test_states(tmp_path):
    paths = empty_run(tmp_path)
    store(paths, own_result(0, 0, 0, turbines=3), own_result(7, 3, 9, turbines=3))  # one is of no campaign
    fail(paths, Key(0, 0, 0))
    fail(paths, Key(0, 0, 1))
    fail(paths, Key(0, 0, 2), final=False)
    beat(paths, "farm0_t0_s3")
    beat(paths, "farm0_t0_s0")
    beat(paths, "farm99_t0_s0")
    beat(paths, "nonsense")
    tasks = table(paths)
    assert len(tasks) == 11
    states = {str(task.key): task.state for task in tasks.rows(range(len(tasks)))}
    assert {key: state for key, state in states.items() if state != "missing"} == {
        "farm0_t0_s0": "done",
        "farm0_t0_s1": "failed",
        "farm0_t0_s2": "again",
        "farm0_t0_s3": "running",
        "farm7_t3_s9": "done",
    }
    assert list(states) == [str(key) for key in sorted(map(Key.parse, states))]
    assert tasks.find(Key(7, 3, 9)).aep_gwh == pytest.approx(107.309)
    assert tasks.find(Key(7, 3, 8)) is None
    assert tasks.find(Key(0, 0, 99)) is None
    assert tasks.find(Key(10**9 - 1, 0, 10**10 - 1)) is None


def test_nothing_at_all(tmp_path):
    paths = empty_run(tmp_path)
    paths.campaign.unlink()
    tasks = table(paths)
    assert len(tasks) == 0
    assert tasks.find(Key(0, 0, 0)) is None
    assert tasks.best_key(0, 0) is None
    assert keys(tasks, order="aep_gwh", backwards=True) == []


def test_every_filter_and_order_against_plain_loops(tmp_path):
    """The slow, obvious way: one dict a task, `sorted`, `if`."""
    paths = empty_run(tmp_path, seeds=8)
    rng = np.random.default_rng(3)
    shown = []
    for farm, seed in itertools.product((0, 1), range(8)):
        entry = {"key": Key(farm, 0, seed), "state": "missing"}
        if rng.random() < 0.7:
            aep, loss = float(rng.integers(1, 4)), float(rng.random())
            result = own_result(farm, 0, seed, turbines=3, aep=aep, wake_loss=loss, seconds=float(rng.integers(1, 4)))
            store(paths, result)
            entry |= {"state": "done", "aep_gwh": aep, "n_turbines": 3, **result.details}
        shown.append(entry)
    tasks = table(paths)
    orders = ("key", "state", "aep_gwh", "wake_loss", "seconds", "n_turbines", "min_spacing_m")
    choices = itertools.product((None, 0, 1, 5), (None, 3, 99), (None, "done", "missing"), orders, (False, True))
    for farm, seed, state, order, backwards in choices:
        kept = [
            entry
            for entry in shown
            if farm in (None, entry["key"].farm_idx)
            and seed in (None, entry["key"].seed)
            and state in (None, entry["state"])
        ]
        if order == "key":
            expected = kept[::-1] if backwards else kept
        else:
            values = {e["key"]: STATES.index(e["state"]) if order == "state" else e.get(order) for e in kept}
            sign = -1 if backwards else 1
            known = sorted((e for e in kept if values[e["key"]] is not None), key=lambda e: sign * values[e["key"]])
            expected = known + [e for e in kept if values[e["key"]] is None]
        found = keys(tasks, farm_idx=farm, seed=seed, state=state, order=order, backwards=backwards)
        assert found == [str(entry["key"]) for entry in expected], (farm, seed, state, order, backwards)


def test_the_best(tmp_path):
    paths = empty_run(tmp_path)
    store(paths, *(own_result(0, 0, seed, turbines=3, aep=aep) for seed, aep in enumerate((5.0, 9.0, 7.0))))
    tasks = table(paths)
    assert tasks.best_key(0, 0) == Key(0, 0, 1)
    assert tasks.best_key(1, 0) is None


def test_what_an_address_says():
    assert task_filter({}) == TaskFilter()
    given = {"farm": "3", "type": " 1 ", "seed": "0", "state": "done", "sort": "-aep_gwh", "page": "9"}
    assert task_filter(given) == TaskFilter(3, 1, 0, "done", "aep_gwh", True)
    for name, text in (
        ("farm", "-1"),
        ("seed", "1.0"),
        ("type", "٣"),
        ("farm", "9" * 11),
        ("state", "x"),
        ("sort", "--"),
    ):
        with pytest.raises(InputError, match=f"{name} is '"):
            task_filter({name: text})


# --- figures ---------------------------------------------------------------------------------------------------------


def test_lines_of_any_form():
    good = line(1, wake_loss=0.125, min_spacing_m=600.0, seconds=2.5)
    bare = encode_line({"key": "farm0_t0_s2"})
    turned = json.dumps({"seconds": 3, "wake_loss": None, "key": "farm1_t0_s4", "n_turbines": True}).encode() + b"\n"
    odd = b'{"key": "farm0_t0_s5", "seconds": %s, "wake_loss": NaN, "n_turbines": Infinity}\n' % (b"9" * 400)
    quick = figures_in([good])
    assert quick == {"farm0_t0_s1": (3.0, 0.125, 600.0, 2.5)}
    slow = figures_in([good + bare + turned + b"torn{\n[1]\n" + b"[" * 100_000 + b"\n" + odd])
    assert list(slow) == ["farm0_t0_s1", "farm0_t0_s2", "farm1_t0_s4", "farm0_t0_s5"]
    assert slow["farm0_t0_s1"] == quick["farm0_t0_s1"]
    assert np.isnan(slow["farm0_t0_s2"]).all()
    np.testing.assert_array_equal(slow["farm1_t0_s4"], [np.nan, np.nan, np.nan, 3.0])
    assert not np.isfinite(slow["farm0_t0_s5"]).any()
    assert figures_in([b""]) == {}
    assert figures_in([good + good[:40]]) == figures_in([good, good[:-1]]) == quick  # incomplete last lines


def test_a_figure_that_is_not_finite_is_unknown(tmp_path):
    paths = empty_run(tmp_path)
    store(paths, own_result(0, 0, 0, turbines=3))
    paths.index.write_bytes(line(0, seconds=5).replace(b'"seconds":5', b'"seconds":1e999'))
    assert table(paths).find(Key(0, 0, 0)).seconds is None


def test_a_spacing_without_end_hides_no_seconds():
    """One turbine alone is infinitely far from the next: what stands behind that in its line is still read."""
    now = line(0, wake_loss=0.0, min_spacing_m=float("inf"), seconds=5.0)
    for content in (now, now.replace(b"null", b"Infinity")):  # as older versions wrote it
        (figures,) = figures_in([content]).values()
        assert np.array_equal(figures[1:], [0.0, np.nan, 5.0], equal_nan=True)


def test_both_ways_of_reading_lines_agree():
    """Lines as leeward writes them, with any of the figures left out; a torn one among them makes it the slow way."""
    rng = np.random.default_rng(5)
    lines = b""
    for seed in range(200):
        figures = {name: float(rng.normal()) * 10.0 ** int(rng.integers(-12, 12)) for name in FIGURES[1:]}
        content = json.loads(line(seed)) | {name: value for name, value in figures.items() if rng.random() < 0.7}
        order = [name for name in (*content,) if name not in FIGURES[1:]] + [
            name for name in FIGURES[1:] if name in content
        ]
        lines += encode_line({name: content[name] for name in order})
    quick, slow = figures_in([lines]), figures_in([lines + b"{\n"])
    assert list(quick) == list(slow)
    np.testing.assert_array_equal(list(quick.values()), list(slow.values()))
    assert np.isnan(list(quick.values())).any()


def test_lines_are_parsed_in_blocks(monkeypatch):
    content = b"".join(line(seed, seconds=float(seed)) for seed in range(20))
    whole = figures_in([content])
    for size in (1, 300, 1000, len(content)):
        monkeypatch.setattr(tasks_module, "BLOCK", size)
        np.testing.assert_equal(figures_in([content]), whole)


def test_an_index_that_grows(tmp_path):
    paths = empty_run(tmp_path)
    assert known(paths.root) == {}
    whole = line(1, seconds=1.0)
    paths.index.write_bytes(line(0, seconds=1.0) + whole[:20])
    assert known(paths.root) == {Key(0, 0, 0): 1.0}  # the last line is in the making
    paths.index.write_bytes(line(0, seconds=1.0) + whole + line(0, seconds=5.0))
    assert known(paths.root) == {Key(0, 0, 0): 5.0, Key(0, 0, 1): 1.0}
    with paths.index.open("ab") as file:  # torn by a crash, and ended by the next run
        file.write(b'{"key":"farm0_t\n' + line(2, seconds=2.0))
    assert known(paths.root) == {Key(0, 0, 0): 5.0, Key(0, 0, 1): 1.0, Key(0, 0, 2): 2.0}
    paths.index.unlink()
    assert known(paths.root) == {}


def test_a_runs_own_index_counts_more_than_what_was_merged(tmp_path):
    paths = empty_run(tmp_path)
    merged(paths.output, own_result(0, 0, 0, turbines=3, seconds=1.0), own_result(0, 0, 1, turbines=3, seconds=1.0))
    paths.packs.mkdir()
    merged(paths.packs / "pack-000001-aaaaaaaa.h5", own_result(0, 0, 1, turbines=3, seconds=2.0))
    paths.index.write_bytes(line(0, seconds=9.0))
    assert known(paths.root) == {Key(0, 0, 0): 9.0, Key(0, 0, 1): 2.0}
    tasks = TaskTable(observe(paths.root))
    assert (tasks.find(Key(0, 0, 0)).seconds, tasks.find(Key(0, 0, 1)).seconds) == (9.0, 2.0)
    merged(paths.output, own_result(0, 0, 4, turbines=3, seconds=4.0))
    assert known(paths.root) == {Key(0, 0, 0): 9.0, Key(0, 0, 1): 2.0, Key(0, 0, 4): 4.0}


def merged(path, *results):
    write_own_file(path, results)
    lines = IndexLines()
    for result in results:
        lines.add(result.index_line())
    write_output_index(path, lines)


def test_a_lone_file_without_an_index(tmp_path):
    place = write_own_file(tmp_path / "own.h5", [own_result(0, 0, 0, seconds=4.0), own_result(2, 1, 7, seconds=5.0)])
    assert known(place) == {Key(0, 0, 0): 4.0, Key(2, 1, 7): 5.0}
    tasks = TaskTable(observe(place))
    assert tasks.find(Key(2, 1, 7)) == replace(tasks.row(1), key=Key(2, 1, 7))
    assert (tasks.row(1).n_turbines, tasks.row(1).wake_loss) == (5, 0.1)
