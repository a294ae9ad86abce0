"""What the tests of the dashboard share: a served place, requests as a browser makes them and as nobody should."""

import contextlib
import gzip
import http.client
import json
import os
import socket
import threading
import time
from html.parser import HTMLParser
from unittest import mock

import yaml

from foreign_files import own_result
from leeward.campaign import load
from leeward.store.directory.audit import Audit
from leeward.store.directory.index import encode_line
from leeward.store.directory.records import begin_attempt, record_failure
from leeward.store.directory.shards import store_result
from leeward.store.format.keys import Key
from leeward.store.paths import RunPaths
from leeward.web import Access, Dashboard, reading as reading_module, server as server_module
from leeward.web.model import Model
from run_cases import PATIENCE_S, make_campaign

PAGES = ("/", "/map", "/tasks", "/tasks.csv", "/workers", "/failures", "/settings", "/audit")
HOSTILE = "\"'><script>zq()</script><img src=x onerror=zq()>]]>--><!-- &lt;</pre></title>\x00\x1b[2J\x7f\u2028\ud800"
FORMULA = "=HYPERLINK(zq)"

_ELEMENTS = """
html head meta title link script body a header span nav ul li main section h1 h2 h3 p small strong dl div dt dd svg rect
circle path line text g table caption thead tbody tr th td code footer figure figcaption form label select option input
button details summary pre article br
"""
_ATTRIBUTES = """
lang charset name content rel href type src defer class id role aria-label aria-labelledby aria-current aria-live
data-refresh data-live data-load tabindex title scope method action value selected inputmode size required viewbox width
height x y x1 x2 y1 y2 cx cy r d fill fill-rule text-anchor preserveaspectratio
"""
ELEMENTS, ATTRIBUTES = frozenset(_ELEMENTS.split()), frozenset(_ATTRIBUTES.split())
VOID = {"meta", "link", "input", "br"}
HANGS_S = PATIENCE_S  # a request without an answer for so long is a fault, not a slow machine


class Browser:
    """Asks a dashboard; with its cookie unless told otherwise."""

    def __init__(self, dashboard, model):
        self.dashboard = dashboard
        self.model = model
        self.port = dashboard.port
        self.cookie = f"{dashboard.access.cookie_name}={dashboard.access.token}"

    def ask(self, path, method="GET", headers=None, *, cookie=True):
        """Status, headers and body, on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS_S)
        try:
            given = {"Cookie": self.cookie} if cookie else {}
            connection.request(method, path, headers={**given, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def text(self, path, status=200):
        found, headers, body = self.ask(path)
        assert found == status, (path, found, body[:500])
        if headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        return body.decode()

    def raw(self, content):
        """Send these bytes, and return the answer up to the end of the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=HANGS_S) as connection:
            with contextlib.suppress(OSError):  # it may have hung up already
                connection.sendall(content)
                connection.shutdown(socket.SHUT_WR)
            parts = []
            with contextlib.suppress(ConnectionError):
                while part := connection.recv(65536):
                    parts.append(part)
        return b"".join(parts)

    def head(self, *lines, cookie=True):
        """Bytes of a request with our Host and cookie."""
        given = [f"Host: 127.0.0.1:{self.port}", *([f"Cookie: {self.cookie}"] if cookie else [])]
        return "\r\n".join([lines[0], *given, *lines[1:], "", ""]).encode("latin-1")


@contextlib.contextmanager
def serving(path, *, fresh=True, look_s=HANGS_S, **options):
    """Serve a place in a thread, and yield a browser for it.

    fresh: look at the disk for every page. look_s: seconds that a page waits for a look. The server never hangs up on a
    client because the machine is slow.
    """
    waits = {"SHORTEST_PAUSE_S": 0.0, "PAUSE_FACTOR": 0.0, "WAIT_S": look_s} if fresh else {}
    with (
        mock.patch.multiple(reading_module, **waits) if waits else contextlib.nullcontext(),
        mock.patch.object(server_module, "CLOSING_S", HANGS_S),
        mock.patch.object(server_module._Handler, "timeout", 10 * HANGS_S),
    ):
        model = Model(path)
        dashboard = Dashboard(model, "127.0.0.1", 0, Access(**options))
        thread = threading.Thread(target=dashboard.serve, daemon=True)
        thread.start()
        try:
            yield Browser(dashboard, model)
        finally:
            dashboard.close()
            thread.join()


