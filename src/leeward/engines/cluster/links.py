"""The connection to a Dask cluster."""

import contextlib
import itertools
import queue
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from distributed import Client, Security

from leeward.campaign.execution import DaskSpec
from leeward.engines.cluster.members import Member
from leeward.engines.engine import EngineLostError, Outcome
from leeward.errors import InputError, LeewardError
from leeward.events import Emit

CONNECT_S = 15.0
ANSWER_S = 60.0  # time limit for the answer of a connected scheduler, which may be busy

# keys of Dask, and those of leeward
_TLS_KEYS = {"tls_ca_file": "tls_ca", "tls_client_cert": "tls_cert", "tls_client_key": "tls_key"}

Handler = Callable[..., Iterable[Outcome] | None]
Message = tuple[Any, ...]  # a handler and its arguments


class Link:
    """The connection of a run to a Dask cluster that others start and stop.

    It calls functions on Dask workers. Messages come back through a queue, because Dask receives them in a thread of
    its own. address: shown in messages to the user. token: identifies the run.
    """

    def __init__(self, client: Client, address: str) -> None:
        self.client = client
        self.address = address
        self.token = f"leeward-{secrets.token_hex(8)}"
        self._numbers = itertools.count()
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()

    @property
    def is_alive(self) -> bool:
        return bool(self.client.status == "running")

    @property
    def expects(self) -> str | None:
        """Return the workers that are expected, in words; None if there are none."""
        return None

    def addresses(self) -> list[str]:
        """Return the addresses of the present workers."""
        client: Any = self.client
        try:
            known = client.sync(client.scheduler.identity, n_workers=-1, callback_timeout=ANSWER_S)
        except OSError as error:  # includes TimeoutError: a stopped scheduler keeps its connections open
            raise EngineLostError(f"the Dask scheduler at {self.address} does not answer ({error})") from error
        return list(known["workers"])

    def joined(self, member: Member) -> None:
        """Handle a worker that is prepared."""

    def lost(self, member: Member) -> None:
        """Handle a worker that is gone."""

    def adjust(self, left: int, members: Sequence[Member]) -> None:
        """Adjust the number of workers to the tasks left; raise LeewardError if there can be none. Called often."""

    def close(self) -> None:
        """Close the connection without raising an error, because the run goes on to merge."""
        with contextlib.suppress(TimeoutError, OSError):  # the scheduler detects it
            self.client.close(timeout=CONNECT_S)

    def listen(self, on_message: Handler, on_added: Handler, on_removed: Handler) -> None:
        """Queue messages of this run, and the addresses of workers that are added or removed, for these handlers."""
        on_action = {"add-worker": on_added, "remove-worker": on_removed}

        def on_scheduler_event(event: tuple[float, Any]) -> None:
            if isinstance(event[1], dict) and event[1].get("action") in on_action:
                self._messages.put((on_action[event[1]["action"]], event[1]["worker"]))

        client: Any = self.client
        client.subscribe_topic(self.token, lambda event: self._messages.put((on_message, event[1])))
        client.subscribe_topic("all", on_scheduler_event)

    def stop_listening(self) -> None:
        for topic in (self.token, "all"):
            self.client.unsubscribe_topic(topic)

    def messages(self, seconds: float) -> Iterator[Message]:
        """Yield handlers with their arguments; wait at most this long for the first one."""
        with contextlib.suppress(queue.Empty):
            message = self._messages.get(timeout=seconds)
            while True:
                yield message
                message = self._messages.get_nowait()

    def call(
        self, address: str, function: Callable[..., Any], *arguments: Any, on_end: Handler | None = None, first: bool
    ) -> Any:
        """Call a function on one Dask worker; return its future.

        on_end: called with the future when it is done. first: run it before the calls that wait there.
        """
        future = self.client.submit(
            function,
            *arguments,
            key=f"{self.token}-{function.__name__}-{next(self._numbers)}",
            workers=[address],
            allow_other_workers=False,
            pure=False,
            priority=10 if first else 0,
        )
        if on_end is not None:
            future.add_done_callback(lambda done: self._messages.put((on_end, done)))
        return future


def connect(settings: DaskSpec, emit: Emit) -> Link:
    """Connect to a running scheduler; emit a warning if the connection is not encrypted."""
    address = str(settings.scheduler)
    security = _security(settings)
    if not address.startswith("tls://"):
        emit("not-encrypted", address=address)
    try:
        client = Client(address, security=security, timeout=CONNECT_S, set_as_default=False, name="leeward")
    except (OSError, TimeoutError, ValueError) as error:
        raise LeewardError(f"{address}: no Dask scheduler answers ({error}); is it running?") from error
    return Link(client, address)


def _security(settings: DaskSpec) -> Security:
    """Return the TLS settings from the given files; Dask's own configuration supplies the others."""
    given: dict[str, Any] = {}
    for name, key in _TLS_KEYS.items():
        if (file := getattr(settings, key)) is not None:
            path = Path(file).expanduser()
            if not path.is_file():
                raise InputError(f"{path}: no such file; expected a TLS file in PEM format")
            given[name] = str(path)
    if not settings.is_encrypted:
        return Security()
    security = Security(require_encryption=True, **given)
    missing = [f"--{key.replace('_', '-')}" for name, key in _TLS_KEYS.items() if getattr(security, name) is None]
    if missing:
        raise InputError(
            f"{settings.scheduler} is encrypted, but TLS files are missing; give {', '.join(missing)}, or set "
            "distributed.comm.tls in Dask's configuration"
        )
    return security
