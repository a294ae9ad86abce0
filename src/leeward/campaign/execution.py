"""How the tasks of a campaign are run: the section `execution`. None of it changes a number."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from leeward.campaign.validation import Strict

_JOBS = re.compile(r"([0-9]+)(?::([0-9]+))?\Z")
_MEMORY = re.compile(r"[0-9]+(?:\.[0-9]+)?\s*[KMGT]i?B\Z")
_WALLTIME = re.compile(r"(?:(?P<days>[0-9]+)-)?(?P<hours>[0-9]+):(?P<minutes>[0-5]?[0-9]):(?P<seconds>[0-5]?[0-9])\Z")
PLAIN_PATH = re.compile(r"[\w./~+@:=,-]+\Z")
SHORTEST_WALLTIME_S = 60.0

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Line = Annotated[str, Field(min_length=1, pattern=r"^[^\n\r\x00]*$")]  # of a batch script


def nothing_as_keys(value: Any) -> Any:
    """A section of which all keys are commented out."""
    return {} if value is None else value


def _jobs(value: Any) -> Any:
    found = _JOBS.match(str(value)) if not isinstance(value, bool) else None
    if found is None:
        raise ValueError(f"is {value!r:.60}; expected a number of jobs, or a range of it such as 2:20")
    least, most = int(found[1]), int(found[2] or found[1])
    if not (most >= 1 and least <= most):
        raise ValueError(f"is {value!r:.60}; expected 1 or more, and the smaller number first, such as 2:20")
    return str(value)


def seconds_of(walltime: str) -> float:
    """Of hours:minutes:seconds, with days in front or not."""
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
    """Jobs under SLURM: how many, and what each asks for.

    partition, account: as for sbatch. options: further ones of sbatch. prologue: shell lines before the worker starts.
    interface: the network between nodes, such as ib0. python: of the nodes, if not this one's path. scratch: a folder
    of the nodes. credentials: a folder that the nodes see and others may not read. tls: never off but for debugging.
    dashboard: where Dask's own page is to listen.
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
            raise ValueError(f"is {memory!r}; expected some megabytes or more, such as 500MB")
        return memory

    @field_validator("walltime")
    @classmethod
    def _is_walltime(cls, walltime: str) -> str:
        if not _WALLTIME.match(walltime):
            raise ValueError(f"is {walltime!r}; expected hours:minutes:seconds such as 2:00:00, or 1-12:00:00")
        if seconds_of(walltime) < SHORTEST_WALLTIME_S:
            raise ValueError(f"is {walltime!r}; expected a minute or more: SLURM counts in minutes")
        return walltime

    @field_validator("options")
    @classmethod
    def _leave_jobs_to_us(cls, options: list[str]) -> list[str]:
        for option in options:
            if re.match(r"-[JaM]|--(job-name|array|clusters?)\b", option):
                raise ValueError(f"has {option!r}, by which leeward would lose sight of its jobs")
            if re.match(r"-W|--wait\b(?!-)", option):
                raise ValueError(f"has {option!r}, by which sbatch would not end before its job does")
        return options

    @field_validator("python", "scratch", "credentials")
    @classmethod
    def _is_plain_path(cls, path: str | None) -> str | None:
        if path is not None and not PLAIN_PATH.match(path):
            raise ValueError(f"is {path!r}; expected a path without spaces and quotes: it goes into a batch script")
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
    """Which engine, and its settings. import_folders: where the module of a recipe of one's own is looked for first."""

    engine: Literal["inline", "local", "dask", "slurm"] = "local"
    workers: Count | None = None
    timeout_s: Positive = 3600.0
    retries: Annotated[int, Field(ge=0)] = 2
    loose_results: Count = 20_000
    dask: Annotated[DaskSpec, BeforeValidator(nothing_as_keys)] = DaskSpec()
    slurm: Annotated[SlurmSpec, BeforeValidator(nothing_as_keys)] = SlurmSpec()
    import_folders: list[str] = Field(default_factory=list)
