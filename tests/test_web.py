"""The dashboard's server: who is let in, what every answer carries, and what no request can do."""

import gzip
import http.client
import re
import socket
import threading
import time
from urllib.parse import quote

import pytest

from foreign_files import own_result
from leeward.errors import LeewardError
from leeward.web import Access, Dashboard, server as server_module
from leeward.web.model import Model
from leeward.web.server import HEADERS
from run_cases import until
from web_cases import HANGS_S, empty_run, serving, status_of, store


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    paths = empty_run(tmp_path_factory.mktemp("place"))
    store(paths, own_result(0, 0, 0, turbines=3))
    return paths.root


@pytest.fixture(scope="module")
def browser(place):
    with serving(place, fresh=False) as browser:
        yield browser


# --- who is let in ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/tasks.csv", "/style.css", "/task/farm0_t0_s0", "/nothing", "/?token=", "/?a=b"]
)
def test_nothing_without_the_token(browser, path):
    status, headers, body = browser.ask(path, cookie=False)
    assert status == 403
    assert "Set-Cookie" not in headers
    assert body == b"403 open the address that `leeward serve` printed, including the token\n"


@pytest.mark.parametrize("token", ["x", "x" * 43, "%00", "%ff", "é", "", "x" * 60_000])
def test_a_wrong_token(browser, token):
    status, headers, _ = browser.ask(f"/?token={quote(token, safe='%')}", cookie=False)
    assert (status, headers["Set-Cookie"]) == (403, None)
    cookie = f"{browser.dashboard.access.cookie_name}={quote(token, safe='%')}"
    assert browser.ask("/", headers={"Cookie": cookie}, cookie=False)[0] == 403


def test_the_token_becomes_a_cookie(browser):
    token = browser.dashboard.access.token
    assert len(token) >= 43
    status, headers, body = browser.ask(f"/tasks?farm=1&token={token}&sort=-aep_gwh", cookie=False)
    assert (status, body) == (303, b"")
    assert headers["Location"] == "/tasks?farm=1&sort=-aep_gwh"
    name, _, flags = headers["Set-Cookie"].partition("; ")
    assert name == f"{browser.dashboard.access.cookie_name}={token}"
    assert set(flags.split("; ")) == {"Path=/", "HttpOnly", "SameSite=Lax"}
    assert browser.ask("/tasks", headers={"Cookie": name}, cookie=False)[0] == 200


def test_a_token_of_one_is_not_a_token_of_another(browser, place):
    with serving(place) as other:
        assert other.dashboard.access.token != browser.dashboard.access.token
        assert other.ask(f"/?token={browser.dashboard.access.token}", cookie=False)[0] == 403
        assert other.ask("/", headers={"Cookie": browser.cookie}, cookie=False)[0] == 403


def test_cookies_of_others(browser):
    """Cookies know no ports: those of every other program on this machine come along, of whatever form."""
    for others in (
        "a=b",
        'state={"a": [1, 2]}',
        "=",
        "a",
        "b=\xff",
        f"leeward-{browser.port}=old",
        f"$x; {'y' * 5000}=1",
    ):
        for cookies in (f"{others}; {browser.cookie}", f"{browser.cookie}; {others}", f"{browser.cookie};{others}"):
            assert browser.ask("/", headers={"Cookie": cookies}, cookie=False)[0] == 200, cookies
        assert browser.ask("/", headers={"Cookie": others}, cookie=False)[0] == 403
    wrong = browser.cookie.replace("leeward-", "leeward-1")
    assert browser.ask("/", headers={"Cookie": wrong}, cookie=False)[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        *(
            "//evil.example",
            "///evil.example/a",
            "/\\evil.example",
            "/%5cevil.example",
            "/%2f%2fevil.example",
            "/%2F/evil",
        ),
        *(
            "/%0d%0aSet-Cookie:%20a=b",
            "/%0aLocation:%20//evil",
            "/%09//evil.example",
            "http://evil.example/",
            "/.//evil",
        ),
        *("http:evil.example", "/é", "/%ff%00"),
    ],
)
def test_never_on_to_another_host(browser, path):
    """Also where the library would help: two slashes in front are another host to a browser."""
    token = browser.dashboard.access.token
    answer = browser.raw(browser.head(f"GET {path}?token={token}&next=//evil%0d%0aA:b HTTP/1.1", cookie=False))
    if path == "http:evil.example":
        assert status_of(answer) == 400
        return
    assert status_of(answer) == 303
    head = answer.partition(b"\r\n\r\n")[0].decode("ascii")
    (target,) = re.findall(r"^Location: (.*)\r?$", head, re.MULTILINE)
    assert re.fullmatch(r"/(?![/\\])[\w./%~-]*\?[\w%.=&-]+", target.strip()), target
    assert token not in target
    for name in ("Set-Cookie", "Location"):
        assert len(re.findall(f"^{name}:", head, re.MULTILINE)) == 1


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:1", True),  # a tunnel may end at any port
        ("localhost:8750", True),
        ("LocalHost", True),
        ("[::1]:8750", True),
        ("[::1]", True),
        ("evil.example", False),
        ("evil.example:8750", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("evil.example@127.0.0.1", False),
        ("127.0.0.1:80@evil.example", False),
        ("127.0.0.1:evil", False),
        ("[::1]evil.example", False),
        ("[::1", False),
        ("::1", False),
        ("127.0.0.2", False),
        ("0.0.0.0", False),
        ("127.0.0.1, evil.example", False),
        ("", False),
        (":8750", False),
    ],
)
def test_the_name_that_is_asked_for(browser, host, is_known):
    """A page of another site can make its own name mean 127.0.0.1; the browser then still says that name."""
    assert browser.ask("/", headers={"Host": host})[0] == (200 if is_known else 421)
    assert browser.ask(f"/?token={browser.dashboard.access.token}", headers={"Host": host}, cookie=False)[0] == (
        303 if is_known else 421
    )


