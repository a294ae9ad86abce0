"""What the coordinator's side of a cluster decides, with a scheduler and workers that only exist on paper."""

import time
from types import SimpleNamespace
from unittest import mock

import pytest

from leeward import __version__
from leeward.campaign import load
from leeward.campaign.work import LayoutWork
from leeward.cli.run_display import sentence
from leeward.engines.cluster import crew, engine as module, members, pilot
from leeward.engines.cluster.members import Member, Pace
from leeward.engines.engine import Assignment, Began, Done, EngineLostError, Failed, Returned, Stuck, Unstuck
from leeward.runs import coordinator, disk
from leeward.runs.context import Options, RunContext, RunReport
from leeward.runs.stop import StopNowError
from leeward.store.directory import space
from leeward.store.format.keys import Key
from leeward.store.paths import RunPaths
from paper_cluster import PaperCluster, keys_of, tasks
from run_cases import make_campaign


@pytest.fixture
def paper():
    return PaperCluster()


@pytest.fixture
def engine(tmp_path, paper):
    campaign = load(make_campaign(tmp_path, seeds=3000, execution={"timeout_s": 0.05}))
    paths = RunPaths(tmp_path / "layouts.h5")
    space.prepare_folders(paths)
    assignment = Assignment(LayoutWork(campaign), paths, paper.tell, 3000, lambda: 0, on_outcome=None)
    made = module.ClusterEngine(paper, assignment)
    yield made
    made.close()


class Clock:
    """Stands still, however slow the machine is, and is put forward by tests and by whoever sleeps."""

    ahead_s = 0.0

    def __init__(self):
        self._began = time.monotonic()

    def sleep(self, seconds):
        self.ahead_s += seconds

    def monotonic(self):
        return self._began + self.ahead_s


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    made = Clock()
    for one in (module, crew, members):
        monkeypatch.setattr(one, "time", made)
    return made


def hand_out(engine, waiting):
    """As the coordinator does: only while there is room."""
    while waiting and engine.room > 0:
        engine.start(waiting.pop(0))
    return engine.poll(0.0)


def test_what_is_out_is_bounded_and_brief_tasks_travel_together(engine, paper, monkeypatch):
    monkeypatch.setattr(members, "MOST_AHEAD", 500)
    for number in range(2, 6):
        paper.join(engine, f"paper:{number}", slots=8)
    waiting, done, handed, sizes = tasks(3000), set(), 0, set()
    while len(done) < 3000:
        hand_out(engine, waiting)
        out = paper.units()
        assert 0 < sum(len(keys_of(unit)) for unit in out) <= 500
        assert 3000 - len(waiting) - len(done) <= 500
        for unit in out:
            handed += 1
            sizes.add(len(keys_of(unit)))
            paper.begin(engine, unit)
            done |= {outcome.key for outcome in paper.finish(engine, unit) if isinstance(outcome, Done)}
    assert 1 in sizes  # before anything is known of them
    assert max(sizes) <= members.MOST_TOGETHER
    assert handed < 3000 / 2
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
    pace.note(seconds)
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


def test_of_a_lost_worker_without_records_those_that_waited_behind_others_come_back(engine, paper):
    """No attempt on the disk tells which tasks were begun: no more of them are blamed than it computes at a time."""
    paper.join(engine, slots=2, unreached="no such file")
    hand_out(engine, [Key(0, 0, 9)])
    paper.finish(engine, *paper.units(), took_s=2.0)
    hand_out(engine, tasks(4))
    first, second, *others = paper.units()
    assert len(others) == 2
    paper.begin(engine, first)  # and of the second nothing has been heard yet
    outcomes = paper.leave(engine)
    assert {outcome.key for outcome in outcomes if isinstance(outcome, Failed)} == {*keys_of(first), *keys_of(second)}
    waiting = [key for unit in others for key in keys_of(unit)]
    assert [outcome.key for outcome in outcomes if isinstance(outcome, Returned)] == waiting


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


