"""Options of engines that `run` and `evaluate` share, and the preparation of an engine."""

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from typer import Option

from leeward.cli.options import Options, SlurmOptions, given
from leeward.cli.output import is_terminal
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.campaign import Execution

STORAGE_WAIT_S = 1800.0
AnyKey = TypeVar("AnyKey")


class DaskOptions(Options):
    """Connection to a running Dask cluster."""

    scheduler: str | None = Option(None, help="dask: address of a running scheduler, for example tls://host:8786.")
    tls_ca: str | None = Option(None, help="dask: PEM file with the certificate authority of the cluster.")
    tls_cert: str | None = Option(None, help="dask: PEM file with the client certificate.")
    tls_key: str | None = Option(None, help="dask: PEM file with the private key of the client certificate.")


class EngineOptions(Options):
    """The engine, and its settings."""

    workers: int | None = Option(
        None,
        help="local: number of worker processes; gpu: number of GPUs. Default: as in the file, or the number of usable "
        "cores or GPUs.",
    )
    engine: str | None = Option(
        None,
        help="Where to compute: local (worker processes), inline (this process), gpu (NVIDIA GPUs of this machine), "
        "dask (a Dask cluster) or slurm (SLURM jobs). Default: as in the file, or local.",
    )
    dask: DaskOptions
    slurm: SlurmOptions
    timeout_s: float | None = Option(
        None,
        help="Time limit of a task in seconds, after which it is killed; gpu: time limit without a result or progress. "
        "Default: as in the file, or 3600.",
    )
    retries: int | None = Option(
        None, help="Number of retries of a task whose worker died. Default: as in the file, or 2."
    )

    def settings(self) -> dict[str, Any]:
        """Return the settings of the execution that these options give; None keeps a setting."""
        return {
            "workers": self.workers,
            "engine": self.engine,
            "timeout_s": self.timeout_s,
            "retries": self.retries,
            "dask": given(vars(self.dask)),
            "slurm": given(vars(self.slurm)),
        }


class StoppingOptions(Options):
    """Waiting times, for tasks and for the disk."""

    grace: float = Option(60.0, min=0, help="Seconds to wait for running tasks after Ctrl-C or SIGTERM.")
    storage_wait: float | None = Option(
        None, help="Seconds to wait while the disk rejects writes. Default: unlimited on a terminal, otherwise 1800."
    )

    @property
    def storage_wait_s(self) -> float:
        """Return the seconds to wait while the disk rejects writes."""
        if self.storage_wait is not None:
            return self.storage_wait
        return float("inf") if is_terminal(sys.stderr) else STORAGE_WAIT_S


def prepare(engine: str) -> None:
    """Check the kernel cache, and silence Dask's log, because the run reports the same events."""
    if engine in ("local", "gpu"):
        from leeward.wind.cache import cache_folder

        cache_folder()  # warn here if the folder cannot be used; workers warn only in their logs
    if engine not in ("dask", "slurm"):
        return
    import distributed.config  # noqa: F401 (sets up its logging)

    for top in ("distributed", "tornado", "asyncio"):
        for name in (top, *(name for name in logging.root.manager.loggerDict if name.startswith(f"{top}."))):
            logging.getLogger(name).handlers[:] = [logging.NullHandler()]
            logging.getLogger(name).propagate = False


def chosen_engine(execution: "Execution", options: EngineOptions) -> str:
    """Return the name of the engine; raise InputError for an option of another engine, which would have no effect."""
    from leeward.campaign.execution import with_user_defaults

    engine = with_user_defaults(execution).engine
    workers = {"workers": options.workers}
    of_engines = {"local": workers, "gpu": workers, "dask": vars(options.dask), "slurm": vars(options.slurm)}
    its_own = of_engines.get(engine, {})
    for other, values in of_engines.items():
        named = _names({name: value for name, value in given(values).items() if name not in its_own})
        if named:
            takes = _names(its_own) or "none"
            raise InputError(f"{named} needs --engine {other}, but the engine is {engine}; its options are: {takes}")
    return engine


def selected_tasks(
    only: str | None, only_from: Path | None, parse: Callable[[str], AnyKey]
) -> str | list[AnyKey] | None:
    """Return the selection of --only, or the keys in the file of --only-from; None if neither is given."""
    if only_from is None:
        return only
    if only is not None:
        raise InputError("--only and --only-from are both given; give one or the other, not both")
    from leeward.campaign.selection import read_keys

    return read_keys(only_from, parse)


def _names(options: dict[str, Any]) -> str:
    return ", ".join("--" + name.replace("_", "-") for name in options)
