"""Random requests, and random damage to what is served: never an answer that says that leeward is at fault."""

import json
import random
import shutil
import socket

import pytest

from foreign_files import own_result
from leeward.store.directory.audit import Audit
from leeward.store.directory.lock import Lock
from leeward.store.format.keys import Key
from web_cases import PAGES, Browser, Checked, beat, empty_run, fail, serving, status_of, store

REQUESTS = 1200
SOCKETS = 200
DAMAGES = 60
WELL = {200, 303, 304, 400, 403, 404, 405, 414, 421, 431, 503, 505}

PATHS = [*PAGES, "/task/farm0_t0_s0", "/task/farm0_t0_s1", "/task/farm0_t0_s0.csv", "/compare", "/style.css", "/task/"]
NAMES = ["farm", "type", "seed", "state", "sort", "page", "farms", "a", "b", "token", "x", ""]
VALUES = [
    *(
        "0",
        "1",
        "-1",
        "+1",
        "1.5",
        "1e9",
        "007",
        "9" * 7,
        "9" * 10,
        "9" * 30,
        "9" * 5000,
        "٣",
        "１",
        "0x10",
        "1_0",
        " 1 ",
    ),
    *(
        "",
        "done",
        "failed",
        "-aep_gwh",
        "aep",
        "--aep",
        "-",
        "wake_loss",
        "None",
        "nan",
        "inf",
        "farm0_t0_s0",
        "farm0_t0_s1",
    ),
    *("%00", "%0d%0a", "%ff%fe", "\ud83c", "𝒻", "%", "%zz", "<script>", "'\"", "../..", "a" * 3000, "&", "=", ";", "#"),
]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """A bit of everything."""
    paths = empty_run(tmp_path_factory.mktemp("fuzz"))
    store(paths, *(own_result(farm, 0, seed, turbines=3) for farm in (0, 1) for seed in (0, 1)))
    fail(paths, Key(0, 0, 2))
    fail(paths, Key(0, 0, 3), final=False)
    beat(paths, "farm0_t0_s4")
    Audit(paths.audit).record("run", tasks=10, note="a note")
    return paths


def random_target(rng):
    """An address that is nearly one of ours, or nothing of the kind."""
    path = rng.choice(PATHS)
    for _ in range(rng.choice((0, 0, 1, 2))):
        place = rng.randrange(len(path) + 1)
        path = (
            path[:place]
            + rng.choice(["/", "..", "%2e", "%00", "\\", "é", "?", ";", "0", "_", ".csv", "%"])
            + path[place:]
        )
    fields = [f"{rng.choice(NAMES)}={rng.choice(VALUES)}" for _ in range(rng.choice((0, 1, 1, 2, 3, 3, 60)))]
    target = f"{path}?{'&'.join(fields)}" if fields else path
    return target.replace(" ", "%20").encode("utf-8", "surrogatepass").decode("latin-1")


def random_bytes(rng, browser):
    """A request with something wrong in it."""
    method, version = rng.choice(["GET", "HEAD", "POST", "G ET", ""]), rng.choice(["1.1", "1.0", "0.9", "2", "x"])
    good = browser.head(
        f"{method} {random_target(rng)} HTTP/{version}",
        *rng.sample(
            [
                *(
                    "Content-Length: -1",
                    "Content-Length: 9999999999999999999999",
                    "Transfer-Encoding: chunked",
                    "Host: x",
                ),
                *(
                    "Cookie: a=b; =; ;;",
                    "If-None-Match: *",
                    "Accept-Encoding: gzip;q=x",
                    "no colon",
                    " folded: y",
                    ": z",
                ),
                *(
                    "Expect: 100-continue",
                    "Connection: keep-alive, close",
                    "Upgrade: websocket",
                    "X: \x00\xff",
                    "Range: x",
                ),
            ],
            rng.randrange(4),
        ),
    )
    content = bytearray(good)
    for _ in range(rng.choice((0, 0, 1, 5, 50))):
        content[rng.randrange(len(content))] = rng.randrange(256)
    return bytes(content[: rng.choice((len(content), len(content), rng.randrange(1, len(content))))])


def test_random_requests(paths, capfd):
    rng = random.Random(7)
    seen = set()
    expected = {200, 400, 403, 404}
    with serving(paths.root, fresh=False) as browser:
        for number in range(REQUESTS):
            target = random_target(rng)
            request = browser.head(f"GET {target} HTTP/1.1", "Connection: close", cookie=number % 20 != 0)
            answer = browser.raw(request)
            status = status_of(answer)
            assert status in WELL, (target, answer[:300])
            seen.add(status)
            if status == 200 and b"text/html" in answer:
                Checked(answer.partition(b"\r\n\r\n")[2].decode())
        assert browser.ask("/")[0] == 200
    assert seen >= expected
    assert capfd.readouterr().err == ""


