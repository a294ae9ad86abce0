"""What the tests of reading share: children that go wrong, and the patience for those that are only slow."""

import os
from collections.abc import Callable, Container
from pathlib import Path

from leeward.store.isolated.frames import Frame
from leeward.store.isolated.reader_process import Child, ChildLostError

HERE = Path(__file__).parent


def use_faulty_children(monkeypatch, folder: Path, fault: str) -> None:
    """As `faulty_child` does: at a group, something. In any later test all is as ever."""
    silent = folder / "silent.txt"
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setenv("SILENT", str(silent))
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    monkeypatch.setattr(Child, "MODULE", "faulty_child")
    be_patient(monkeypatch, lambda: set(map(int, silent.read_text().split())) if silent.exists() else set())


def be_patient(monkeypatch, silent: Callable[[], Container[int]]) -> None:
    """Silence counts only of children that are known to have fallen silent before anybody began to wait for them.

    So that a limit can be short, and no innocent child is ended for being slow.
    """
    wait = Child._next

    def patiently(child: Child, seconds: float) -> Frame:
        while True:
            is_silent = child.pid in silent()
            try:
                return wait(child, seconds)
            except ChildLostError as error:
                if is_silent or not error.is_timeout:
                    raise

    monkeypatch.setattr(Child, "_next", patiently)
