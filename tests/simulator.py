"""Run a program in numba-cuda's simulator of a GPU, which a process can only choose before it imports numba."""

import json
import os
import subprocess
import sys
from pathlib import Path


def simulated(program, *cases):
    """Return the results of cases by name, which a child process computes. program: a file beside this one."""
    command = [sys.executable, str(Path(__file__).with_name(program)), *cases]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
