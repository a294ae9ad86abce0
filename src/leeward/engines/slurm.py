"""The engine slurm: SLURM jobs as the workers of a Dask cluster that this run starts."""

import shutil
import sys
import threading
from pathlib import Path

from leeward.campaign.execution import PLAIN_PATH, Execution
from leeward.engines.dask import demand_installed
from leeward.engines.engine import Assignment, Engine, EngineKind
from leeward.errors import InputError, LeewardError


class SlurmEngine(EngineKind):
    """Opens a ClusterEngine that starts and ends jobs."""

    @classmethod
    def demand(cls, execution: Execution, output: Path) -> None:
        demand_installed(execution.engine)
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
            raise LeewardError("the engine slurm works only in the main thread, because of dask-jobqueue")
        from leeward.engines.cluster.engine import ClusterEngine
        from leeward.engines.cluster.slurm import SlurmLink

        link = SlurmLink(assignment.work.execution.slurm, assignment.paths, assignment.emit)
        return ClusterEngine.on(link, assignment)
