"""Damaged files: every one gets an answer in time, nothing damaged is called valid, and merging takes what is intact.

The short version tries 300, some of each kind, others with another LEEWARD_FAULTS_SEED; with LEEWARD_FAULTS=long they
are 20 000, of more sound files.
`python -m pytest -s` shows the tables. They are tried in a process of their own, whose memory is measured.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

IS_LONG = os.environ.get("LEEWARD_FAULTS") == "long"
SEED = os.environ.get("LEEWARD_FAULTS_SEED") or "1"
DAMAGE = Path(__file__).with_name("damage.py")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured as Linux allows it")
def test_damaged_files():
    variants, limit_s = (20_000, 6 * 3600) if IS_LONG else (300, 3600)
    command = [
        sys.executable,
        str(DAMAGE),
        "--seed",
        SEED,
        "--variants",
        str(variants),
        *([] if IS_LONG else ["--few"]),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    print(f"\n{ended.stdout}")
    problems = [line for line in ended.stdout.splitlines() if line.startswith("PROBLEM")]
    assert not problems, "\n".join(problems[:30])
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert f"{variants} damaged files" in ended.stdout
