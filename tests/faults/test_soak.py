"""A run of many tiny tasks takes no more memory, and has no more files open, than it did at first.

It is in `make test-all`. LEEWARD_FAULTS=long asks for the long version, an hour; `soak.py` prints more.
"""

import os
import sys

import pytest
from soak import Soak

IS_LONG = os.environ.get("LEEWARD_FAULTS") == "long"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: looks into /proc")
def test_a_soak(tmp_path):
    """The short one has no pauses: as many tasks as go into ten seconds."""
    soak = Soak(tmp_path, 3600.0, 500_000, pause_s=0.05) if IS_LONG else Soak(tmp_path, 10.0, 20_000, every_s=0.2)
    soak.soak()
    print(f"\n{soak.table()}")
    assert not soak.problems, soak.table()
