"""A run of many tiny tasks takes no more memory, and has no more files open, than it did at first.

It is in `make test-all`. LEEWARD_FAULTS=long asks for the long version, an hour; `soak.py` prints more.
"""

import os
import sys

import pytest
from parts import PARTS
from soak import Soak

IS_LONG = os.environ.get("LEEWARD_FAULTS") == "long"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: looks into /proc")
def test_a_soak(tmp_path, record_property):
    """The short one has no pauses: as many tasks as go into ten seconds. The parts of the long one are one hour."""
    if IS_LONG:
        soak = Soak(tmp_path, 3600.0 / PARTS, 500_000, pause_s=0.05)
    else:
        soak = Soak(tmp_path, 10.0, 20_000, every_s=0.2)
    soak.soak()
    print(f"\n{soak.table()}")
    for name, count in soak.counts().items():
        record_property(name, count)
    assert not soak.problems, soak.table()
