"""The way to a Dask cluster: one that runs already, or one whose jobs we start and stop ourselves."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from distributed import Client, Security

from leeward.campaign.execution import DaskSpec
from leeward.engines.cluster.members import Member
from leeward.engines.outcomes import EngineLostError
from leeward.errors import InputError, LeewardError
from leeward.events import Emit

CONNECT_S = 15.0
ANSWER_S = 60.0  # for a scheduler that was there, and may have much to do


class Link(Protocol):
    """client: to speak through. address: for people. expects: what is on its way, if anything."""

    client: Client
    address: str

    @property
    def is_alive(self) -> bool: ...

    @property
    def expects(self) -> str | None: ...

    def addresses(self) -> list[str]:
        """Of the workers that are there now."""

    def joined(self, member: Member) -> None:
        """A worker is there, and has said who it is."""

    def lost(self, member: Member) -> None:
        """It is gone."""

    def tend(self, left: int, members: Sequence[Member]) -> None:
        """Called often: to have as many workers as so many tasks need. Raises when there is no hope."""

    def close(self) -> None:
        """Raises nothing: what was computed is merged next."""


class Connected:
    """What both ways have in common."""

    def __init__(self, client: Client, address: str) -> None:
        self.client = client
        self.address = address

    @property
    def is_alive(self) -> bool:
        return bool(self.client.status == "running")

    def addresses(self) -> list[str]:
        client: Any = self.client
        try:
            known = client.sync(client.scheduler.identity, n_workers=-1, callback_timeout=ANSWER_S)
        except OSError as error:  # a TimeoutError too: one that is stopped keeps its connections
            raise EngineLostError(f"the Dask scheduler at {self.address} does not answer ({error})") from error
        return list(known["workers"])


class DaskLink(Connected):
    """A cluster that somebody else started, and stops."""

    expects = None

    def joined(self, member: Member) -> None:
        pass

    def lost(self, member: Member) -> None:
        pass

    def tend(self, left: int, members: Sequence[Member]) -> None:
        pass

    def close(self) -> None:
        with contextlib.suppress(TimeoutError, OSError):  # whoever does not answer notices by itself
            self.client.close(timeout=CONNECT_S)


def connect(settings: DaskSpec, tell: Emit) -> DaskLink:
    """To a running scheduler; with TLS where it has it, and a warning where not."""
    address = str(settings.scheduler)
    security = _security(settings)
    if not address.startswith("tls://"):
        tell("not-encrypted", address=address)
    try:
        client = Client(address, security=security, timeout=CONNECT_S, set_as_default=False, name="leeward")
    except (OSError, TimeoutError, ValueError) as error:
        raise LeewardError(f"{address}: no Dask scheduler answers there ({error}); is it running?") from error
    return DaskLink(client, address)


def _security(settings: DaskSpec) -> Security:
    """From the files that are given; Dask's own configuration counts where none are."""
    given: dict[str, Any] = {}
    files = {"tls_ca_file": settings.tls_ca, "tls_client_cert": settings.tls_cert, "tls_client_key": settings.tls_key}
    for name, file in files.items():
        if file is not None:
            path = Path(file).expanduser()
            if not path.is_file():
                raise InputError(f"{path}: no such file; expected a TLS file in PEM format")
            given[name] = str(path)
    if not settings.is_encrypted:
        return Security()
    security = Security(require_encryption=True, **given)
    missing = [option for name, option in _OPTIONS.items() if getattr(security, name) is None]
    if missing:
        raise InputError(
            f"{settings.scheduler} is encrypted, and its TLS files are not known; expected {', '.join(missing)}, or "
            "Dask's own settings distributed.comm.tls"
        )
    return security


_OPTIONS = {"tls_ca_file": "--tls-ca", "tls_client_cert": "--tls-cert", "tls_client_key": "--tls-key"}
