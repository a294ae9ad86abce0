"""Damaged files: every one gets an answer in time, nothing damaged is called valid, and merging takes what is intact.

The short version is in `make test-all` and tries 300, some of each kind, others with another LEEWARD_FAULTS_SEED. With
LEEWARD_FAULTS=long there are 20 000, of more sound files. `python -m pytest -s` shows the tables. A process of its own
reads the files, and its memory is measured. tests/test_reader.py has a few damaged files for `make test`.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from parts import PARTS

IS_LONG = os.environ.get("LEEWARD_FAULTS") == "long"
SEED = os.environ.get("LEEWARD_FAULTS_SEED") or "1"
DAMAGE = Path(__file__).with_name("damage.py")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: limits and measures memory")
def test_damaged_files(tmp_path, record_property):
    variants, limit_s = (20_000, 6 * 3600) if IS_LONG else (300, 3600)
    command = [
        sys.executable,
        str(DAMAGE),
        "--seed",
        SEED,
        "--variants",
        str(variants),
        "--counts",
        str(tmp_path / "counts.json"),
        *([] if IS_LONG else ["--few"]),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    print(f"\n{ended.stdout}")
    assert (tmp_path / "counts.json").exists(), ended.stderr[-3000:]
    for name, count in json.loads((tmp_path / "counts.json").read_text()).items():
        record_property(name, count)
    problems = [line for line in ended.stdout.splitlines() if line.startswith("PROBLEM")]
    assert not problems, "\n".join(problems[:30])
    assert ended.returncode == 0, ended.stderr[-3000:]
    tried = int(re.search(r"^(\d+) damaged files", ended.stdout, re.MULTILINE)[1])
    assert tried == variants if PARTS == 1 else 0 < tried < variants
