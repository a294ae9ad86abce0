"""Numbers that are computed in batches, as on a GPU. Files in its folder say what a batch does: see `compute_many`."""

import json
import os
import signal
import time
from pathlib import Path

from leeward.campaign.batch import TaskFailure
from leeward.campaign.execution import Execution
from toy_work import NumberWork


class BatchWork(NumberWork):
    """settings: of the execution, such as retries."""

    def __init__(self, folder, count, factor=1.0, engine="gpu", **settings):
        super().__init__(folder, count, factor, "inline")
        self.source |= {"engine": engine, **settings}
        self.execution = Execution(**{"engine": engine, "workers": 1, "timeout_s": 600.0} | settings)

    def compute_many(self, keys, show_progress):
        """Notes the batch in batches.txt. Then, for each sample, the name of a file decides:

        fail-3 raises an error of sample 3; raise-3 one of the batch; kill-3 kills this process; hang-3 stops. The file
        is removed before, unless it says "always". steps-3 takes the seconds in it, with progress. Samples from the
        number in the file `hold` on wait while it exists.
        """
        folder = Path(self.source["folder"])
        records = len(list((folder / "roots.run" / "failures").glob("*.json")))
        samples = [key.sample for key in keys]
        facts = {"pid": os.getpid(), "gpu": os.environ["CUDA_VISIBLE_DEVICES"], "records": records, "samples": samples}
        with (folder / "batches.txt").open("a") as batches:
            batches.write(json.dumps(facts) + "\n")
        for key in keys:
            while (folder / "hold").exists() and key.sample >= int((folder / "hold").read_text()):
                time.sleep(0.02)
                show_progress(step=key.sample, phase="waiting")
            if self._is_ordered("kill", key):
                self._until_stored(folder, keys[: keys.index(key)])
                os.kill(os.getpid(), signal.SIGKILL)
            if self._is_ordered("raise", key):
                raise RuntimeError("CUDA_ERROR_OUT_OF_MEMORY")
            if self._is_ordered("hang", key):
                time.sleep(3600)
            if (folder / f"steps-{key.sample}").exists():
                end = time.monotonic() + float((folder / f"steps-{key.sample}").read_text())
                while time.monotonic() < end:
                    time.sleep(0.02)
                    show_progress(step=1)
            if self._is_ordered("fail", key):
                try:
                    raise ValueError(f"no root of {key.sample}")
                except ValueError as error:
                    yield TaskFailure(key, error)
            else:
                yield self.compute(key, show_progress)

    def _is_ordered(self, what, key):
        path = Path(self.source["folder"]) / f"{what}-{key.sample}"
        if not path.exists():
            return False
        if path.read_text() != "always":
            path.unlink()
        return True

    @staticmethod
    def _until_stored(folder, keys):
        while not all(list((folder / "roots.run" / "results").glob(f"*/{key}.h5")) for key in keys):
            time.sleep(0.02)
