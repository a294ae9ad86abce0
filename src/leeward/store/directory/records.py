"""The record of a task: a small file with its attempts and failures, until its result is stored."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from leeward.errors import LeewardError, StorageError
from leeward.files import NotAFileError, read_regular, replace_file, storage_errors
from leeward.store.directory.audit import utc_now
from leeward.store.format.keys import Key
from leeward.store.paths import RunPaths
from leeward.wording import json_text

LONGEST_TRACEBACK = 20_000  # characters
LONGEST_RECORD = 1 << 24  # bytes


@dataclass(frozen=True)
class Failure:
    """The last failure of a task.

    kind: "exception" (in the task), "died" (its worker), "timed-out", or "cut-off" (its job reached the time limit).
    message: one line. final: the task is not retried unless the user asks for it.
    """

    kind: str
    message: str
    traceback: str
    attempt: int
    worker: str
    host: str
    seconds: float
    time: str
    final: bool


@dataclass(frozen=True)
class Record:
    """The history of a task without a result.

    fingerprint: of its settings. attempts: worker, host and time of each start. deaths: number of attempts whose worker
    died. Other attempts without a failure were interrupted together with their coordinator.
    """

    key: str
    fingerprint: str = ""
    attempts: list[dict[str, Any]] = field(default_factory=list)
    deaths: int = 0
    failure: Failure | None = None

    @property
    def last_attempt_failed(self) -> bool:
        """True if the last attempt failed."""
        return self.failure is not None and self.failure.attempt == len(self.attempts)

    @property
    def unfinished(self) -> str | None:
        """The worker of the last attempt, if the outcome is unknown, else None."""
        return str(self.attempts[-1]["worker"]) if self.attempts and not self.last_attempt_failed else None

    def has_failed(self, retries: int) -> bool:
        """Return whether no retry is left. More interruptions than deaths are allowed: a task rarely causes one."""
        if self.failure is not None and self.failure.final:
            return True
        return self.is_out_of_retries(retries, self.deaths)

    def is_out_of_retries(self, retries: int, deaths: int) -> bool:
        """Return whether the attempts leave no retry. deaths: number of attempts whose worker died."""
        return deaths > retries or len(self.attempts) - deaths > max(10, 5 * retries)


class BadRecordError(LeewardError):
    """A record that cannot be read."""


def read_record(path: Path) -> Record | None:
    """Return the record in a file; None if there is no file. Raise BadRecordError if it cannot be read."""
    try:
        content = json.loads(read_regular(path, LONGEST_RECORD))
        failure = content.pop("failure")
        record = Record(failure=None if failure is None else Failure(**failure), **content)
        if not (isinstance(record.attempts, list) and isinstance(record.deaths, int)):
            raise TypeError("attempts is not a list, or deaths is not a number")
        return record
    except FileNotFoundError:
        return None
    except NotAFileError as error:
        raise BadRecordError(f"{path}: {error.strerror}") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error})") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadRecordError(f"{path}: cannot be read as a record of attempts ({error})") from error


def begin_attempt(paths: RunPaths, key: Key, fingerprint: str, worker: str, host: str) -> Record:
    """Record durably that a task is about to start."""
    old = read_record(paths.failure(key))
    if old is None or old.fingerprint != fingerprint:  # attempts with other settings do not count
        old = Record(str(key), fingerprint)
    if old.unfinished == worker:
        attempts = old.attempts  # a repeated call, because the first one could not sync
    else:
        attempts = [*old.attempts, {"worker": worker, "host": host, "began": utc_now()}]
    return _write(paths, key, replace(old, attempts=attempts))


def record_failure(paths: RunPaths, key: Key, *, final: bool, died: bool, **facts: Any) -> Record:
    """Record how an attempt failed. facts: the other fields of `Failure`."""
    old = read_record(paths.failure(key)) or Record(str(key))
    attempts = old.attempts or [{"worker": facts["worker"], "host": facts["host"], "began": ""}]
    facts["traceback"] = facts["traceback"][-LONGEST_TRACEBACK:]
    if old.failure is not None and old.last_attempt_failed and old.failure.worker == facts["worker"]:
        died = False  # a repeated call, because the first one could not sync: the death is already counted
    failure = Failure(**facts, attempt=len(attempts), time=utc_now(), final=final)
    return _write(paths, key, replace(old, attempts=attempts, deaths=old.deaths + died, failure=failure))


def withdraw_attempt(paths: RunPaths, key: Key, worker: str | None = None, mark: str = "") -> None:
    """Remove the last attempt, which ended on request or because of a disk error. Keep it if it failed.

    worker: remove only an attempt of this worker. mark: remove it only if the name of its worker contains this text.
    """
    old = read_record(paths.failure(key))
    if old is None or old.unfinished is None:
        return
    if (worker is None or old.unfinished == worker) and mark in old.unfinished:
        if len(old.attempts) <= 1 and old.failure is None:
            remove_record(paths, key)
        else:
            _write(paths, key, replace(old, attempts=old.attempts[:-1]))


def remove_record(paths: RunPaths, key: Key) -> None:
    """Remove the record of a task that has a result or starts over."""
    with storage_errors(paths.failure(key), "cannot be removed"):
        paths.failure(key).unlink(missing_ok=True)


def _write(paths: RunPaths, key: Key, record: Record) -> Record:
    with storage_errors(paths.failure(key), "cannot be written"):
        replace_file(paths.failure(key), json_text(asdict(record)).encode())
    return record
