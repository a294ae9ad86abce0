"""Child processes that never outlive their parent."""

import ctypes
import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1  # of prctl


def end_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that ends and whatever this one is doing.

    parent: its process id, as it gave it. Elsewhere than on Linux a child sees the end of its input instead.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it was gone before the signal was asked for
            os._exit(1)
