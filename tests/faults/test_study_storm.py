"""A study under random kills: no result is lost, none is computed twice, and all are what they would have been.

A short storm is in `make test-all`. LEEWARD_FAULTS=long asks for the long one.
"""

import os
import random
import sys

import pytest
from steps import quick_folder
from study_storm import StudyStorm

IS_LONG = os.environ.get("LEEWARD_FAULTS") == "long"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: looks into /proc")
def test_a_storm_of_kills_over_a_study():
    plan = (300, 200, 40) if IS_LONG else (24, 4, 2)
    seed = int(os.environ.get("LEEWARD_FAULTS_SEED") or random.SystemRandom().randrange(10**6))
    print(f"\nseed {seed}")
    with quick_folder() as folder:
        storm = StudyStorm(folder, *plan, seed)
        storm.rage()
    print(storm)
    assert not storm.problems
    assert (storm.kills["worker"] >= plan[1], storm.kills["coordinator"] >= plan[2]) == (True, True)
