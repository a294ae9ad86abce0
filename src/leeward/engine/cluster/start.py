"""From the settings of a campaign to an engine on a cluster."""

from collections.abc import Callable

from leeward.campaign import Campaign
from leeward.engine.cluster.engine import ClusterEngine
from leeward.engine.cluster.links import Link, connect
from leeward.engine.cluster.slurm import SlurmLink
from leeward.store.paths import RunPaths


def cluster_engine(
    campaign: Campaign, paths: RunPaths, tell: Callable[..., None], left: Callable[[], int]
) -> ClusterEngine:
    """On a running Dask cluster, or on one that is started for it."""
    execution = campaign.execution
    link: Link = (
        connect(execution.dask, tell) if execution.engine == "dask" else SlurmLink(execution.slurm, paths, tell)
    )
    try:
        return ClusterEngine(campaign, paths, link, tell, left)
    except BaseException:
        link.close()
        raise
