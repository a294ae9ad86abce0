"""What a run was asked to do, and what it came to."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leeward.engines.work import Adoption, Work
from leeward.store import Brief, Key, Record, RunMerge, RunPaths


@dataclass(frozen=True)
class Options:
    """How a run is to go about it; see `leeward.run`."""

    only: str | Collection[Key] | None = None
    retry_failed: bool = False
    adopt: tuple[Path, ...] = ()
    keep_infeasible: bool = False
    new: bool = False
    take_over: bool = False
    grace_s: float = 60.0
    storage_wait_s: float = 1800.0


@dataclass
class RunReport:
    """How a run ended.

    wanted: the tasks that were asked for; done, failed and missing are about these. results: a brief of every result
    in the run directory, by key; is_counted: whether the run got as far as looking there. failures: records of failed
    tasks. signal: of a request to stop, if any. engine_lost: why there was nobody left to compute, if so.
    """

    paths: RunPaths
    work: Work
    wanted: list[Key]
    results: dict[Key, Brief] = field(default_factory=dict)
    failures: dict[Key, Record] = field(default_factory=dict)
    computed: int = 0
    is_counted: bool = False
    adoption: Adoption | None = None
    merged: RunMerge | None = None
    quarantined: int = 0
    signal: int | None = None
    engine_lost: str = ""
    seconds: float = 0.0

    @property
    def campaign(self) -> Any:
        """The campaign that was run."""
        return self.work.source

    @property
    def done(self) -> int:
        return sum(key in self.results for key in self.wanted)

    @property
    def failed(self) -> list[Key]:
        return [key for key in self.wanted if key in self.failures and key not in self.results]

    @property
    def missing(self) -> list[Key]:
        return [key for key in self.wanted if key not in self.results]

    @property
    def is_complete(self) -> bool:
        """Whether every task that was asked for has a verified result in the merged file."""
        return self.merged is not None and all(key in self.merged.keys for key in self.wanted)

    @property
    def exit_code(self) -> int:
        """0 complete; 3 with results missing or failed; 130 or 143 interrupted before all was done."""
        if self.is_complete:
            return 0
        return 3 if self.signal is None else 128 + self.signal
