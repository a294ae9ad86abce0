"""The engines dask and slurm. They import Dask only when they start, because it may not be installed."""

import importlib.util
import shutil
import sys
import threading
from pathlib import Path

from leeward.campaign.execution import PLAIN_PATH, Execution
from leeward.engines.engine import Assignment, Engine, EngineKind
from leeward.errors import InputError, LeewardError


class DaskEngine(EngineKind):
    """Uses the workers of a running Dask cluster."""

    @classmethod
    def demand(cls, execution: Execution, output: Path) -> None:
        _demand_installed(execution.engine)
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


class SlurmEngine(EngineKind):
    """Uses SLURM jobs as the workers of a Dask cluster that this run starts."""

    @classmethod
    def demand(cls, execution: Execution, output: Path) -> None:
        _demand_installed(execution.engine)
        if not (PLAIN_PATH.match(str(output)) and PLAIN_PATH.match(sys.executable)):
            raise InputError(
                f"the output is {output}, and Python is {sys.executable}; use paths without spaces and quotes, because "
                "they go into batch scripts of SLURM"
            )
        if shutil.which("sbatch") is None:
            raise InputError(
                "sbatch was not found; the engine slurm needs a machine of a SLURM cluster, such as a login node"
            )

    @classmethod
    def open(cls, assignment: Assignment) -> Engine:
        if threading.current_thread() is not threading.main_thread():
            raise LeewardError(
                "the engine slurm needs dask-jobqueue, which works only in the main thread; call `run` there"
            )
        from leeward.engines.cluster.engine import ClusterEngine
        from leeward.engines.cluster.slurm import SlurmLink

        link = SlurmLink(assignment.work.execution.slurm, assignment.paths, assignment.emit)
        return ClusterEngine.on(link, assignment)


def _demand_installed(engine: str) -> None:
    """Raise LeewardError if a package that the engines dask and slurm need is not installed."""
    for name in ("distributed", "dask_jobqueue", "cryptography"):
        if importlib.util.find_spec(name) is None:
            raise LeewardError(f"{name} is not installed; the engine {engine} needs: pip install 'leeward[cluster]'")
