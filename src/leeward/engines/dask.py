"""The engine dask: the workers of a running Dask cluster."""

import importlib.util
from pathlib import Path

from leeward.campaign.execution import Execution
from leeward.engines.engine import Assignment, Engine, EngineKind
from leeward.errors import InputError, LeewardError


class DaskEngine(EngineKind):
    """Opens a ClusterEngine, and imports Dask only then: it may not be installed."""

    @classmethod
    def demand(cls, execution: Execution, output: Path) -> None:
        demand_installed(execution.engine)
        if execution.dask.scheduler is None:
            raise InputError(
                "the engine is dask, but no scheduler is given; give the address of a running one, for example "
                "--scheduler tls://host:8786"
            )

    @classmethod
    def open(cls, assignment: Assignment) -> Engine:
        from leeward.engines.cluster.engine import ClusterEngine
        from leeward.engines.cluster.links import connect

        return ClusterEngine.on(connect(assignment.work.execution.dask, assignment.emit), assignment)


def demand_installed(engine: str) -> None:
    """Raise LeewardError if a package that the engines dask and slurm need is not installed."""
    for name in ("distributed", "dask_jobqueue", "cryptography"):
        if importlib.util.find_spec(name) is None:
            raise LeewardError(f"{name} is not installed; the engine {engine} needs: pip install 'leeward[cluster]'")
