"""A campaign under random kills: no result is lost, none is computed again, and all are what they would have been.

A short storm is in `make test-all`. LEEWARD_FAULTS=long asks for the long one. LEEWARD_FAULTS_SEED, as a storm prints
it, gives the same choices once more; when exactly they take effect is up to the machine. tests/test_run.py has single
kills for `make test`.
"""

import os
import random
import sys

import pytest
from steps import quick_folder
from storm import rage

IS_LONG = os.environ.get("LEEWARD_FAULTS") == "long"
LIMIT_S = 6 * 3600.0 if IS_LONG else 3600.0  # without any progress


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: looks into /proc")
def test_a_storm_of_kills():
    tasks, workers, coordinators = (900, 1000, 200) if IS_LONG else (16, 8, 3)
    seed = int(os.environ.get("LEEWARD_FAULTS_SEED") or random.SystemRandom().randrange(10**6))
    print(f"\nseed {seed}")
    with quick_folder() as folder:
        storm = rage(folder, tasks, workers, coordinators, seed, LIMIT_S, is_told=IS_LONG)
        print(storm)
    assert not storm.problems, "\n".join([f"seed {seed}:", *storm.problems])
    assert storm.worker_kills >= workers
    assert storm.coordinator_kills >= coordinators