def test_random_bytes(paths, capfd):
    rng = random.Random(8)
    with serving(paths.root, fresh=False) as browser:
        for number in range(SOCKETS):
            content = rng.randbytes(rng.randrange(1, 400)) if number % 10 == 0 else random_bytes(rng, browser)
            answer = browser.raw(content)
            assert status_of(answer) in WELL | {0, 414}, (content, answer[:300])
        assert browser.ask("/")[0] == 200
    assert capfd.readouterr().err == ""


def test_hanging_up_at_any_time(paths, capfd):
    """Before, in the middle of, and after a request; without reading what comes back."""
    with serving(paths.root, fresh=False) as browser:
        request = browser.head("GET /tasks HTTP/1.1")
        for length in (0, 1, 10, len(request) // 2, len(request) - 1, len(request)):
            for _ in range(3):
                with socket.create_connection(("127.0.0.1", browser.port)) as connection:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
                    connection.sendall(request[:length])
        assert browser.ask("/")[0] == 200
    assert capfd.readouterr().err == ""


# --- damage ----------------------------------------------------------------------------------------------------------

ODD = [
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1",
        "9" * 400,
        "9" * 5000,
        "0.5",
        "true",
        "null",
        '"x"',
        '""',
        "[]",
        "{}",
    ),
    *('"\\ud800"', '"\\u0000<script>"', "[" * 3000, "[" * 3000 + "]" * 3000, '{"a":' * 3000, '"farm0_t0_s0"', "[[1]]"),
    *('"9999-12-31T23:59:59+14:00"', '"0001-01-01T00:00:00-14:00"', '"2026-11-15"'),
]


SHOWN = [*PAGES, "/task/farm0_t0_s2", "/task/farm0_t0_s4", "/tasks?farm=0", "/tasks?farm=0&type=0&sort=seconds"]


def damaged(rng, content):
    """The same with bytes changed, cut off or added, or with a value of the JSON in it replaced."""
    way = rng.randrange(6)
    if way == 0:
        return rng.randbytes(rng.randrange(300))
    if way == 1:
        return content[: rng.randrange(len(content))]
    if way == 2:
        return content + rng.choice([b"\n", b"\x00" * 50, b"{}\n", b"[" * 99_999, b'{"key":"farm0_t0_s0"}\n', content])
    if way == 3:
        changed = bytearray(content)
        for _ in range(rng.randrange(1, 20)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed)
    lines = content.split(b"\n")
    place = rng.randrange(max(1, len(lines) - 1))
    try:
        line = json.loads(lines[place])
    except ValueError:
        return rng.choice(ODD).encode()
    names = [name for name in line if isinstance(line, dict)]
    inner = line.get("failure") if isinstance(line.get("failure"), dict) and rng.random() < 0.7 else line
    name = rng.choice(list(inner) or names)
    inner[name] = "@odd@"
    lines[place] = json.dumps(line).replace('"@odd@"', rng.choice(ODD)).encode()
    return b"\n".join(lines)


def damageable(paths):
    found = [paths.index, paths.audit, paths.campaign, paths.lock]
    return [*found, *paths.failures.iterdir(), *paths.workers.iterdir()]


@pytest.fixture
def copied(paths, tmp_path):
    """A copy of the run directory with the file of a lock, and the contents of all its small files."""
    lock = Lock.take(paths.lock)
    copy = type(paths)(tmp_path / "layouts.h5")
    shutil.copytree(paths.root, copy.root)
    lock.release()
    return copy, {path: path.read_bytes() for path in damageable(copy)}


@pytest.mark.slow
def test_damaged_run_directories(copied, capfd):
    copy, originals = copied
    rng = random.Random(9)
    statuses = set()
    with serving(copy.root) as browser:
        for _ in range(DAMAGES):
            path = rng.choice(list(originals))
            path.write_bytes(damaged(rng, originals[path]))
            statuses |= _statuses(browser, path, rng.sample(SHOWN, 4))
            path.write_bytes(originals[path])
        assert browser.ask("/")[0] == 200
    assert 200 in statuses
    assert capfd.readouterr().err == ""


def test_files_that_are_missing_or_folders(copied, capfd):
    copy, originals = copied
    statuses = set()
    with serving(copy.root) as browser:
        for path in originals:
            path.unlink()
            statuses |= _statuses(browser, path, SHOWN)
            path.mkdir()
            statuses |= _statuses(browser, path, SHOWN)
            path.rmdir()
            path.write_bytes(originals[path])
        assert browser.ask("/")[0] == 200
    assert 200 in statuses
    assert capfd.readouterr().err == ""


def _statuses(browser: Browser, path, pages):
    found = set()
    for page in pages:
        status, headers, body = browser.ask(page)
        assert status in (200, 404, 503), (path, path.is_file() and path.read_bytes()[:2000], page, body[:300])
        if "html" in headers["Content-Type"]:
            Checked(body.decode())
        found.add(status)
    return found
