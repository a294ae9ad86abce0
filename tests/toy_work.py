"""A kind of work that is not about layouts: its tasks are numbers, and its results are those of `toy_kind`."""

import hashlib
import json
import os
import time
from pathlib import Path

import numpy as np

from leeward.campaign.execution import Execution
from leeward.errors import InputError
from toy_kind import Sample, SampleKey

KIND = "samples"


class NumberWork:
    """Square roots of the multiples of a number; folder: where each call is noted, and `go` lets tasks end."""

    kind = KIND
    can_adopt = False
    name = "roots"
    method_version = 1

    def __init__(self, folder, count, factor=1.0, engine="inline"):
        self.source = {"folder": str(folder), "count": count, "factor": factor, "engine": engine}
        self.n_tasks = count
        self.execution = Execution(engine=engine, workers=2)

    @classmethod
    def from_text(cls, text, where):
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise InputError(f"{where}: {error}") from error

    def frozen_text(self):
        return json.dumps(self.source)

    def study_text(self):
        return json.dumps({name: self.source[name] for name in ("count", "factor")})

    def __contains__(self, key):
        return isinstance(key, SampleKey) and key.version == 1 and key.sample < self.n_tasks

    def select(self, only):
        keys = [SampleKey(number, 1) for number in range(self.n_tasks)]
        if isinstance(only, str):
            return [key for key in keys if key.sample % 2 == {"even": 0, "odd": 1}[only]]
        return [key for key in keys if only is None or key in only]

    def group(self, key):
        return key.sample // 10

    def check(self):
        return []

    def warm_up(self):
        pass

    def compute(self, key, show_progress):
        folder = Path(self.source["folder"])
        with (folder / "calls.txt").open("a") as calls:
            calls.write(f"{key.sample} {os.getpid()}\n")
        while (folder / "wait").exists() and key.sample >= 2:
            time.sleep(0.02)
        show_progress(step=1)
        values = np.sqrt(np.arange(1.0, 4.0) * key.sample * self.source["factor"])
        return Sample(key, values.reshape(1, 1, 3), fingerprint=self.fingerprint(key), details={"method_version": 1})

    def fingerprint(self, key):
        return hashlib.sha256(f"{key.sample} {self.source['factor']}".encode()).hexdigest()

    def version_of(self, key, fingerprint, stated):
        return 1 if fingerprint == self.fingerprint(key) else None

    def differences(self, before, keys):
        return [f"factor: {self.source['factor']}, was {before.source['factor']}"]

    def attributes(self):
        return {"factor": self.source["factor"]}

    def result_bytes(self, keys):
        return 24

    def adopt(self, sources, done, keep_infeasible, store, notice):
        raise InputError("results of other origin cannot be adopted")