def test_tasks_that_are_kept_apart_keep_no_others_from_a_worker_that_is_free(engine, paper):
    """However many: they all wait in front."""
    lost = tasks(members.NEAREST + 50)
    paper.join(engine, slots=len(lost))
    hand_out(engine, lost.copy())
    for unit in paper.units():
        paper.begin(engine, unit)
    assert {type(outcome) for outcome in paper.leave(engine)} == {Failed}
    paper.join(engine, "paper:3", slots=8)
    waiting = [*lost, *(Key(0, 1, seed) for seed in range(100))]
    for _ in range(100):
        hand_out(engine, waiting)
    held = [key for unit in paper.units() for key in keys_of(unit)]
    assert len(held) == 8
    assert len(set(held) & set(lost)) == 2
    assert len(waiting) > 80  # and no more of them are taken than are wanted


def test_a_silent_unit_is_given_up_and_its_worker_gets_no_more(engine, paper, clock):
    paper.join(engine, slots=2)
    hand_out(engine, tasks(2))
    first, second = paper.units()
    paper.begin(engine, first)
    clock.ahead_s += 2000.0
    outcomes = engine.poll(0.0)
    assert {type(outcome) for outcome in outcomes} == {Failed, Returned}
    (failed,) = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    assert (failed.key, failed.kind) == (keys_of(first)[0], "timed-out")
    assert engine.room == 0
    assert paper.told[-1]["event"] == "unfit"
    late = paper.finish(engine, second)  # nobody listens any more
    assert not late


def test_a_worker_that_comes_while_we_begin_to_listen_is_not_overlooked(engine, paper):
    """The question who is there may be answered before the request to be told of others is heard."""
    paper.present = ["paper:3"]
    paper.join(engine, "paper:2")
    assert {tuple(f.workers) for f in paper.submitted if f.function is pilot.set_up} == {("paper:2",), ("paper:3",)}


def test_unfit_workers_get_no_tasks_and_are_told_of(engine, paper):
    paper.join(engine, "paper:2", fails=ModuleNotFoundError("No module named 'leeward'"))
    paper.join(engine, "paper:3", version="0.0.1")
    assert engine.room == 0
    first, second = [event for event in paper.told if event["event"] == "unfit"]
    assert first["reason"] == "it cannot be used: ModuleNotFoundError: No module named 'leeward'"
    assert second["reason"] == f"it has leeward 0.0.1; install {__version__} there, as on this machine"
    for address, unreached in (("paper:4", None), ("paper:5", "no such file")):
        paper.join(engine, address, unreached=unreached)
        hand_out(engine, tasks(1))
        (unit,) = paper.units()
        unit.end("error", OSError("too many open files"))
        assert engine.poll(0.0) == [Returned(Key(0, 0, 0), engine.mark)]  # it was never begun
        assert engine.room == 0
        assert "too many open files" in paper.told[-1]["reason"]


def test_a_unit_that_waits_behind_others_is_not_silent(engine, paper, clock):
    paper.join(engine)
    hand_out(engine, [Key(0, 0, 9)])
    paper.finish(engine, *paper.units())
    hand_out(engine, tasks(2 * members.MOST_TOGETHER))
    first, second = paper.units()
    for key in keys_of(first):  # which turn out to take long
        clock.ahead_s += 1000.0
        assert paper.begin(engine, first, key) == [Began(key, "paper-2-x", None)]
        assert [type(outcome) for outcome in paper.say(engine, first, "Done", [key])] == [Done]
    assert not second.released
    clock.ahead_s += 2000.0
    assert {type(outcome) for outcome in engine.poll(0.0)} == {Returned}


def test_a_cluster_without_anybody_is_given_up(engine, paper, clock):
    engine.poll(0.0)
    paper.join(engine, version="0.0.1")
    clock.ahead_s += crew.NO_WORKER_S + 1
    with pytest.raises(EngineLostError, match=r"paper:1 could be used for 600 s: it has leeward 0.0.1"):
        engine.poll(0.0)


