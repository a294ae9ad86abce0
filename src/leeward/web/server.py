"""The HTTP server: sockets, headers and access control. `routes` makes the pages."""

import contextlib
import gzip
import hashlib
import socket
import socketserver
import sys
import threading
import traceback
from collections import OrderedDict
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from leeward import __version__
from leeward.errors import LeewardError
from leeward.web.access import TOKEN, Access
from leeward.web.model import Model
from leeward.web.responses import Response
from leeward.web.routes import respond

MOST_CONNECTIONS = 64  # most connections at a time; every user of the machine can open some
CONNECTION_S = 0.5  # a new connection waits this long while all others are busy
CLOSING_S = 20.0  # it waits this long after an idle one was closed, because the machine may be busy
IDLE_S = 30.0  # time limit of an idle connection
SMALLEST_COMPRESSED = 2000  # bytes; shorter responses are not compressed
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Dashboard:
    """A server of one run directory or file of results on one address."""

    def __init__(self, model: Model, host: str, port: int, access: Access) -> None:
        self.access = access
        try:
            family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self._server = _Server(where, family, model, access)
        except (
            OSError,
            UnicodeError,
        ) as error:  # the port is in use, the address is invalid here, or it is not a host name
            why = getattr(error, "strerror", None) or error
            raise LeewardError(f"{host}, port {port}: cannot listen there ({why})") from error
        self.host = host
        self.port: int = self._server.server_address[1]

    @property
    def address(self) -> str:
        """Return the address to open in a browser. It contains the token."""
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{self.port}/?{urlencode({TOKEN: self.access.token})}"

    def serve(self) -> None:
        """Serve until `close` is called from another thread, or this one is interrupted."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop listening."""
        self._server.is_closing = True
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> "Dashboard":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.is_closing = True
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    is_closing = False
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, address: Any, family: int, model: Model, access: Access) -> None:
        self.address_family = family
        self.model = model
        self.access = access
        self._connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._idle: OrderedDict[socket.socket, None] = OrderedDict()  # idle connections, the longest idle first
        self._counting = threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without the reverse DNS lookup of HTTPServer, which may take seconds."""
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection; if there are too many, close the one that has been idle the longest."""
        if not self._connections.acquire(blocking=False):
            wait = CLOSING_S if self._close_longest_idle() else CONNECTION_S
            if not self._connections.acquire(timeout=wait):
                self.shutdown_request(request)
                return
        self.mark_idle(request, True)  # now, because its thread may begin late
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self.mark_idle(request, False)
            self._connections.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.mark_idle(request, False)
            self._connections.release()

    def mark_idle(self, request: socket.socket, is_idle: bool) -> None:
        """Mark a connection as idle or busy."""
        with self._counting:
            self._idle.pop(request, None)
            if is_idle:
                self._idle[request] = None

    def _close_longest_idle(self) -> bool:
        """Close the connection that has been idle the longest; return whether there was one."""
        with self._counting:
            oldest = self._idle.popitem(last=False)[0] if self._idle else None
        if oldest is None:
            return False
        with contextlib.suppress(OSError):  # it may already be closed
            oldest.shutdown(socket.SHUT_RDWR)
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore closed connections, and print other errors."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            traceback.print_exc()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = f"leeward/{__version__}"
    sys_version = ""
    default_request_version = "HTTP/1.0"  # so that requests without a version get headers too
    timeout = IDLE_S
    disable_nagle_algorithm = True  # else every response waits 40 ms for an acknowledgement
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s\n"
    server: _Server

    def handle_one_request(self) -> None:
        self.server.mark_idle(self.connection, True)
        super().handle_one_request()

    def end_headers(self) -> None:
        """Add the security headers, also to error responses of the library."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def handle_expect_100(self) -> bool:
        """Do not ask for a body, because it would not be read."""
        return True

    def do_GET(self) -> None:
        self._respond(with_body=True)

    def do_HEAD(self) -> None:
        self._respond(with_body=False)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send an error of the library; an unknown method gets a message of ours."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self.close_connection = True  # a body is not read
            self._send(_plain(405, "this dashboard is read-only"), True, {"Allow": "GET, HEAD"})
        else:
            super().send_error(code, message, explain)

    def _respond(self, *, with_body: bool) -> None:
        self.server.mark_idle(self.connection, False)
        has_body = self.headers.get("Content-Length", "0").strip() != "0" or "Transfer-Encoding" in self.headers
        if has_body:  # the body is not read
            self.close_connection = True
        access, target, hosts = self.server.access, _Target.of(self.path), self.headers.get_all("Host", [])
        lengths = self.headers.get_all("Content-Length", [])
        headers: dict[str, str] = {}
        if len(lengths) > 1 or "," in "".join(lengths):  # a proxy may use the other one
            self.close_connection = True
            found = _plain(400, "more than one Content-Length")
        elif len(hosts) != 1 or not access.accepts_host(hosts[0]):
            found = _plain(
                421, "this dashboard does not accept that host name; add it with `leeward serve --name NAME`"
            )
        elif target is None:
            found = _plain(400, "invalid address")
        elif access.is_token(target.query.get(TOKEN)):
            headers = {"Location": target.without_token(), "Set-Cookie": access.set_cookie()}
            found = Response(b"", status=303)
        elif access.has_cookie(self.headers.get("Cookie")):
            found = self._response_to(target)
        else:
            found = _plain(403, "open the address that `leeward serve` printed, including the token")
        self._send(found, with_body, headers)

    def _response_to(self, target: "_Target") -> Response:
        """Return the response; an unexpected error is printed on the terminal, not sent to the browser."""
        try:
            return respond(self.server.model, target.path, target.query)
        except Exception:
            if self.server.is_closing:  # its data may be gone, and no client waits for it
                self.close_connection = True
                return _plain(503, "the dashboard is shutting down")
            traceback.print_exc()
            return _plain(500, "internal error of leeward; see the terminal of `leeward serve`")

    def _send(self, found: Response, with_body: bool, more: Mapping[str, str] | None = None) -> None:
        tag = f'"{hashlib.sha256(found.body).hexdigest()[:32]}"'
        is_known = found.status == 200 and self.headers.get("If-None-Match") == tag
        body = b"" if is_known else found.body
        self.send_response(HTTPStatus.NOT_MODIFIED if is_known else found.status)
        for name, value in (more or {}).items():
            self.send_header(name, value)
        keep = f"private, max-age={found.keep_s}" if found.keep_s else "no-store"
        self.send_header("Cache-Control", keep)
        self.send_header("Vary", "Accept-Encoding, Cookie")
        if self.close_connection:
            self.send_header("Connection", "close")
        if found.status == 200:
            self.send_header("ETag", tag)
        if found.name:
            self.send_header("Content-Disposition", f"attachment; filename*=UTF-8''{quote(found.name)}")
        if not is_known:
            self.send_header("Content-Type", found.kind)
            body = self._compressed(body)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _compressed(self, body: bytes) -> bytes:
        """Return the body compressed if the browser accepts that: pages may come through a tunnel."""
        if len(body) < SMALLEST_COMPRESSED or "gzip" not in self.headers.get("Accept-Encoding", ""):
            return body
        self.send_header("Content-Encoding", "gzip")
        return gzip.compress(body, 3, mtime=0)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def _plain(status: int, words: str) -> Response:
    return Response(f"{status} {words}\n".encode(), "text/plain; charset=utf-8", status)


class _Target(NamedTuple):
    """The path and query of a request; the last of several values of one name counts."""

    path: str
    query: dict[str, str]

    @classmethod
    def of(cls, text: str) -> "_Target | None":
        """Return the target of a request line; None if it is invalid."""
        try:
            parts = urlsplit(text)
            query = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=50))
        except ValueError:
            return None
        return cls(unquote(parts.path), query) if parts.path.startswith("/") else None

    def without_token(self) -> str:
        """Return the address without the token, for the address bar; never one of another host."""
        rest = {name: value for name, value in self.query.items() if name != TOKEN}
        path = "/" + quote(self.path.lstrip("/\\"))
        return f"{path}?{urlencode(rest)}" if rest else path
