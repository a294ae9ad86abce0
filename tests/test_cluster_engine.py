"""What the coordinator's side of a cluster decides, with a scheduler and workers that only exist on paper."""

import time
from types import SimpleNamespace

import pytest

from leeward import __version__
from leeward.campaign import load
from leeward.engine import space
from leeward.engine.cluster import engine as module
from leeward.engine.cluster import handing, members, pilot
from leeward.engine.cluster.members import Member, Pace
from leeward.engine.outcomes import Began, Done, EngineLostError, Failed, Returned
from leeward.store.keys import Key
from leeward.store.paths import RunPaths
from run_cases import make_campaign


class PaperFuture:
    """What Dask would say of something that was submitted."""

    def __init__(self, key, function, arguments, workers):
        self.key, self.function, self.arguments, self.workers = key, function, arguments, workers
        self.status = "pending"
        self.released = False
        self._value = None
        self._callbacks = []

    def add_done_callback(self, callback):
        self._callbacks.append(callback)

    def end(self, status, value=None):
        self.status, self._value = status, value
        for callback in self._callbacks:
            callback(self)

    def done(self):
        return self.status != "pending"

    def result(self):
        return self._value

    def exception(self):
        return self._value

    def release(self):
        self.released = True


class PaperCluster:
    """A link, its client and its workers."""

    address = "paper:1"
    expects = None

    def __init__(self):
        self.client = self
        self.is_alive = True
        self.submitted = []
        self.told = []
        self.topics = {}

    def subscribe_topic(self, topic, handler):
        self.topics[topic] = handler

    def unsubscribe_topic(self, topic):
        del self.topics[topic]

    def submit(self, function, *arguments, key, workers, **_):
        future = PaperFuture(key, function, arguments, workers)
        self.submitted.append(future)
        if function is pilot.tear_down:
            future.end("finished")
        return future

    def tell(self, event, **facts):
        self.told.append({"event": event, **facts})

    def addresses(self):
        return []

    def joined(self, member):
        pass

    def lost(self, member):
        pass

    def tend(self, left, members):
        pass

    def close(self):
        self.is_alive = False

    # --- what happens ------------------------------------------------------------------------------------------------

    def join(self, engine, address="paper:2", *, slots=1, seconds_left=None, version=__version__, fails=None):
        """A worker comes, and is prepared or cannot be."""
        self.topics["all"]((0.0, {"action": "add-worker", "worker": address}))
        engine.poll(0.0)
        (future,) = [f for f in self.submitted if f.function is pilot.set_up and f.workers == [address]]
        facts = {"version": version, "host": "paper", "pid": 1, "name": address, "slots": slots, "unreached": None}
        if fails:
            future.end("error", fails)
        else:
            future.end("finished", {**facts, "job": None, "seconds_left": seconds_left})
        return engine.poll(0.0)

    def leave(self, engine, address="paper:2"):
        self.topics["all"]((0.0, {"action": "remove-worker", "worker": address}))
        return engine.poll(0.0)

    def units(self, address=None):
        """Those that are under way."""
        found = [f for f in self.submitted if f.function is pilot.work_off and not f.done() and not f.released]
        return [unit for unit in found if address is None or unit.workers == [address]]

    def say(self, engine, unit, what, keys, **facts):
        token = unit.arguments[0]
        facts = {"worker": f"paper-{unit.workers[0][-1]}-x", "line": {}, "took_s": 0.001, **facts}
        outcomes = [{"what": what, "key": str(key), **facts} for key in keys]
        self.topics[token]((0.0, {"unit": unit.arguments[1], "outcomes": outcomes}))
        return engine.poll(0.0)

    def begin(self, engine, unit, *keys):
        return self.say(engine, unit, "Began", keys or keys_of(unit))

    def finish(self, engine, unit, took_s=0.001):
        outcomes = self.say(engine, unit, "Done", keys_of(unit), took_s=took_s)
        unit.end("finished", len(keys_of(unit)))
        return outcomes + engine.poll(0.0)


def keys_of(unit):
    return [Key.parse(key) for key in unit.arguments[2]]


def tasks(count):
    return [Key(0, 0, seed) for seed in range(count)]


@pytest.fixture
def paper():
    return PaperCluster()


@pytest.fixture
def engine(tmp_path, paper):
    campaign = load(make_campaign(tmp_path, seeds=3000, execution={"timeout_s": 0.05}))
    paths = RunPaths(tmp_path / "layouts.h5")
    space.prepare_folders(paths)
    made = module.ClusterEngine(campaign, campaign.execution, paths, paper, paper.tell, lambda: 0)
    yield made
    made.close()


def hand_out(engine, waiting):
    """As the coordinator does: only while there is room."""
    while waiting and engine.room > 0:
        engine.start(waiting.pop(0))
    return engine.poll(0.0)