def test_somebody_on_the_way_is_waited_for_and_has_time_to_answer(engine, paper, clock):
    """Who does not answer in this time does not end the hope for others that are still to come."""
    paper.expects = "2 jobs are queued"
    for _ in range(3):
        clock.ahead_s += crew.NO_WORKER_S + 1
        assert engine.poll(0.0) == []
    paper.topics["all"]((0.0, {"action": "add-worker", "worker": "paper:2"}))
    assert engine.poll(0.0) == engine.poll(0.0) == []
    assert "unfit" not in {event["event"] for event in paper.told}
    clock.ahead_s += crew.NO_WORKER_S + 1
    assert engine.poll(0.0) == []
    assert "it has not answered for 600 s" in [event.get("reason") for event in paper.told]
    paper.expects = None
    clock.ahead_s += crew.NO_WORKER_S + 1
    with pytest.raises(EngineLostError, match="could be used for 600 s: it has not answered for 600 s"):
        engine.poll(0.0)


def test_who_answers_late_gets_tasks_all_the_same(engine, paper, clock):
    """Tasks of somebody else may have had all its threads."""
    paper.expects = "2 jobs are queued"
    paper.topics["all"]((0.0, {"action": "add-worker", "worker": "paper:2"}))
    engine.poll(0.0)
    clock.ahead_s += crew.NO_WORKER_S + 1
    engine.poll(0.0)
    assert paper.told[-2]["event"] == "unfit"
    paper.join(engine, "paper:2")
    assert engine.room == 1


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


def test_a_unit_that_is_lost_with_its_worker_does_not_end_the_run(engine, paper):
    """It has ended early, as its worker ends, and before we looked that was gone with what it had said."""
    paper.join(engine)
    hand_out(engine, tasks(1))
    (unit,) = paper.units()
    paper.begin(engine, unit)
    unit.end("lost")
    assert engine.poll(0.0) == []
    (failed,) = paper.leave(engine)
    assert (failed.key, failed.kind) == (Key(0, 0, 0), "died")
    assert engine.poll(0.0) == []


def test_a_worker_that_is_gone_as_soon_as_it_was_prepared_is_not_waited_for(engine, paper):
    paper.topics["all"]((0.0, {"action": "add-worker", "worker": "paper:2"}))
    engine.poll(0.0)
    paper.submitted[-1].end("finished", TimeoutError("timed out"))
    assert engine.poll(0.0) == []
    assert paper.told[-1]["event"] == "unfit"
    assert "no longer answers (timed out)" in paper.told[-1]["reason"]
    assert engine.room == 0


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


@pytest.mark.parametrize("sooner", ["its Dask worker is gone", "its unit ends"])
def test_a_task_that_its_job_has_cut_off_has_not_died(engine, paper, monkeypatch, sooner):
    """SLURM's signal comes before its kill: what is in hand is given up, and that may be heard before the end is."""
    paper.join(engine, seconds_left=50.0)
    hand_out(engine, tasks(1))
    (unit,) = paper.units()
    paper.begin(engine, unit)
    monkeypatch.setattr(members, "END_MARGIN_S", 60.0)
    if sooner == "its unit ends":
        unit.end("finished", 0)
    (outcome,) = paper.leave(engine)
    assert (outcome.kind, outcome.key) == ("cut-off", Key(0, 0, 0))
    assert "time limit" in outcome.message


def test_a_result_that_does_not_verify_is_none(engine, paper):
    paper.join(engine)
    hand_out(engine, tasks(1))
    (unit,) = paper.units()
    paper.begin(engine, unit)
    (outcome,) = paper.say(engine, unit, "Done", keys_of(unit), shard=b"junk")
    assert isinstance(outcome, Failed)
    assert "does not verify" in outcome.message


