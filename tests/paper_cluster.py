"""A Dask scheduler and its workers that only exist on paper, for tests of what the coordinator's side decides."""

from leeward import __version__
from leeward.engines.cluster import pilot
from leeward.engines.cluster.links import Link
from leeward.store.format.keys import Key


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

    def result(self, timeout):
        if isinstance(self._value, Exception):
            raise self._value
        return self._value

    def exception(self):
        return self._value

    def release(self):
        self.released = True


class PaperCluster(Link):
    """A link, its client and its workers."""

    expects = None
    is_alive = True

    def __init__(self):
        super().__init__(self, "paper:1")
        self.submitted = []
        self.told = []
        self.topics = {}
        self.present = []

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

    def tell(self, event, /, **facts):
        self.told.append({"event": event, **facts})

    def addresses(self):
        return self.present

    def close(self):
        self.is_alive = False

    # --- what happens ------------------------------------------------------------------------------------------------

    def join(
        self, engine, address="paper:2", *, slots=1, seconds_left=None, version=__version__, fails=None, unreached=None
    ):
        """A worker comes, and is prepared or cannot be."""
        self.topics["all"]((0.0, {"action": "add-worker", "worker": address}))
        engine.poll(0.0)
        (future,) = [f for f in self.submitted if f.function is pilot.set_up and f.workers == [address]]
        facts = {"version": version, "host": "paper", "pid": 1, "name": address, "slots": slots, "unreached": unreached}
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
        found = [f for f in self.submitted if f.function is pilot.compute_unit and not f.done() and not f.released]
        return [unit for unit in found if address is None or unit.workers == [address]]

    def say(self, engine, unit, what, keys, **facts):
        self.send(unit, what, keys, **facts)
        return engine.poll(0.0)

    def send(self, unit, what, keys, **facts):
        """The same, and it is not heard yet."""
        token = unit.arguments[0]
        if what != "Stuck":
            facts = {"worker": f"paper-{unit.workers[0][-1]}-x", **facts}
        if what == "Done":
            facts = {"line": {}, "took_s": 0.001, **facts}
        outcomes = [{"what": what, "key": str(key), **facts} for key in keys]
        self.topics[token]((0.0, {"unit": unit.key, "outcomes": outcomes}))

    def begin(self, engine, unit, *keys):
        return self.say(engine, unit, "Began", keys or keys_of(unit))

    def finish(self, engine, unit, took_s=0.001):
        outcomes = self.say(engine, unit, "Done", keys_of(unit), took_s=took_s)
        unit.end("finished", len(keys_of(unit)))
        return outcomes + engine.poll(0.0)


def keys_of(unit):
    return [Key.parse(key) for key in unit.arguments[1]]


def tasks(count):
    return [Key(0, 0, seed) for seed in range(count)]