def test_no_name_or_two(browser):
    cookie = f"Cookie: {browser.cookie}\r\n"
    assert status_of(browser.raw(f"GET / HTTP/1.1\r\n{cookie}\r\n".encode())) == 421
    assert status_of(browser.raw(f"GET / HTTP/1.0\r\n{cookie}\r\n".encode())) == 421
    two = f"Host: evil.example\r\nHost: 127.0.0.1\r\n{cookie}\r\n"
    assert status_of(browser.raw(f"GET / HTTP/1.1\r\n{two}".encode())) == 421
    assert status_of(browser.raw(f"GET /\r\n{cookie}\r\n".encode())) == 421


def test_names_of_a_machine():
    access = Access.of("0.0.0.0", ["Login1.cluster.example"])
    assert access.accepts_host("login1.cluster.example:8750")
    assert access.accepts_host("127.0.0.1")
    assert not access.accepts_host("0.0.0.0")
    assert not access.accepts_host("login2.cluster.example")
    assert Access.of("fe80::1").accepts_host("[FE80::1]:80")
    assert Access.of("127.0.0.1").token != Access.of("127.0.0.1").token


# --- what every answer carries ---------------------------------------------------------------------------------------


def test_every_answer_is_guarded(browser):
    token = browser.dashboard.access.token
    answers = {
        "a page": browser.head("GET / HTTP/1.1"),
        "a file": browser.head("GET /tasks.csv HTTP/1.1"),
        "a picture": browser.head("GET /icon.svg HTTP/1.1"),
        "no page": browser.head("GET /nothing HTTP/1.1"),
        "no token": browser.head("GET / HTTP/1.1", cookie=False),
        "the token": browser.head(f"GET /?token={token} HTTP/1.1", cookie=False),
        "a wrong query": browser.head("GET /tasks?farm=x HTTP/1.1"),
        "another method": browser.head("POST / HTTP/1.1"),
        "no method": browser.head("BREW /pot HTTP/1.1"),
        "no request": b"\x16\x03\x01 hello there, server\r\n\r\n",
        "a long address": browser.head(f"GET /{'a' * 70_000} HTTP/1.1"),
        "many headers": browser.head("GET / HTTP/1.1", *(f"X-{i}: y" for i in range(200))),
        "a long header": browser.head("GET / HTTP/1.1", f"X: {'y' * 70_000}"),
        "another version": browser.head("GET / HTTP/7.0"),
        "another host": b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    }
    statuses = {}
    for what, request in answers.items():
        answer = browser.raw(request)
        head = answer.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        found = dict(line.split(": ", 1) for line in head[1:])
        assert found | HEADERS == found, what
        assert "default-src 'none'" in found["Content-Security-Policy"]
        assert not re.search(r"unsafe|\*|https?:|data:", found["Content-Security-Policy"])
        assert "Python" not in found.get("Server", "")
        statuses[what] = status_of(answer)
    assert statuses == {
        **dict.fromkeys(("a page", "a file", "a picture"), 200),
        **{"no page": 404, "no token": 403, "the token": 303, "a wrong query": 400, "no request": 400},
        **{"another method": 405, "no method": 405, "another host": 421, "another version": 505},
        **{"a long address": 414, "many headers": 431, "a long header": 431},
    }


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND"])
def test_other_methods(browser, method):
    status, headers, body = browser.ask("/", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert body.startswith(b"405")


def test_only_the_head(browser):
    for path, status in (("/", 200), ("/tasks.csv", 200), ("/nothing", 404)):
        answer = browser.raw(browser.head(f"HEAD {path} HTTP/1.1", "Connection: close"))
        head, _, body = answer.partition(b"\r\n\r\n")
        assert (status_of(answer), body) == (status, b"")
        whole = browser.ask(path)[2]
        assert f"Content-Length: {len(whole)}".encode() in head


def test_packed_where_it_is_taken(browser):
    plain = browser.ask("/tasks")
    packed = browser.ask("/tasks", headers={"Accept-Encoding": "deflate, gzip"})
    assert plain[1]["Content-Encoding"] is None
    assert packed[1]["Content-Encoding"] == "gzip"
    assert int(packed[1]["Content-Length"]) == len(packed[2]) < len(plain[2])
    assert gzip.decompress(packed[2]) == plain[2]
    assert "Accept-Encoding" in packed[1]["Vary"]
    assert browser.ask("/icon.svg", headers={"Accept-Encoding": "gzip"})[1]["Content-Encoding"] is None  # too small


def test_news_only(browser):
    tag = browser.ask("/tasks")[1]["ETag"]
    status, headers, body = browser.ask("/tasks", headers={"If-None-Match": tag})
    assert (status, body, headers["ETag"]) == (304, b"", tag)
    assert browser.ask("/tasks", headers={"If-None-Match": '"other"'})[0] == 200
    assert browser.ask("/nothing")[1]["ETag"] is None
    assert browser.ask("/", headers={"If-None-Match": tag}, cookie=False)[0] == 403


def test_what_a_browser_may_keep(browser):
    for path in ("/", "/tasks.csv", "/nothing", "/task/farm0_t0_s0.csv"):
        assert browser.ask(path)[1]["Cache-Control"] == "no-store"
    assert browser.ask("/", cookie=False)[1]["Cache-Control"] == "no-store"
    assert browser.ask("/style.css")[1]["Cache-Control"] == "private, max-age=3600"
    assert browser.ask("/task/farm0_t0_s0.csv")[1]["Content-Disposition"].startswith("attachment")


# --- what no request can do ------------------------------------------------------------------------------------------


def climbing():
    """Ways to /etc/passwd and to files of the run, as they have been spelt against other servers."""
    steps = ["..", "%2e%2e", ".%2e", "%252e%252e", "..%00", "..;", "....", "%c0%ae%c0%ae", "..%5c", "%u002e%u002e"]
    for step in steps:
        for slash in ("/", "%2f", "\\", "%5c", "//"):
            yield f"/{slash.join([step] * 12)}{slash}etc{slash}passwd"
            yield f"/task/{slash.join([step] * 12)}{slash}etc{slash}passwd"
    yield from ("/etc/passwd", "//etc/passwd", "/file:///etc/passwd", "file:///etc/passwd", "/task//etc/passwd")
    yield from ("/task/farm0_t0_s0%00.csv", "/task/farm0_t0_s0.csv%00", "/task/%00", "/task/.csv", "/task/", "/task")
    yield from ("/campaign.yaml", "/layouts.run/campaign.yaml", "/index.jsonl", "/assets/style.css", "/../style.css")
    yield from ("/task/farm0_t0_s0/../../campaign.yaml", "/task/results/farm0_t0_s0.h5", "/task/farm0_t0_s0.h5")
    yield from (
        "/task/farm00_t0_s0",
        "/task/farm0_t0_s-1",
        "/task/farm٣_t0_s0",
        "/task/FARM0_t0_s0",
        "/task/ farm0_t0_s0",
    )


def test_no_other_file(browser, place):
    secret = place / "campaign.yaml"
    words = [b"root:", secret.read_bytes()[:60], (place / "index.jsonl").read_bytes()[:60]]
    for path in climbing():
        line = f"GET {path} HTTP/1.1".encode().decode("latin-1")
        for target in (line, line.replace("GET /", f"GET http://127.0.0.1:{browser.port}/")):
            answer = browser.raw(browser.head(target, "Connection: close"))
            assert status_of(answer) in (400, 404), (target, answer[:200])
            assert not any(word in answer for word in words), target


def test_a_body_that_is_not_read(browser):
    """What follows such a request on the connection is never taken for another one."""
    smuggled = browser.head("GET /tasks.csv HTTP/1.1")
    for length in (
        f"Content-Length: {len(smuggled)}",
        "Transfer-Encoding: chunked",
        "Content-Length: x",
        "Content-Length: -5",
        f"Content-Length: 0\r\nContent-Length: {len(smuggled)}",
    ):
        for method in ("GET", "HEAD", "POST"):
            answer = browser.raw(browser.head(f"{method} / HTTP/1.1", length) + smuggled)
            assert answer.count(b"HTTP/1.1 ") == 1, (length, method)
            assert b"Connection: close" in answer
    for lengths in ("Content-Length: 0\r\nContent-Length: 0", "Content-Length: 0, 0"):
        assert status_of(browser.raw(browser.head("GET / HTTP/1.1", lengths))) == 400
    both = browser.raw(browser.head("GET / HTTP/1.1") + smuggled)
    assert both.count(b"HTTP/1.1 200") == 2  # one after the other is well


def test_one_connection_for_many(browser):
    connection = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=HANGS_S)
    connection.connect()
    first = connection.sock.getsockname()
    for path in ("/", "/nothing", "/tasks", "/style.css"):
        connection.request("GET", path, headers={"Cookie": browser.cookie, "Accept-Encoding": "gzip"})
        connection.getresponse().read()
        assert connection.sock.getsockname() == first
    connection.close()


