"""Access to the dashboard: a request needs the token and the right Host header.

On a login node every user can reach a loopback port. And a page of another site, open in the user's browser, can send
requests to the port under its own host name (DNS rebinding).
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

TOKEN = "token"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:\[\]/\\@]+))(?::[0-9]{1,5})?", re.ASCII)


@dataclass(frozen=True)
class Access:
    """The token and the accepted host names. Any port is accepted, because a tunnel may end at another one."""

    hosts: frozenset[str] = frozenset(LOOPBACK)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @classmethod
    def of(cls, bound: str, more: Iterable[str] = ()) -> "Access":
        """Return the access rules for a listening address. more: other names of the host."""
        names = {bound, *more, *LOOPBACK} - {"0.0.0.0", "::"}
        return cls(frozenset(name.lower() for name in names))

    @property
    def cookie_name(self) -> str:
        """Return a cookie name that differs between dashboards, because all ports of a host share cookies."""
        return f"leeward-{hashlib.sha256(self.token.encode()).hexdigest()[:12]}"

    def accepts_host(self, header: str | None) -> bool:
        """Return whether the Host header names this server."""
        found = _HOST.fullmatch((header or "").strip().lower())
        return found is not None and (found[1] or found[2]) in self.hosts

    def is_token(self, text: str | None) -> bool:
        """Return whether a text is the token, compared in constant time."""
        return text is not None and hmac.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def has_cookie(self, header: str | None) -> bool:
        """Return whether a Cookie header has the token; it may also have malformed cookies of other programs."""
        pairs = (pair.partition("=") for pair in (header or "").split(";"))
        return any(name.strip() == self.cookie_name and self.is_token(value.strip()) for name, _, value in pairs)

    def set_cookie(self) -> str:
        """Return the Set-Cookie header: hidden from scripts, deleted when the browser closes.

        Lax, not Strict, so that the printed address works when clicked in a web shell or a mail. This is safe: no
        request changes anything, and pages of other sites can neither read nor frame a response.
        """
        return f"{self.cookie_name}={self.token}; Path=/; HttpOnly; SameSite=Lax"
