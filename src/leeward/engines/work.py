"""The interface between a kind of work and the runs, engines and workers that compute it.

To add a kind, write a class with the methods of `Work` and enter it in WORKS.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, Protocol, Self

from leeward.campaign.batch import TaskFailure
from leeward.campaign.execution import Execution
from leeward.store import Brief, FoundResult, Key, Result, Value

WORKS = {  # class of each kind, imported when used
    "layouts": "leeward.campaign.work:LayoutWork",
    "evaluations": "leeward.study.work:StudyWork",
}


class Adoption(Protocol):
    """The outcome of an adoption. results: the adopted results, by key."""

    results: dict[Key, Brief]

    def facts(self) -> dict[str, Any]:
        """Return the facts for the event and the audit log."""


class Work(Protocol):
    """A set of tasks with keys, and the functions to compute them.

    kind: its name in WORKS, and the kind of its results. source: the campaign or study. name: of the source. execution:
    how to run it, with the user's defaults. method_version: of this leeward. can_adopt: whether results of another
    origin can become results.
    """

    kind: str
    can_adopt: bool
    source: Any
    name: str
    n_tasks: int
    method_version: int

    @property
    def execution(self) -> Execution: ...

    @classmethod
    def from_text(cls, text: str, where: str) -> Self:
        """Load what `frozen_text` returned. where: its name in errors."""

    def frozen_text(self) -> str:
        """Return the work as text that refers to no file."""

    def study_text(self) -> str:
        """Return `frozen_text` without the settings of the execution."""

    def __contains__(self, key: object) -> bool: ...

    def select(self, only: str | Collection[Key] | None) -> Iterable[Key]:
        """Return the tasks to run, in order. only: a text or keys that select some; None for all."""

    def group(self, key: Key) -> Hashable:
        """Return the group of a task. Tasks of one group are best computed by one worker."""

    def check(self) -> Iterable[str]:
        """Return notes for the user, or raise InputError if a task cannot be computed. Called before a run."""

    def warm_up(self) -> None:
        """Compile or load the kernels."""

    def compute(self, key: Key, show_progress: Callable[..., None]) -> Result:
        """Return the result of a task. show_progress: called with facts by name after each step."""

    def compute_many(self, keys: Sequence[Key], show_progress: Callable[..., None]) -> Iterator[Result | TaskFailure]:
        """Yield the outcome of each task on the GPU, in any order, as soon as it is known.

        show_progress: called with facts by name after each step, and at least once within the time limit. An exception
        ends the process; the tasks without an outcome are then retried.
        """

    def fingerprint(self, key: Key) -> str:
        """Return the digest of all settings that affect the numbers of a task."""

    def version_of(self, key: Key, fingerprint: str | None, stated: int | None) -> int | None:
        """Return the method version that made a result; None if it was made with other settings.

        stated: the version in the result, if any. fingerprint: None for an adopted result.
        """

    def differences(self, before: Self, keys: Iterable[Key]) -> list[str]:
        """Return one line for each setting that differs from an older work and affects these keys."""

    def attributes(self) -> dict[str, Value]:
        """Return the root attributes of the merged file."""

    def result_bytes(self, keys: Iterable[Key] | None) -> int:
        """Return the size of the largest result of these tasks, or of all, to check the disk space."""

    def adopt(
        self,
        sources: Iterable[Path],
        done: Collection[Key],
        keep_infeasible: bool,
        store: Callable[[Result], None],
        notice: Callable[[], None],
    ) -> Adoption:
        """Store valid results of the sources for tasks that are not done.

        keep_infeasible: also adopt results that break constraints. notice: called for each result that was read.
        """

    def refusal(self, found: FoundResult) -> str | None:
        """Return why a result cannot be adopted even with `keep_infeasible`; None if it can."""


class FrozenWork(NamedTuple):
    """A work as text, to send to another process."""

    kind: str
    text: str

    @classmethod
    def of(cls, work: Work) -> "FrozenWork":
        return cls(work.kind, work.frozen_text())

    def load(self) -> Work:
        work: Work = resolve_name(WORKS[self.kind]).from_text(self.text, "the frozen work")
        return work