def test_what_is_out_is_bounded_and_brief_tasks_travel_together(engine, paper, monkeypatch):
    monkeypatch.setattr(handing, "MOST_AHEAD", 500)
    for number in range(2, 6):
        paper.join(engine, f"paper:{number}", slots=8)
    waiting, done, units, sizes = tasks(3000), set(), 0, set()
    while len(done) < 3000:
        hand_out(engine, waiting)
        out = paper.units()
        assert 0 < sum(len(keys_of(unit)) for unit in out) <= 500
        assert 3000 - len(waiting) - len(done) <= 500
        for unit in out:
            units += 1
            sizes.add(len(keys_of(unit)))
            paper.begin(engine, unit)
            done |= {outcome.key for outcome in paper.finish(engine, unit) if isinstance(outcome, Done)}
    assert 1 in sizes  # before anything is known of them
    assert max(sizes) <= members.MOST_TOGETHER
    assert units < 3000 / 2
    assert not paper.units()


@pytest.mark.parametrize(
    ("seconds", "slots", "together", "depth"),
    [
        (60.0, 64, 1, 1),  # a long task waits with us, not at a worker
        (2.0, 4, 1, 2),
        (0.25, 4, 4, 8),
        (1e-6, 2, members.MOST_TOGETHER, 2 * members.MOST_TOGETHER),
        (10.0, 6400, 13, 13),  # so many slots that units of one would come too fast
    ],
)
def test_pace(seconds, slots, together, depth):
    pace = Pace()
    pace.count(slots)
    assert (pace.together, pace.depth) == (1, 1)  # nothing is known of the tasks
    pace.hear(seconds)
    pace.count(slots)
    assert (pace.together, pace.depth) == (together, depth)
    if seconds >= 1.0:
        assert pace.unit_s == pytest.approx(together * seconds)


def test_of_a_lost_worker_begun_tasks_have_failed_and_the_others_come_back(engine, paper):
    paper.join(engine, slots=1)
    hand_out(engine, [Key(0, 0, 9)])
    paper.finish(engine, *paper.units())
    waiting = tasks(4)
    hand_out(engine, waiting)
    assert not waiting
    (first, *others) = paper.units()
    begun = keys_of(first)[0]
    assert paper.begin(engine, first, begun) == [Began(begun, "paper-2-x", None)]
    outcomes = paper.leave(engine)
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    assert [(outcome.key, outcome.kind, outcome.worker) for outcome in failed] == [(begun, "died", "paper-2-x")]
    assert {outcome.key for outcome in outcomes if isinstance(outcome, Returned)} == set(tasks(4)) - {begun}
    assert all(unit.released for unit in (first, *others))
    assert engine.room == 0
    assert "lost" in {event["event"] for event in paper.told}


def test_tasks_that_were_in_hand_when_a_worker_died_are_kept_apart(engine, paper):
    """One of them may have killed it: no two of them at a time on the same worker, and none beside others in a unit."""
    paper.join(engine, slots=3)
    hand_out(engine, tasks(3))
    for unit in paper.units():
        paper.begin(engine, unit)
    failed = paper.leave(engine)
    assert {outcome.key for outcome in failed if isinstance(outcome, Failed)} == set(tasks(3))
    for address in ("paper:3", "paper:4"):
        paper.join(engine, address, slots=3)
    suspects, innocent = set(tasks(3)), Key(0, 0, 7)
    hand_out(engine, [*tasks(3), innocent])
    for address in ("paper:3", "paper:4"):
        held = [keys_of(unit) for unit in paper.units(address)]
        assert sum(not suspects.isdisjoint(keys) for keys in held) <= 1
        assert all(len(keys) == 1 for keys in held if not suspects.isdisjoint(keys))
    assert innocent in {key for unit in paper.units() for key in keys_of(unit)}
    tried = set()
    for _ in range(10):
        for unit in paper.units():
            paper.begin(engine, unit)
            tried |= {outcome.key for outcome in paper.finish(engine, unit) if isinstance(outcome, Done)}
        engine.poll(0.0)
    assert tried == {*suspects, innocent}


def test_a_silent_unit_is_given_up_and_its_worker_gets_no_more(engine, paper, monkeypatch):
    monkeypatch.setattr(module, "START_LIMIT_S", 0.0)
    monkeypatch.setattr(module, "STORE_LIMIT_S", 0.0)
    paper.join(engine, slots=2)
    hand_out(engine, tasks(2))
    first, second = paper.units()
    paper.begin(engine, first)
    time.sleep(0.1)
    outcomes = engine.poll(0.0)
    assert {type(outcome) for outcome in outcomes} == {Failed, Returned}
    (failed,) = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    assert (failed.key, failed.kind) == (keys_of(first)[0], "timed-out")
    assert engine.room == 0
    assert paper.told[-1]["event"] == "unfit"
    late = paper.finish(engine, second)  # nobody listens any more
    assert not late


