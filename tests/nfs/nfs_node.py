"""A node that runs leeward for the tests on NFS: `python nfs_node.py ADDRESS` serves, `Node(ADDRESS)` asks.

The guests are slow, and importing leeward takes half a minute there. A node imports it once, and forks a process for
each command and for each process that a command starts. One request is answered at a time.
"""

import contextlib
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

PORT = 7000
KEY = b"between two guests"


class Node:
    """The other end: starts commands on a node, waits for them, and evaluates code there."""

    def __init__(self, address: str, seconds: float = 300.0) -> None:
        end = time.monotonic() + seconds
        while True:
            try:
                self._connection = Client((address, PORT), authkey=KEY)
                return
            except OSError:  # it is not up yet
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def start(self, *arguments: object, cwd: Path, before: str = "") -> int:
        """Start `leeward ARGUMENTS` in a session of its own and return its process id; before: statements for it."""
        return self._ask("start", [str(argument) for argument in arguments], str(cwd), before)

    def poll(self, pid: int) -> int | None:
        """Return the exit code of a command, or None while it runs."""
        return self._ask("poll", pid)

    def wait(self, pid: int) -> subprocess.CompletedProcess[str]:
        while self.poll(pid) is None:
            time.sleep(0.05)
        return self._ask("ended", pid)

    def leeward(self, *arguments: object, cwd: Path, before: str = "") -> subprocess.CompletedProcess[str]:
        return self.wait(self.start(*arguments, cwd=cwd, before=before))

    def signal(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to all processes of a command's group."""
        self._ask("send_signal", pid, int(number))

    def do(self, code: str) -> Any:
        """Run statements; names stay from call to call. Return the value of `answer`, if they set it."""
        return self._ask("do", code)

    def _ask(self, *request: object) -> Any:
        self._connection.send(request)
        is_fine, answer = self._connection.recv()
        if not is_fine:
            raise AssertionError(answer)
        return answer


class Server:
    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp())
        self._codes: dict[int, int | None] = {}
        self._arguments: dict[int, list[str]] = {}
        self._names: dict[str, Any] = {"os": os, "Path": Path}

    def serve(self, address: str) -> None:
        with Listener((address, PORT), authkey=KEY) as listener:
            while True:
                with listener.accept() as connection, contextlib.suppress(EOFError, ConnectionError):
                    while True:
                        connection.send(self._answer(connection))

    def _answer(self, connection: Connection) -> tuple[bool, Any]:
        name, *arguments = connection.recv()
        try:
            return True, getattr(self, name)(*arguments)
        except Exception:
            return False, traceback.format_exc()

    def start(self, arguments: list[str], cwd: str, before: str) -> int:
        place = self._folder / str(len(self._codes))
        pid = os.fork()
        if pid == 0:
            run_and_end(lambda: run_leeward(arguments, cwd, before, place))
        self._codes[pid] = None
        self._arguments[pid] = [str(place), *arguments]
        return pid

    def poll(self, pid: int) -> int | None:
        if self._codes[pid] is None:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._codes[pid] = os.waitstatus_to_exitcode(status)
        return self._codes[pid]

    def ended(self, pid: int) -> subprocess.CompletedProcess[str]:
        place, *arguments = self._arguments[pid]
        out, err = (Path(f"{place}.{name}").read_text() for name in ("out", "err"))
        return subprocess.CompletedProcess(arguments, self._codes[pid] or 0, out, err)

    def send_signal(self, pid: int, number: int) -> None:
        os.killpg(pid, number)

    def do(self, code: str) -> Any:
        self._names["answer"] = None
        exec(code, self._names)
        return self._names["answer"]


def run_and_end(work: Callable[[], None]) -> None:
    """Do the work in this process, which was forked for it, and end the process."""
    code: Any = 1
    try:
        work()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def run_leeward(arguments: list[str], cwd: str, before: str, place: Path) -> None:
    """Run the command line."""
    os.setsid()
    os.chdir(cwd)
    for name, handle in (("out", 1), ("err", 2)):
        os.dup2(os.open(f"{place}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), handle)
    sys.argv = ["leeward", *arguments]
    exec(before, {})
    from leeward import cli

    cli.main()


class Forked(subprocess.Popen[bytes]):
    """Forks this process where `python -P -m leeward...` is started, which spares the imports. Other commands start."""

    def __init__(self, command: list[str], *arguments: Any, **options: Any) -> None:
        if command[1:3] == ["-P", "-m"]:  # the function does not return, so that no other program is started
            options["preexec_fn"] = lambda: run_and_end(lambda: run_module(command[3:], options["env"]))
        super().__init__(command, *arguments, **options)


def run_module(command: list[str], environment: dict[str, str]) -> None:
    """Run a module as the main one."""
    os.closerange(3, 4096)  # the parent waits until the last one is closed
    os.environ.update(environment)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    sys.argv = command
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)


def import_all() -> None:
    """Import all that a command may need, so that processes are forked before they compute anything."""
    os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"  # as leeward sets it for its children; read when h5py is imported
    subprocess.Popen = Forked  # type: ignore[misc]
    import leeward.campaign
    import leeward.cli.run_display
    import leeward.engines.worker_main
    import leeward.runs.run
    import leeward.store.merging.check
    import leeward.store.merging.clean
    import leeward.store.merging.merge
    import leeward.store.reader_main
    import leeward.store.writer_main
    import leeward.watch  # noqa: F401


if __name__ == "__main__":
    import_all()
    Server().serve(sys.argv[1])