def test_slow_and_silent_ones_block_nobody(place, monkeypatch):
    """More clients than there is room for never end their request. The server does not wait for them."""
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 8)
    with serving(place) as browser:
        silent = [socket.create_connection(("127.0.0.1", browser.port), timeout=HANGS_S) for _ in range(20)]
        for connection in silent[::2]:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        for _ in range(3):
            assert browser.ask("/")[0] == 200
        until(lambda: len(_answering()) <= 8, "there are as many threads as there is room for")
        for connection in silent:
            connection.close()
        assert browser.ask("/")[0] == 200


def _answering():
    """Threads that have a connection; one that has just hung up may need a moment to end."""
    return [thread for thread in threading.enumerate() if "process_request_thread" in thread.name]


@pytest.mark.parametrize("moment", ["setup", "finish"])
def test_who_has_to_make_room_may_take_a_moment(place, monkeypatch, moment):
    """On a busy machine a thread begins late and ends late. The next client gets its answer all the same."""
    real = getattr(server_module._Handler, moment)

    def late(handler):
        time.sleep(0.3)  # longer than CONNECTION_S: a server that waits no longer would refuse the next client
        real(handler)

    monkeypatch.setattr(server_module, "CONNECTION_S", 0.05)
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(server_module._Handler, moment, late)
    with serving(place) as browser, socket.create_connection(("127.0.0.1", browser.port), timeout=HANGS_S):
        assert browser.ask("/")[0] == 200


def test_an_address_that_is_taken(place):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LeewardError, match=f"127.0.0.1, port {port}: cannot listen there .*in use"):
            Dashboard(Model(place), "127.0.0.1", port, Access())
    for host in ("no.such.host.invalid", "a" * 70, "é..b"):
        with pytest.raises(LeewardError, match="cannot listen there"):
            Dashboard(Model(place), host, 0, Access())


def test_other_addresses(place):
    """Nothing is served here. On all addresses it is to be opened by the name of the machine."""
    with Dashboard(Model(place), "0.0.0.0", 0, Access()) as everywhere:
        assert everywhere.address.startswith(f"http://{socket.gethostname()}:{everywhere.port}/?token=")
    if _has_sixth():
        with Dashboard(Model(place), "::1", 0, Access()) as sixth:
            assert sixth.address.startswith(f"http://[::1]:{sixth.port}/?token=")


def _has_sixth():
    """A kernel that knows IPv6 may have no address of it: most containers have none."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True
