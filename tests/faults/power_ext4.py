"""A real file system instead of a model: its disk, an image, is copied after every call of the store, as it is then.

`python power_ext4.py FOLDER IMAGE COPIES [--no-sync]`: FOLDER is on the file system that is in IMAGE. What the system
has not written yet is not in a copy, as if the power had been cut. Prints a line of JSON per copy: what had been told
as done by then.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from interception import Calls
from operations import ATTRIBUTES, run_paths

from foreign_files import own_result
from leeward.store.directory.audit import Audit
from leeward.store.directory.shards import store_result
from leeward.store.merging.merge import merge_run

SEEDS = (1, 2, 3)


class _Copies(Calls):
    """Instead of a fault there is a copy after each call."""

    def keep(self, image: Path, copies: Path) -> None:
        self.image, self.copies = image, copies
        self.done: list[str] = []

    def _meet(self, name, place, real, half=None):
        answer = real()
        self.made.append((name, place))
        self.take()
        return answer

    def take(self) -> None:
        name = f"{len(self.made):03}"
        subprocess.run(["cp", "--sparse=always", self.image, self.copies / name], check=True)
        last = " ".join(self.made[-1]) if self.made else "nothing"
        print(json.dumps({"copy": name, "after": last, "done": self.done}), flush=True)


def main() -> None:
    folder, image, copies = map(Path, sys.argv[1:4])
    if "--no-sync" in sys.argv:
        os.fsync = lambda handle: None
    calls = _Copies(folder)
    calls.keep(image, copies)
    calls.install()
    paths = run_paths(folder)
    for seed in SEEDS:
        store_result(paths, own_result(seed=seed))
        calls.done.append(f"farm0_t0_s{seed}")
    if "--no-sync" not in sys.argv:  # a merge would sync all the same, in a child process
        merge_run(paths, ATTRIBUTES, emit=Audit(paths.audit).record)
        calls.done.append("layouts.h5")
    calls.made.append(("the", "end"))
    calls.take()


if __name__ == "__main__":
    main()
