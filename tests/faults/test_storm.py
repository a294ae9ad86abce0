"""A campaign under random kills: no result is lost, none is computed again, and all are what they would have been.

The long version is asked for with LEEWARD_FAULTS=long. LEEWARD_FAULTS_SEED, as a storm prints it, gives the same
choices once more; when exactly they take effect is up to the machine.
"""

import os
import random
import sys

import pytest
from steps import quick_folder
from storm import rage

IS_LONG = os.environ.get("LEEWARD_FAULTS") == "long"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_storm_of_kills():
    seed = int(os.environ.get("LEEWARD_FAULTS_SEED") or random.SystemRandom().randrange(10**6))
    tasks, workers, coordinators, limit_s = (900, 1000, 200, 6 * 3600.0) if IS_LONG else (16, 8, 3, 500.0)
    print(f"\nseed {seed}")
    with quick_folder() as folder:
        storm = rage(folder, tasks, workers, coordinators, seed, limit_s, is_told=IS_LONG)
        print(storm)
    assert not storm.problems, "\n".join([f"seed {seed}:", *storm.problems])
    assert storm.worker_kills >= workers
    assert storm.coordinator_kills >= coordinators
