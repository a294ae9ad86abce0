"""The section `execution` of a campaign file, which does not affect results, and the user's defaults for it."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from leeward.campaign.validation import Strict, validated
from leeward.readers.document import Document

VARIABLE = "LEEWARD_DEFAULTS"  # environment variable: path of another file of defaults
_JOBS = re.compile(r"([0-9]+)(?::([0-9]+))?\Z")
_MEMORY = re.compile(r"[0-9]+(?:\.[0-9]+)?\s*[KMGT]i?B\Z")
_WALLTIME = re.compile(r"(?:(?P<days>[0-9]+)-)?(?P<hours>[0-9]+):(?P<minutes>[0-5]?[0-9]):(?P<seconds>[0-5]?[0-9])\Z")
PLAIN_PATH = re.compile(r"[\w./~+@:=,-]+\Z")
SHORTEST_WALLTIME_S = 60.0

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Device = Literal["cuda"]  # where the numbers come from, if not from CPUs
Line = Annotated[str, Field(min_length=1, pattern=r"^[^\n\r\x00]*$")]  # a line of a batch script


def none_as_empty(value: Any) -> Any:
    """Return an empty section for None, which YAML gives for a section whose keys are all commented out."""
    return {} if value is None else value


def _jobs(value: Any) -> Any:
    found = _JOBS.match(str(value)) if not isinstance(value, bool) else None
    if found is None:
        raise ValueError(f"is {value!r:.60}; expected a number of jobs, or a range such as 2:20")
    least, most = int(found[1]), int(found[2] or found[1])
    if not (most >= 1 and least <= most):
        raise ValueError(f"is {value!r:.60}; expected 1 or more, and the smaller number first, such as 2:20")
    return str(value)


def seconds_of(walltime: str) -> float:
    """Return the seconds of a walltime, [days-]hours:minutes:seconds."""
    found = _WALLTIME.match(walltime)
    parts = {} if found is None else found.groupdict(default="0")
    units = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
    return float(sum(int(parts.get(name, 0)) * unit for name, unit in units.items()))


class DaskSpec(Strict):
    """A running Dask cluster."""

    scheduler: Name | None = None
    tls_ca: Name | None = None
    tls_cert: Name | None = None
    tls_key: Name | None = None

    @field_validator("scheduler")
    @classmethod
    def _is_address(cls, address: str | None) -> str | None:
        if address is not None and not re.match(r"(tcp|tls)://[^\s/]+:[0-9]+\Z", address):
            raise ValueError(f"is {address!r}; expected an address such as tls://host:8786 or tcp://127.0.0.1:8786")
        return address

    @property
    def is_encrypted(self) -> bool:
        return self.scheduler is not None and self.scheduler.startswith("tls://")


class SlurmSpec(Strict):
    """SLURM jobs: their number, and the resources of each.

    partition, account: as for sbatch. options: further options of sbatch. prologue: shell lines before the worker
    starts. interface: the network between nodes, such as ib0. python: its path on the nodes, if it differs. scratch: a
    folder on the nodes. credentials: a folder that the nodes can read and other users cannot. tls: turn it off only
    for debugging. dashboard: the address of Dask's dashboard.
    """

    jobs: Annotated[str, BeforeValidator(_jobs)] = "1"
    cores: Count = 1
    memory: Name = "4GB"
    walltime: Name = "1:00:00"
    partition: Line | None = None
    account: Line | None = None
    options: list[Line] = Field(default_factory=list)
    prologue: list[Line] = Field(default_factory=list)
    interface: Name | None = None
    python: Name | None = None
    scratch: Name | None = None
    credentials: Name | None = None
    tls: bool = True
    dashboard: Name | None = None

    @field_validator("memory")
    @classmethod
    def _is_memory(cls, memory: str) -> str:
        if not _MEMORY.match(memory):
            raise ValueError(f"is {memory!r}; expected an amount such as 64GB or 500MB")
        if "K" in memory or float(memory.rstrip("MGTiB ")) == 0.0:
            raise ValueError(f"is {memory!r}; expected at least some megabytes, such as 500MB")
        return memory

    @field_validator("walltime")
    @classmethod
    def _is_walltime(cls, walltime: str) -> str:
        if not _WALLTIME.match(walltime):
            raise ValueError(f"is {walltime!r}; expected hours:minutes:seconds such as 2:00:00, or 1-12:00:00")
        if seconds_of(walltime) < SHORTEST_WALLTIME_S:
            raise ValueError(f"is {walltime!r}; expected at least one minute, because SLURM counts in minutes")
        return walltime

    @field_validator("options")
    @classmethod
    def _keeps_jobs_visible(cls, options: list[str]) -> list[str]:
        for option in options:
            if re.match(r"-[JaM]|--(job-name|array|clusters?)\b", option):
                raise ValueError(f"has {option!r}, which prevents leeward from tracking its jobs; remove it")
            if re.match(r"-W|--wait\b(?!-)", option):
                raise ValueError(f"has {option!r}, which makes sbatch wait until the job ends; remove it")
        return options

    @field_validator("python", "scratch", "credentials")
    @classmethod
    def _is_plain_path(cls, path: str | None) -> str | None:
        if path is not None and not PLAIN_PATH.match(path):
            raise ValueError(
                f"is {path!r}; expected a path without spaces or quotes, because it goes into a batch script"
            )
        return path

    @property
    def least_jobs(self) -> int:
        return int(self.jobs.partition(":")[0])

    @property
    def most_jobs(self) -> int:
        return int(self.jobs.rpartition(":")[2])

    @property
    def walltime_s(self) -> float:
        return seconds_of(self.walltime)


class Execution(Strict):
    """The engine and its settings. import_folders: searched first for the modules of custom code."""

    engine: Literal["inline", "local", "gpu", "dask", "slurm"] = "local"
    workers: Count | None = None
    timeout_s: Positive = 3600.0
    retries: Annotated[int, Field(ge=0)] = 2
    loose_results: Count = 20_000
    dask: Annotated[DaskSpec, BeforeValidator(none_as_empty)] = DaskSpec()
    slurm: Annotated[SlurmSpec, BeforeValidator(none_as_empty)] = SlurmSpec()
    import_folders: list[str] = Field(default_factory=list)


class Defaults(Strict):
    """The file of the user's defaults."""

    execution: Annotated[Execution, BeforeValidator(none_as_empty)] = Execution()


