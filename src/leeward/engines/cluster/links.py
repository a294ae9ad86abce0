"""The connection to a Dask cluster."""

import contextlib
import itertools
import queue
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from distributed import Client, Security

from leeward.campaign.execution import DaskSpec
from leeward.engines.cluster.members import Member
from leeward.engines.engine import EngineLostError
from leeward.errors import InputError, LeewardError
from leeward.events import Emit

CONNECT_S = 15.0
ANSWER_S = 60.0  # for a connected scheduler, which may be busy


class Link:
    """The connection to a cluster that others start and stop.

    address: for messages. expects: the workers that are expected, in words, if any.
    """

    def __init__(self, client: Client, address: str) -> None:
        self.client = client
        self.address = address

    @property
    def is_alive(self) -> bool:
        return bool(self.client.status == "running")

    @property
    def expects(self) -> str | None:
        return None

    def addresses(self) -> list[str]:
        """Return the addresses of the present workers."""
        client: Any = self.client
        try:
            known = client.sync(client.scheduler.identity, n_workers=-1, callback_timeout=ANSWER_S)
        except OSError as error:  # also TimeoutError: a stopped scheduler keeps its connections
            raise EngineLostError(f"the Dask scheduler at {self.address} does not answer ({error})") from error
        return list(known["workers"])

    def joined(self, member: Member) -> None:
        """Note a worker that is prepared."""

    def lost(self, member: Member) -> None:
        """Note a worker that is gone."""

    def tend(self, left: int, members: Sequence[Member]) -> None:
        """Adjust the number of workers to the tasks left, or raise an error if none can be had. Called often."""

    def close(self) -> None:
        """Close the connection without raising an error, as merging follows."""
        with contextlib.suppress(TimeoutError, OSError):  # the scheduler notices by itself
            self.client.close(timeout=CONNECT_S)


class Wire:
    """The traffic of one run over a link: functions to Dask workers, and messages back. token: of the run."""

    def __init__(self, link: Link) -> None:
        self.token = f"leeward-{secrets.token_hex(8)}"
        self._link = link
        self._numbers = itertools.count()
        self._messages: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()

    def listen(self) -> None:
        client: Any = self._link.client
        client.subscribe_topic(self.token, lambda event: self._messages.put(("said", event[1])))
        client.subscribe_topic("all", self._on_scheduler_event)

    def hang_up(self) -> None:
        for topic in (self.token, "all"):
            self._link.client.unsubscribe_topic(topic)

    def _on_scheduler_event(self, event: tuple[float, Any]) -> None:
        message = event[1]
        if isinstance(message, dict) and message.get("action") in ("add-worker", "remove-worker"):
            self._messages.put((message["action"], message["worker"]))

    def messages(self, seconds: float) -> Iterator[tuple[Any, ...]]:
        """Yield the messages received; wait at most this long for the first one."""
        with contextlib.suppress(queue.Empty):
            message = self._messages.get(timeout=seconds)
            while True:
                yield message
                message = self._messages.get_nowait()

    def new_name(self, what: str = "") -> str:
        return f"{self.token}-{what}{next(self._numbers)}"

    def submit(self, address: str, name: str, function: Callable[..., Any], *arguments: Any, priority: int = 0) -> Any:
        """Call a function on one Dask worker; return its future."""
        return self._link.client.submit(
            function,
            *arguments,
            key=name,
            workers=[address],
            allow_other_workers=False,
            pure=False,
            priority=priority,
        )

    def announce(self, future: Any, what: str, *facts: Any) -> None:
        """Put a message in the queue when the future is done."""
        future.add_done_callback(lambda done: self._messages.put((what, *facts, done)))


def connect(settings: DaskSpec, emit: Emit) -> Link:
    """Connect to a running scheduler, with TLS if it has it, else with a warning."""
    address = str(settings.scheduler)
    security = _security(settings)
    if not address.startswith("tls://"):
        emit("not-encrypted", address=address)
    try:
        client = Client(address, security=security, timeout=CONNECT_S, set_as_default=False, name="leeward")
    except (OSError, TimeoutError, ValueError) as error:
        raise LeewardError(f"{address}: no Dask scheduler answers there ({error}); is it running?") from error
    return Link(client, address)


def _security(settings: DaskSpec) -> Security:
    """Return the TLS settings from the given files; Dask's own configuration supplies the others."""
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
            f"{settings.scheduler} is encrypted, but its TLS files are not known; give {', '.join(missing)}, or set "
            "distributed.comm.tls in Dask's configuration"
        )
    return security


_OPTIONS = {"tls_ca_file": "--tls-ca", "tls_client_cert": "--tls-cert", "tls_client_key": "--tls-key"}