def test_unfit_workers_get_no_tasks_and_are_told_of(engine, paper):
    paper.join(engine, "paper:2", fails=ModuleNotFoundError("No module named 'leeward'"))
    paper.join(engine, "paper:3", version="0.0.1")
    assert engine.room == 0
    first, second = [event for event in paper.told if event["event"] == "unfit"]
    assert first["reason"] == "it cannot be used: ModuleNotFoundError: No module named 'leeward'"
    assert second["reason"] == f"it has leeward 0.0.1; expected {__version__}, as here"
    paper.join(engine, "paper:4")
    hand_out(engine, tasks(1))
    (unit,) = paper.units()
    unit.end("error", OSError("too many open files"))
    assert engine.poll(0.0) == [Returned(Key(0, 0, 0), engine.mark)]
    assert engine.room == 0
    assert "too many open files" in paper.told[-1]["reason"]


def test_a_cluster_without_anybody_is_given_up(engine, paper, monkeypatch):
    monkeypatch.setattr(module, "NOBODY_AFTER_S", 0.2)
    engine.poll(0.0)
    paper.join(engine, version="0.0.1")
    time.sleep(0.3)
    with pytest.raises(EngineLostError, match=r"paper:1 could be used for 0.2 s: it has leeward 0.0.1"):
        engine.poll(0.0)


def test_somebody_on_the_way_is_waited_for(engine, paper, monkeypatch):
    monkeypatch.setattr(module, "NOBODY_AFTER_S", 0.05)
    paper.expects = "2 jobs are queued"
    time.sleep(0.1)
    assert engine.poll(0.0) == []


def test_when_the_scheduler_goes_the_run_ends_and_no_task_is_blamed(engine, paper):
    """Dask cancels all futures then; the tasks have done nothing."""
    paper.join(engine)
    hand_out(engine, tasks(1))
    (unit,) = paper.units()
    paper.begin(engine, unit)
    paper.is_alive = False
    unit.end("cancelled")
    with pytest.raises(EngineLostError, match="scheduler at paper:1 is gone"):
        engine.poll(0.0)
    assert engine.close() == tasks(1)  # whose attempts are forgiven


def test_a_job_near_its_end_gets_no_more_tasks(engine, paper):
    paper.join(engine, seconds_left=20.0)
    hand_out(engine, tasks(1))
    paper.finish(engine, *paper.units(), took_s=9.0)
    engine.poll(0.0)
    assert engine.room == 0
    paper.join(engine, "paper:3", seconds_left=1000.0)
    engine.poll(0.0)
    assert engine.room > 0
    hand_out(engine, tasks(2)[1:])
    assert [unit.workers for unit in paper.units()] == [["paper:3"]]


def test_tasks_for_which_every_job_is_too_short_are_tried(monkeypatch):
    member = Member("paper:2", joined=0.0, ends=100.0)
    clock = SimpleNamespace(monotonic=lambda: seconds)
    monkeypatch.setattr(members, "time", clock)
    seconds = 0.0
    assert member.has_time_for(60.0)
    assert member.has_time_for(40.0)
    seconds = 80.0
    assert member.has_time_for(60.0)
    assert not member.has_time_for(40.0)
    assert not member.is_past_its_end
    seconds = 95.0
    assert member.is_past_its_end


def test_a_task_that_its_job_has_cut_off_has_not_died(engine, paper, monkeypatch):
    paper.join(engine, seconds_left=50.0)
    hand_out(engine, tasks(1))
    paper.begin(engine, *paper.units())
    monkeypatch.setattr(members, "END_MARGIN_S", 60.0)
    (outcome,) = paper.leave(engine)
    assert (outcome.kind, outcome.key) == ("cut-off", Key(0, 0, 0))
    assert "time limit" in outcome.message


def test_a_result_that_does_not_verify_is_none(engine, paper):
    paper.join(engine)
    hand_out(engine, tasks(1))
    (unit,) = paper.units()
    paper.begin(engine, unit)
    (outcome,) = paper.say(engine, unit, "Computed", keys_of(unit), shard=b"junk")
    assert isinstance(outcome, Failed)
    assert "does not verify" in outcome.message


def test_the_end_of_a_run_is_said_to_workers_and_leaves_nothing(engine, paper, tmp_path):
    run = tmp_path / "layouts.run"
    paper.join(engine, slots=2)
    hand_out(engine, tasks(2))
    first, second = paper.units()
    paper.begin(engine, first)
    assert list(run.glob(".probe-*"))
    assert set(engine.close()) == set(tasks(2))
    assert first.released
    assert second.released
    assert [future.workers for future in paper.submitted if future.function is pilot.tear_down] == [["paper:2"]]
    assert not list(run.glob(".probe-*"))
