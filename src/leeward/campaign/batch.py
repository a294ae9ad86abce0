"""The outcome of a task that failed within a batch, while the other tasks go on."""

from typing import NamedTuple

from leeward.store import Key


class TaskFailure(NamedTuple):
    """A task of a batch that raised an error. The other tasks of the batch are not affected."""

    key: Key
    exception: Exception
