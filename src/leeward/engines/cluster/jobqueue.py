"""dask-jobqueue, whose import takes Ctrl-C for itself, as if it were a program of its own: here it is given back."""

import signal

_before = signal.getsignal(signal.SIGINT)
from dask_jobqueue.slurm import SLURMCluster, SLURMJob  # noqa: E402

signal.signal(signal.SIGINT, _before)

__all__ = ["SLURMCluster", "SLURMJob"]
