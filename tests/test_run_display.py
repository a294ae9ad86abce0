"""What `leeward run` shows: no time left before there is one, and no control sequences as text."""

import io
import os
import subprocess
import sys

import pytest

from leeward.cli import run_display
from leeward.cli.output import Printable
from leeward.cli.run_display import Pace
from run_cases import PATIENCE_S


def told(pace, *events):
    for kind, facts in events:
        pace.on_event({"event": kind, **facts})
    return str(pace)


def test_no_time_left_before_a_task_of_this_run_has_finished(monkeypatch):
    """And the time for compiling does not count."""
    now = 1000.0
    monkeypatch.setattr(run_display.time, "monotonic", lambda: now)
    pace = Pace()
    assert told(pace, ("began", {"total": 10, "done": 4, "failed": 1})) == (
        "4 done, 1 failed of 10; time left not known yet"
    )
    assert told(pace, ("compiling", {})).endswith("time left not known yet")
    now += 100.0
    told(pace, ("compiled", {"seconds": 100.0}))
    now += 30.0
    assert told(pace, ("done", {})) == "5 done, 1 failed of 10; 2.0 a minute, 0:02:00 left"
    assert told(pace, *[("done", {})] * 4) == "9 done, 1 failed of 10"


SHOWING = """
from leeward.cli.run_display import display
from leeward.cli.output import printable_streams

with printable_streams(), display({0: "north"}, quiet=False, as_json=False) as hear:
    facts = {"campaign": "c", "total": 2, "done": 0, "failed": 0, "workers": 2, "engine": "local"}
    hear({"event": "began", **facts})
    hear({"event": "compiling"})
    hear({"event": "compiled", "seconds": 23.4})
    hear({"event": "done", "key": "farm0_t0_s0", "aep_gwh": 5.0})
"""


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_run_shows_that_it_compiles(is_terminal):
    import pty

    main, worker = pty.openpty() if is_terminal else os.pipe()
    subprocess.run(
        [sys.executable, "-c", SHOWING],
        stderr=worker,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        timeout=PATIENCE_S,
        check=True,
    )
    said = os.read(main, 1 << 20).decode()
    for handle in (main, worker):
        os.close(handle)
    assert "compiling the wake engine (once on this machine)" in said
    assert "compiled the wake engine (once on this machine) in 23 s" in said
    assert "\\x1b" not in said  # a control sequence that was escaped
    assert ("\x1b[" in said) == is_terminal
    assert ("time left not known yet" in said) == is_terminal  # no line before there is something to say


def test_the_reset_of_colours_at_the_end_is_not_shown_as_text():
    stream = io.StringIO()
    for text in ("\x1b[0m", "\x1b[2J", "a \x1b[0m"):
        Printable(stream).write(text)
    assert stream.getvalue() == "\x1b[0m" + r"\x1b[2J" + r"a \x1b[0m"
