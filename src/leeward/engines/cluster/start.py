"""From the settings of a campaign to an engine on a cluster."""

import threading
from collections.abc import Callable

from leeward.campaign import Campaign, Execution
from leeward.engines.cluster.engine import ClusterEngine
from leeward.engines.cluster.links import Link, connect
from leeward.errors import LeewardError
from leeward.events import Emit
from leeward.store import RunPaths


def cluster_engine(
    campaign: Campaign, execution: Execution, paths: RunPaths, tell: Emit, left: Callable[[], int]
) -> ClusterEngine:
    """On a running Dask cluster, or on one that is started for it."""
    link = _link(execution, paths, tell)
    try:
        return ClusterEngine(campaign, execution, paths, link, tell, left)
    except BaseException:
        link.close()
        raise


def _link(execution: Execution, paths: RunPaths, tell: Emit) -> Link:
    if execution.engine == "dask":
        return connect(execution.dask, tell)
    if threading.current_thread() is not threading.main_thread():
        raise LeewardError("the engine slurm can be started in the main thread only, as dask-jobqueue can")
    from leeward.engines.cluster.slurm import SlurmLink

    return SlurmLink(execution.slurm, paths, tell)
