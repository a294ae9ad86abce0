"""PyWake's numbers: read from tests/data/pywake.json, or computed anew.

PyWake takes seconds to import and minutes to compute what leeward is compared with, so `make test` compares with stored
numbers: up to SAMPLE of each array. LEEWARD_REFERENCES=recompute (set by `make test-all`) runs PyWake, compares all
numbers, and checks the stored ones. LEEWARD_REFERENCES=write (`make references`) stores them.
"""

import importlib.metadata
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parent / "data" / "pywake.json"
MODE = os.environ.get("LEEWARD_REFERENCES", "stored")
SAMPLE = 40
SAME = 1e-11  # of the largest number: PyWake on another CPU, or with another numpy

Numbers = dict[str, np.ndarray]


def model_name(model) -> str:
    """Return a wake model's name with the options that are not its defaults, as the id of a test."""
    options = [f"{name}={value}" for name, value in vars(model).items() if value != getattr(type(model), name)]
    return " ".join([model.name, *options])


def sampled(numbers) -> np.ndarray:
    """Return at most SAMPLE of the numbers, always from the same places."""
    flat = np.asarray(numbers, float).ravel()
    if flat.size <= SAMPLE:
        return flat
    places = np.random.default_rng(flat.size).choice(flat.size, SAMPLE, replace=False)
    return flat[np.sort(places)]


class References:
    """All stored numbers, by test and quantity, with the version of PyWake that computed them."""

    def __init__(self) -> None:
        if MODE not in ("stored", "recompute", "write"):
            raise ValueError(f"LEEWARD_REFERENCES is {MODE!r}; expected recompute, write or nothing")
        if MODE == "write" and "PYTEST_XDIST_WORKER" in os.environ:
            raise ValueError("LEEWARD_REFERENCES=write needs one process: run pytest without -n")
        self._stored = {"tests": {}} if MODE == "write" else json.loads(PATH.read_text())

    def of(self, test: str, compute: Callable[[], Numbers]) -> Numbers:
        """Return PyWake's numbers for a test: samples of them where they are stored, else all of them."""
        if MODE == "stored":
            if test not in self._stored["tests"]:
                pytest.fail(f"{PATH.name} has no numbers for {test}: `make references` stores them")
            return {name: np.array(values) for name, values in self._stored["tests"][test].items()}
        computed = {name: np.asarray(values, float) for name, values in compute().items()}
        if MODE == "recompute":
            self._check(test, computed)
        else:
            self._stored["tests"][test] = {name: sampled(values).tolist() for name, values in computed.items()}
        return computed

    def _check(self, test: str, computed: Numbers) -> None:
        stored = self._stored["tests"].get(test, {})
        assert stored.keys() == computed.keys(), f"{PATH.name} does not hold what PyWake computes: `make references`"
        version = importlib.metadata.version("py_wake")
        for name, values in computed.items():
            fresh = sampled(values)
            np.testing.assert_allclose(
                stored[name],
                fresh,
                rtol=0,
                atol=SAME * np.abs(fresh).max(),
                err_msg=f"{name}: stored by PyWake {self._stored['py_wake']}, computed by {version}",
            )

    def write(self) -> None:
        """Store what was computed, a line for each test."""
        tests = self._stored["tests"]
        lines = ",\n".join(f"{json.dumps(test)}: {json.dumps(tests[test])}" for test in sorted(tests))
        versions = {name: importlib.metadata.version(name) for name in ("py_wake", "numpy")}
        head = "".join(f"{json.dumps(name)}: {json.dumps(version)},\n" for name, version in versions.items())
        PATH.write_text(f'{{\n{head}"tests": {{\n{lines}\n}}\n}}\n')


class PyWake:
    """What PyWake says about the case of one test."""

    def __init__(self, references: References, test: str) -> None:
        self._references = references
        self._test = test

    def numbers(self, compute: Callable[[], Numbers]) -> "Theirs":
        """compute: runs PyWake, and is called only where its numbers are not taken from the file."""
        return Theirs(self._references.of(self._test, compute))


class Theirs:
    """PyWake's numbers by name, all or samples of them."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def assert_close(self, name: str, ours, *, rtol: float = 0.0, atol: float = 0.0, of_largest: float = 0.0) -> None:
        """Compare our numbers with PyWake's; of_largest: a tolerance relative to PyWake's largest number."""
        theirs = self._numbers[name]
        if MODE == "stored":
            ours = sampled(ours)
        atol = atol + of_largest * np.abs(theirs).max()
        np.testing.assert_allclose(ours, np.reshape(theirs, np.shape(ours)), rtol=rtol, atol=atol, err_msg=name)