def test_what_a_worker_says_after_its_tasks_were_taken_away_is_not_heard(engine, paper):
    """Its own disk takes nothing, and then does, all in one message: the task is elsewhere by then."""
    paper.join(engine, unreached="no such file")
    hand_out(engine, tasks(1))
    (unit,) = paper.units()
    (key,) = keys_of(unit)
    paper.begin(engine, unit)
    messages = [{"what": "Stuck", "key": str(key), "message": "full"}, {"what": "Unstuck", "key": str(key)}]
    paper.topics[unit.arguments[0]]((0.0, {"unit": unit.key, "outcomes": messages}))
    assert engine.poll(0.0) == [Stuck(key, "full"), Unstuck(key), Returned(key)]


@pytest.mark.parametrize("what", ["results", "records of attempts"])
def test_a_disk_that_takes_nothing_from_one_machine_stops_no_run(engine, paper, clock, monkeypatch, tmp_path, what):
    """The others are through with what they have before it is known that it does not concern them."""
    line = {"aep": 1.0, "wake_loss": 0.1}

    def adjust(*_):
        clock.ahead_s += 1.0
        assert clock.ahead_s < 300.0, "nobody does anything"
        for unit in paper.units():
            if unit.workers == ["paper:2"]:
                if what == "results":
                    paper.send(unit, "Began", keys_of(unit)[:1])
                paper.send(unit, "Stuck", keys_of(unit)[:1], message="stale file handle")
            else:
                paper.send(unit, "Done", keys_of(unit), line=line, took_s=0.25)

    paper.join(engine, "paper:2")
    hand_out(engine, [Key(0, 0, 99)])
    paper.finish(engine, *paper.units(), took_s=0.25)  # from now on several travel together
    paper.join(engine, "paper:3")
    paper.adjust = adjust
    for one in (coordinator, disk):
        monkeypatch.setattr(one, "time", clock)
    quiet = mock.Mock(is_due=False, is_requested=False)
    quiet.find.return_value = None
    report = RunReport(RunPaths(tmp_path / "layouts.h5"), engine._work, tasks(40))
    writes = disk.RunDisk(paper.tell, quiet, 1800.0)
    context = RunContext(report, Options(), paper.tell, lock=quiet, audit=quiet, stop=quiet, disk=writes)
    coordinator.Coordinator(context, quiet).run(tasks(40), engine)
    assert (set(report.results), report.computed) == (set(tasks(40)), 40)
    (unfit,) = [event for event in paper.told if event["event"] == "unfit"]
    assert "the disk rejects its writes, but accepts those of other workers" in unfit["reason"]


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


def test_who_does_not_wait_for_the_end_of_a_run_leaves_nothing_either(engine, paper, clock, tmp_path, monkeypatch):
    paper.join(engine)
    paper.submit = lambda *_, **__: SimpleNamespace(done=lambda: False)  # a worker that does not hear the farewell
    with monkeypatch.context() as patch:
        patch.setattr(clock, "sleep", mock.Mock(side_effect=StopNowError), raising=False)
        with pytest.raises(StopNowError):
            engine.close()
    assert not paper.is_alive
    assert not list((tmp_path / "layouts.run").glob(".probe-*"))


def test_the_first_worker_that_compiles_is_told_of(engine, paper):
    """Others compile the same, or wait for it."""
    (topic,) = (topic for name, topic in paper.topics.items() if name != "all")
    for host in ("paper", "other"):
        topic((0.0, {"event": "compiling", "host": host}))
    for host in ("other", "paper"):
        topic((0.0, {"event": "compiled", "host": host, "seconds": 23.0}))
    engine.poll(0.0)
    expected = [{"event": "compiling", "host": "paper"}, {"event": "compiled", "host": "other", "seconds": 23.0}]
    assert paper.told == expected
    assert sentence(expected[0]) == "paper: compiling the wake engine (once on this machine)"
