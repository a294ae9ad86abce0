"""A second kind of results, for tests: samples in versions. As a script, the reading process that knows it too."""

import re
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from leeward.errors import InputError
from leeward.store.format.kind import AnyResult, digest_of
from leeward.store.format.kinds import KINDS


class SampleKey(NamedTuple):
    sample: int
    version: int

    def __str__(self):
        return f"sample{self.sample}_v{self.version}"


@dataclass(frozen=True, eq=False)
class Sample(AnyResult):
    """cube: of three dimensions. offset: a single number."""

    KIND = "samples"
    EXAMPLE = "sample12_v3"
    NAMES = rb"sample\d{1,9}_v\d{1,9}"
    FIXED = ("key", "sample", "origin", "status", "fingerprint", "digest")
    DATASETS: ClassVar = {"cube": 3, "offset": 0, "weights": 1}
    OPTIONAL = ("weights",)
    MARK = "cube"

    key: SampleKey
    cube: np.ndarray
    offset: float = 0.5
    fingerprint: str = ""
    details: dict = field(default_factory=dict)
    weights: np.ndarray | None = None

    @classmethod
    def parse_key(cls, text):
        match = re.fullmatch(r"sample(\d{1,9})_v(\d{1,9})", text, re.ASCII)
        if match is None or str(SampleKey(*map(int, match.groups()))) != text:
            raise InputError(f"{text!r:.60} is no key; expected one like {cls.EXAMPLE}")
        return SampleKey(*map(int, match.groups()))

    @classmethod
    def of(cls, attributes, datasets):
        details = {name: value for name, value in attributes.items() if name not in cls.FIXED}
        key, offset = cls.parse_key(str(attributes["key"])), float(datasets["offset"])
        return cls(key, datasets["cube"], offset, str(attributes["fingerprint"]), details, datasets.get("weights"))

    @property
    def digest(self):
        return digest_of(str(self.key), self.fingerprint, self.cube, float(self.offset))

    @property
    def attributes(self):
        fixed = {"key": str(self.key), "sample": self.key.sample, "origin": "leeward", "status": "success"}
        return {**fixed, "fingerprint": self.fingerprint, "digest": self.digest, **self.details}

    @property
    def datasets(self):
        weights = {} if self.weights is None else {"weights": self.weights}
        return {"cube": self.cube, "offset": np.array(self.offset), **weights}

    @classmethod
    def line_of(cls, attributes, scalars):
        return {"key": attributes["key"], "offset": scalars["offset"]}

    def doubt(self):
        return None if self.offset >= 0 else f"the offset is {self.offset:g}"


if __name__ == "__main__":
    from leeward.store.reader_main import main

    KINDS[Sample.KIND] = Sample
    main()
