"""A kind of work that is not about layouts: its tasks are numbers, and the result of one is a few floats.

The store knows results of layouts only, so far. These are therefore stored as such, and their keys are those of layouts
with the number as seed: `_result`, `parse_key` and `_key` are what changes when the store knows other kinds.
"""

import hashlib
import json
import os
import time
from pathlib import Path

import numpy as np

from leeward.campaign.execution import Execution
from leeward.errors import InputError
from leeward.store import Key, Result

KIND = "numbers"


def _key(number):
    return Key(7, 7, number)


class NumberWork:
    """Square roots of the multiples of a number; folder: where each call is noted, and `go` lets tasks end."""

    kind = KIND
    name = "roots"
    method_version = 1
    blank_progress = {"step": 0, "phase": "", "best_aep_gwh": None}  # noqa: RUF012

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

    @staticmethod
    def parse_key(text):
        return Key.parse(text)

    def __contains__(self, key):
        return key[:2] == (7, 7) and key[2] < self.n_tasks

    def select(self, only):
        keys = [_key(number) for number in range(self.n_tasks)]
        if isinstance(only, str):
            return [key for key in keys if key.seed % 2 == {"even": 0, "odd": 1}[only]]
        return [key for key in keys if only is None or key in only]

    def group(self, key):
        return key.seed // 10

    def check(self):
        pass

    def warm_up(self):
        pass

    def compute(self, key, show_progress):
        folder = Path(self.source["folder"])
        with (folder / "calls.txt").open("a") as calls:
            calls.write(f"{key.seed} {os.getpid()}\n")
        while (folder / "wait").exists() and key.seed >= 2:
            time.sleep(0.02)
        show_progress(step=1)
        return self._result(key, np.sqrt(np.arange(1.0, 4.0) * key.seed * self.source["factor"]))

    def _result(self, key, values):
        return Result(
            key=key,
            layout=np.array([values, values]),
            aep=1.0 + float(values.sum()),
            diameter=1.0,
            fingerprint=self.fingerprint(key),
            stop_reason="done",
            steps=1,
            details={"method_version": 1},
        )

    def fingerprint(self, key):
        return hashlib.sha256(f"{key.seed} {self.source['factor']}".encode()).hexdigest()

    def version_of(self, key, fingerprint, stated):
        return 1 if fingerprint == self.fingerprint(key) else None

    def differences(self, before, keys):
        return [f"factor: {self.source['factor']}, was {before.source['factor']}"]

    def attributes(self):
        return {"factor": self.source["factor"]}

    def result_bytes(self, keys):
        return 24

    def adopter(self, keep_infeasible):
        raise InputError("results of other origin cannot be adopted")