def check_device(execution: Execution, device: Device | None) -> None:
    """Raise ValueError if a device is given together with an engine that does not use it."""
    if device is not None and "engine" in execution.model_fields_set and execution.engine != "gpu":
        raise ValueError(
            f"has the device {device} and the engine {execution.engine}, which does not use it; remove one of them, or "
            "set the engine to gpu"
        )


def matched(execution: Execution, device: Device | None) -> tuple[Execution, Device | None]:
    """Return engine and device that fit each other: the engine gpu uses the device cuda, all others use none.

    A device without an engine stands for the engine gpu: the text in a file of results has no section `execution`.
    """
    if device is not None and "engine" not in execution.model_fields_set:
        execution = execution.model_copy(update={"engine": "gpu"})
    return execution, "cuda" if execution.engine == "gpu" else None


def with_user_defaults(given: Execution) -> Execution:
    """Return the given settings, with the user's defaults for all others."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    path = Path(os.environ.get(VARIABLE) or Path(home).expanduser() / "leeward" / "defaults.yaml")
    if not (path.exists() or os.environ.get(VARIABLE)):
        return given
    document = Document.from_file(path, "the user's defaults")
    if document.data is None:  # all keys are commented out
        return given
    defaults = validated(Defaults, document).execution
    if defaults.engine == "gpu":
        raise document.error(
            ("execution", "engine"),
            "is 'gpu', but defaults must not change numbers, and a GPU computes other numbers than a CPU; use --engine "
            "gpu, or write it into the campaign or study file",
        )
    settings = _filled_up(given.model_dump(exclude_unset=True), defaults.model_dump(exclude_unset=True))
    return Execution.model_validate(settings)


def _filled_up(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given settings with defaults filled in, also within sections."""
    merged = {**defaults, **given}
    for name, value in defaults.items():
        if isinstance(value, Mapping) and isinstance(given.get(name), Mapping):
            merged[name] = _filled_up(given[name], value)
    return merged
