"""`leeward serve` as a command: its address, its end, and what it cannot do."""

import http.client
import os
import re
import signal
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from foreign_files import own_result
from run_cases import LEEWARD, PATIENCE_S, command_line, leeward_here, make_campaign, until
from web_cases import HANGS_S, empty_run, store


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    paths = empty_run(tmp_path_factory.mktemp("place"))
    store(paths, own_result(0, 0, 0, turbines=3))
    return paths.root


def test_the_command(place, tmp_path):
    command = [*LEEWARD, "serve", str(place), "--port", "0"]
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=tmp_path)
    try:
        lines = []
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], lines
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43,}", "".join(lines)).group()
        parts = urlsplit(address)
        assert f"ssh -N -L {parts.port}:127.0.0.1:{parts.port} " in "".join(lines)
        assert _listens_on(parts.port) == ["127.0.0.1"]
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=HANGS_S)
        connection.request("GET", f"/?{parts.query}")
        answer = connection.getresponse()
        answer.read()
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
        connection.request("GET", answer.headers["Location"], headers={"Cookie": cookie})
        assert b"1 of 10 layouts" in connection.getresponse().read()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / "errors").read_text() == ""


# In this process numba never comes to an end of compiling.
STUCK = """
import pathlib, time
import numba.core.compiler

def never_done(*arguments, **options):
    pathlib.Path("compiling").touch()
    while True:
        time.sleep(0.02)

numba.core.compiler.compile_extra = never_done
"""


def test_it_ends_at_once_whatever_it_is_doing(tmp_path):
    """Ctrl-C does not wait for the wake engine, which takes half a minute to compile, on a slow machine more."""
    make_campaign(tmp_path, seeds=1)
    assert leeward_here("run", "campaign.yaml", "--engine", "inline", "--quiet", cwd=tmp_path).returncode == 0
    cold = {**os.environ, "LEEWARD_CACHE_DIR": str(tmp_path / "cache")}
    command = command_line("serve", "layouts.run", "--port", "0", before=STUCK)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=cold)
    try:
        lines = iter(process.stdout.readline, "")
        address = urlsplit(next(line for line in lines if "http://" in line).strip())
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=HANGS_S)
        connection.request("GET", f"/?{address.query}")
        cookie = connection.getresponse().headers["Set-Cookie"].partition(";")[0]
        connection.close()
        connection.request("GET", "/task/farm0_t0_s0", headers={"Cookie": cookie})
        assert b"are being computed" in connection.getresponse().read()
        until((tmp_path / "compiling").exists, "it compiles")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


def _listens_on(port):
    """Addresses, as the kernel tells them."""
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            address, _, number = fields[1].partition(":")
            if fields[3] == "0A" and int(number, 16) == port:
                found.append(".".join(str(byte) for byte in reversed(bytes.fromhex(address))))
    return found


def test_a_port_that_is_taken_is_an_error(place):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ended = subprocess.run(
            [*LEEWARD, "serve", str(place), "--port", str(port)],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert ended.returncode == 1
    assert "cannot listen there" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_place_that_is_none(tmp_path):
    ended = leeward_here("serve", "nothing.run", "--port", "0", cwd=tmp_path)
    assert ended.returncode == 2
    assert "no such file or folder" in ended.stderr
    assert "http://" not in ended.stdout
