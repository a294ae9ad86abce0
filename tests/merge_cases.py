"""What the tests of merging and of removing sources share: sources of all kinds, and a look at what came of them."""

import json

import h5py
from h5py import h5g

from foreign_files import own_result, write_own_file
from leeward.store.directory.shards import store_result
from leeward.store.format.groups import read_group
from leeward.store.format.layout_result import Result
from leeward.store.paths import RunPaths


def ten_shards(folder):
    """A run directory with ten shards."""
    paths = RunPaths(folder / "layouts.h5")
    for seed in range(10):
        store_result(paths, own_result(seed=seed))
    return paths


def found_in(path):
    """The results of a file, by the text of their key; each has to be valid."""
    with h5py.File(path) as file:
        return {name: read_group(h5g.open(file.id, name.encode()), name, Result) for name in file}


def digests(path):
    return {key: result.digest for key, result in found_in(path).items()}


def expected(results):
    return {str(result.key): result.digest for result in results}


def events(report):
    lines = [json.loads(line) for line in report.logs[0].read_text().splitlines()]
    return {name: [line for line in lines if line["event"] == name] for name in {line["event"] for line in lines}}


def damage(path):
    """A bit in the first layout of a file of ours."""
    content = bytearray(path.read_bytes())
    content[content.index(own_result().layout.tobytes()[:32]) + 5] ^= 16
    path.write_bytes(content)


def recompute(key, x, y):
    assert x.shape == y.shape == (5,)
    return 500.0 + key.seed, 0.25, 700.0


def two_rivals(folder):
    """Two files with different results of one key, and these results."""
    first = own_result(aep=90.0, created="2026-01-02T00:00:00Z")
    second = own_result(aep=95.0, created="2026-01-01T00:00:00Z")
    paths = [
        write_own_file(folder / "a.h5", [first, own_result(seed=1)]),
        write_own_file(folder / "b.h5", [second]),
    ]
    return paths, first, second
