"""Who may see the dashboard: whoever has the token, and asks for the very host that is served.

Loopback is shared on a login node: everybody there can reach the port, and a page of some other site, open in the
browser of the one who serves, can be made to ask for it under a name of its own.
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
    """hosts: names by which the dashboard may be asked for, whatever the port: a tunnel may end at another one."""

    hosts: frozenset[str] = frozenset(LOOPBACK)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @classmethod
    def of(cls, bound: str, more: Iterable[str] = ()) -> "Access":
        """bound: the address that is listened on. more: other names of it."""
        names = {bound, *more, *LOOPBACK} - {"0.0.0.0", "::"}
        return cls(frozenset(name.lower() for name in names))

    @property
    def cookie_name(self) -> str:
        """One a dashboard: cookies know no ports, and several may be looked at, of several machines."""
        return f"leeward-{hashlib.sha256(self.token.encode()).hexdigest()[:12]}"

    def knows_host(self, header: str | None) -> bool:
        """Whether the Host header names this server."""
        found = _HOST.fullmatch((header or "").strip().lower())
        return found is not None and (found[1] or found[2]) in self.hosts

    def is_token(self, text: str | None) -> bool:
        """Compared in the same time whatever it is."""
        return text is not None and hmac.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def has_cookie(self, header: str | None) -> bool:
        """Whether a Cookie header carries the token. Others of this machine's programs may be in it, of any form."""
        pairs = (pair.partition("=") for pair in (header or "").split(";"))
        return any(name.strip() == self.cookie_name and self.is_token(value.strip()) for name, _, value in pairs)

    def set_cookie(self) -> str:
        """The Set-Cookie header: out of reach of scripts, gone with the browser.

        Lax, not Strict: the printed address may be clicked in a web shell or a mail, and the page that it leads to must
        get the cookie. Nothing here can be changed by a request, and no other site's page can read or frame an answer.
        """
        return f"{self.cookie_name}={self.token}; Path=/; HttpOnly; SameSite=Lax"
