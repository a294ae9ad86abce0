"""What an engine beyond one machine needs, found out before anything is done."""

import importlib.util
import shutil
import sys
from pathlib import Path

from leeward.campaign.execution import PLAIN_PATH, Execution
from leeward.errors import InputError, LeewardError


def demand_cluster(execution: Execution, output: Path) -> None:
    """Of the engines dask and slurm; output: where the results are to lie."""
    for name in ("distributed", "dask_jobqueue", "cryptography"):
        if importlib.util.find_spec(name) is None:
            raise LeewardError(
                f"{name} is not installed; the engine {execution.engine} needs: pip install 'leeward[cluster]'"
            )
    if execution.engine == "dask" and execution.dask.scheduler is None:
        raise InputError(
            "the engine is dask, and no scheduler is named; expected the address of a running one, for example "
            "--scheduler tls://host:8786"
        )
    if execution.engine == "slurm" and not (PLAIN_PATH.match(str(output)) and PLAIN_PATH.match(sys.executable)):
        raise InputError(
            f"the output is {output}, and Python {sys.executable}; expected no spaces and quotes in them: under SLURM "
            "they go into batch scripts"
        )
    if execution.engine == "slurm" and shutil.which("sbatch") is None:
        raise InputError(
            "sbatch is not here; the engine slurm is for a machine of a SLURM cluster, such as a login node"
        )