class Clock:
    """Stands still unless a test moves it. It takes the place of `time` in a module."""

    def __init__(self):
        self.seconds = 1000.0

    def monotonic(self):
        return self.seconds


def status_of(answer):
    """Of raw bytes; 0 where nothing came."""
    words = answer.split(None, 2)
    return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") else 0


class Checked(HTMLParser):
    """A page that holds nothing but what leeward puts into pages; what is text is told as text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.words, self.addresses, self._open = [], [], [], []
        self.feed(page)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, name, attributes):
        assert name in ELEMENTS, f"<{name} {attributes}>"
        for key, value in attributes:
            assert key in ATTRIBUTES, f"<{name} {key}={value!r}>"
            if key in ("href", "src", "action", "data-load"):
                assert value.startswith(("/", "#")), value
                assert not value.startswith(("//", "/\\")), value
                self.addresses.append(value)
        if name == "script":
            assert dict(attributes) == {"src": "/live.js", "defer": None}
        self.elements.append(name)
        if name not in VOID:
            self._open.append(name)

    def handle_endtag(self, name):
        assert self._open, f"</{name}> without its start"
        assert self._open.pop() == name

    def handle_data(self, data):
        assert not self._open or self._open[-1] not in ("script", "style") or not data.strip()
        self.words.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data!r:.80}")

    def unknown_decl(self, data):
        raise AssertionError(f"a declaration: {data!r:.80}")

    handle_pi = unknown_decl

    @property
    def text(self):
        return " ".join(self.words)


# --- places ----------------------------------------------------------------------------------------------------------


def empty_run(folder, **changes):
    """A run directory with its campaign and nothing else."""
    file = make_campaign(folder, seeds=5, farms=2)
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **changes}))
    campaign = load(file)
    paths = RunPaths(folder / "layouts.h5")
    for place in paths.folders():
        place.mkdir(parents=True)
    paths.campaign.write_text(campaign.frozen_text())
    return paths


def store(paths, *results, indexed=True):
    for result in results:
        store_result(paths, result)
        if indexed:
            with paths.index.open("ab") as file:
                file.write(encode_line(result.index_line()))


def beat(paths, task, name="w1", **changes):
    """A worker that lives: this process."""
    facts = {"worker": name, "host": socket.gethostname(), "pid": os.getpid(), "task": task, "state": "computing"}
    facts |= {"since": "2026-11-15T10:00:00Z", "step": 7, "phase": "refine", "best_aep_gwh": 101.5}
    facts |= {"time": time.time() + 600, "every_s": 2.0}  # it does not look hung on a machine that stands still
    (paths.workers / f"{len(list(paths.workers.iterdir()))}.json").write_text(json.dumps({**facts, **changes}))


def fail(paths, key, *, final=True, text="ValueError: no layout today"):
    begin_attempt(paths, key, "f" * 64, "w9", "node")
    facts = {"kind": "exception", "message": text, "traceback": f"Traceback\n{text}", "worker": text, "host": text}
    record_failure(paths, key, final=final, died=False, seconds=3.0, **facts)


def hostile_run(folder):
    """All that comes from files tries to be something else than text."""
    printable = HOSTILE.replace("\ud800", "")
    square = [[0, 0], [5000, 0], [5000, 5000], [0, 5000]]
    farms = [{"name": printable, "polygon_m": square}, {"name": FORMULA, "polygon_m": square}]
    turbine = {"rated_power_mw": 10, "rotor_diameter_m": 195, "hub_height_m": 121, "name": printable}
    paths = empty_run(folder, farms=farms, turbines=[turbine], name=printable, seeds=6)
    stored = printable.replace("\x00", "")
    details = {"host": stored, "versions": stored, "phases": stored, stored[:40]: "x"}
    store(paths, own_result(0, 0, 0, turbines=3, **details), own_result(1, 0, 0, turbines=3, **details))
    fail(paths, Key(0, 0, 1), text=HOSTILE)
    fail(paths, Key(0, 0, 2), text=HOSTILE, final=False)
    beat(paths, "farm0_t0_s3", name=HOSTILE, host=HOSTILE, state=HOSTILE, phase=HOSTILE)
    beat(paths, HOSTILE, name="w2", host=HOSTILE)
    Audit(paths.audit).record(HOSTILE, note=HOSTILE, more={"deep": [HOSTILE]}, **{HOSTILE: 200 * HOSTILE})
    (paths.results / "aa").mkdir(exist_ok=True)
    (paths.results / "aa" / "<script>zq()<!--.h5").touch()
    return paths
