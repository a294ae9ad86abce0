"""The interface between a kind of work and the runs, engines and workers that compute it."""

from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from leeward.campaign.execution import Execution
from leeward.store import Brief, FoundResult, IndexLines, Key, Result, Value

WORKS = {"layouts": "leeward.campaign.work:LayoutWork"}  # class of each kind, imported when used


class Adoption(Protocol):
    """Adopted results by key, and their lines for the index."""

    results: dict[Key, Brief]
    lines: IndexLines

    def facts(self) -> dict[str, Any]:
        """Return the facts for the event and the audit log."""


class Adopter(Protocol):
    """Adopts results from elsewhere into a run directory."""

    def adopt(
        self, sources: Iterable[Path], done: Container[Key], store: Callable[[Result], None], notice: Callable[[], None]
    ) -> Adoption:
        """Store the valid results of the sources. notice: called now and then."""

    def refusal(self, found: FoundResult) -> str | None:
        """Return why a result from elsewhere cannot be adopted; None if it can."""


class Work(Protocol):
    """A set of tasks with keys, and the way to compute each.

    kind: its name in WORKS. source: the campaign or study. name: of the source. execution: how to run it, with the
    user's defaults. method_version: of this leeward. blank_progress: progress in a heartbeat before the first step.
    """

    kind: str
    source: Any
    name: str
    n_tasks: int
    method_version: int
    blank_progress: ClassVar[Mapping[str, Any]]

    @property
    def execution(self) -> Execution: ...

    @classmethod
    def from_text(cls, text: str, where: str) -> Self:
        """Load what `frozen_text` returned. where: its name in errors."""

    def frozen_text(self) -> str:
        """Return the work as text that refers to no file."""

    def study_text(self) -> str:
        """Return `frozen_text` without the settings of the execution."""

    @staticmethod
    def parse_key(text: str) -> Key:
        """Return the key that a text names, or raise InputError."""

    def __contains__(self, key: object) -> bool: ...

    def select(self, only: str | Collection[Key] | None) -> Iterable[Key]:
        """Return the tasks to run, in order. only: a text or keys that select some; None for all."""

    def group(self, key: Key) -> Hashable:
        """Return the group of a task. Tasks of one group are best computed by one worker."""

    def check(self) -> Iterable[str]:
        """Raise InputError if a task cannot be computed, else return notes for the user. Called before a run."""

    def warm_up(self) -> None:
        """Compile or load the kernels."""

    def compute(self, key: Key, show_progress: Callable[..., None]) -> Result:
        """Return the result of a task. show_progress: takes the names of `blank_progress`; called after each step."""

    def fingerprint(self, key: Key) -> str:
        """Return the digest of all settings that affect the numbers of a task."""

    def version_of(self, key: Key, fingerprint: str | None, stated: int | None) -> int | None:
        """Return the method version that made a result; None if it was made with other settings.

        stated: the version that the result states, if any. fingerprint: None for an adopted result.
        """

    def differences(self, before: Self, keys: Iterable[Key]) -> list[str]:
        """Return one line for each setting that differs from an older work and affects these keys."""

    def attributes(self) -> dict[str, Value]:
        """Return the root attributes of the merged file."""

    def result_bytes(self, keys: Iterable[Key] | None) -> int:
        """Return the size of the largest result of these tasks, or of all, to check the disk space."""

    def adopter(self, keep_infeasible: bool) -> Adopter:
        """Return an adopter. keep_infeasible: it also adopts results that break constraints."""


class FrozenWork(NamedTuple):
    """A work as text, to send to another process."""

    kind: str
    text: str

    @classmethod
    def of(cls, work: Work) -> "FrozenWork":
        return cls(work.kind, work.frozen_text())

    def load(self) -> Work:
        work: Work = work_class(self.kind).from_text(self.text, "the frozen work")
        return work

    def parse_key(self, text: str) -> Key:
        return work_class(self.kind).parse_key(text)


def work_class(kind: str) -> type[Work]:
    """Import the class of a kind of work."""
    found: type[Work] = resolve_name(WORKS[kind])
    return found
