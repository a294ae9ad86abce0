"""A kind of results other than layouts, all the way: shards, damage, check, packs, merge. And layouts unchanged."""

import io
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from foreign_files import own_result, write_own_file
from leeward.errors import BadSourceError, InputError
from leeward.store import (
    RunPaths,
    Verdict,
    check,
    merge,
    merge_run,
    output_index,
    read_files,
    store_result,
    whole_lines,
)
from leeward.store.directory.results import BadPack, RunFiles, read_results
from leeward.store.directory.shards import BadShard, ShardPaths, read_shards, shard_bytes
from leeward.store.format.kinds import KINDS
from leeward.store.isolated.reader_process import Child
from leeward.store.merging.packs import pack, unpack
from leeward.store.merging.writer import write_merged

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _known_kind(monkeypatch):
    """Both this process and the one that reads know the kind."""
    before = dict(KINDS)
    import toy_kind

    KINDS[toy_kind.Sample.KIND] = toy_kind.Sample
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    monkeypatch.setattr(Child, "MODULE", "toy_kind")
    yield
    KINDS.clear()
    KINDS.update(before)


def sample(number, version=3, **options):
    import toy_kind

    cube = np.random.default_rng([number, version]).uniform(0, 1, (2, 3, 4))
    return toy_kind.Sample(toy_kind.SampleKey(number, version), cube, **options)


@pytest.fixture
def run(tmp_path):
    """A run directory with twelve shards: more than fit in a header."""
    paths = RunPaths(tmp_path / "samples.h5")
    for number in range(12):
        store_result(paths, sample(number, details={"note": "ä", "row": np.arange(3.0)}, weights=np.ones(2)))
    return paths


def damage(path):
    content = bytearray(path.read_bytes())
    place = content.index(sample(7).cube.tobytes()[:40])
    content[place] ^= 1
    path.write_bytes(content)


def test_a_shard_is_read_back(run):
    shards = ShardPaths(run)
    assert [str(key) for key in shards.keys] == [f"sample{number}_v3" for number in range(12)]
    path = run.shard(shards.keys[7])
    found = next(read_shards([path], contents=True))
    assert (found.key, found.kind, found.verdict) == (sample(7).key, "samples", Verdict.VALID)
    assert np.array_equal(found.result.cube, sample(7).cube)
    assert np.array_equal(found.result.weights, np.ones(2))
    assert found.result.details["note"] == "ä"
    assert found.index_line() == {"key": "sample7_v3", "offset": 0.5}
    with h5py.File(path) as file:
        assert file.attrs["kind"] == b"samples"


def test_damage_and_nonsense_show(run):
    damage(run.shard(sample(7).key))
    store_result(run, sample(20, offset=-1.0))
    bad = {found.path.stem: found for found in read_shards(ShardPaths(run)) if isinstance(found, BadShard)}
    assert set(bad) == {"sample7_v3", "sample20_v3"}
    assert bad["sample20_v3"].verdict is Verdict.IMPLAUSIBLE
    report = check([run.root])
    assert (report.files, report.results, report.result_verdicts[Verdict.VALID]) == (13, 13, 11)
    assert not report.is_well


@pytest.mark.slow
def test_packed_and_merged(run):
    keys = list(ShardPaths(run).keys)
    packed = pack(run, keys[:10], run.new_pack(), {})
    assert (packed.count, packed.bad, packed.kept) == (10, [], [])
    assert len(ShardPaths(run)) == 2
    merged = merge_run(run, {"campaign_name": "toy"})
    assert (merged.count, merged.keys) == (12, frozenset(keys))
    report = check([run.output, run.root], expected=keys)
    assert report.is_well
    assert sorted(report.duplicates) == keys
    *found, file = read_files([run.output], contents=True)
    assert (file.attributes["kind"], file.attributes["campaign_name"], file.sealed) == ("samples", "toy", True)
    assert {one.result.seal for one in found} == {
        sample(number, details={"note": "ä", "row": np.arange(3.0)}, weights=np.ones(2)).seal for number in range(12)
    }
    lines = list(whole_lines(output_index(run.output)))
    assert {line["key"] for line in lines} == {str(key) for key in keys}


def test_a_damaged_pack_becomes_shards_again(run):
    packed = pack(run, list(ShardPaths(run).keys), run.new_pack(), {})
    damage(packed.path)
    *_, bad = read_results(RunFiles(run))
    assert isinstance(bad, BadPack)
    assert len(unpack(run, bad)) == 11
    packed.path.unlink()
    assert len(list(read_results(RunFiles(run)))) == 11


def test_carved_from_a_truncated_file(run, tmp_path):
    merge_run(run, {})
    content = run.output.read_bytes()
    cut = tmp_path / "cut.h5"
    cut.write_bytes(content[: len(content) // 2])
    *found, _ = read_files([cut], contents=True, carve=True)
    valid = [one for one in found if one.is_valid]
    assert valid
    assert all(one.sealed and np.array_equal(one.result.cube, sample(one.key.sample).cube) for one in valid)


def test_different_results_of_one_key_are_a_conflict(run, tmp_path):
    other = RunPaths(tmp_path / "other.h5")
    store_result(other, sample(3, offset=0.25))
    store_result(other, sample(4, details={"note": "ä", "row": np.arange(3.0)}, weights=np.ones(2)))
    with pytest.raises(BadSourceError, match="sample3_v3: different results"):
        merge([run.root, other.root], tmp_path / "all.h5")


def test_kinds_do_not_mix(run, tmp_path):
    own = write_own_file(tmp_path / "layouts.h5", [own_result()])
    with pytest.raises((InputError, BadSourceError), match="kind"):
        merge([run.root, own], tmp_path / "all.h5")
    with pytest.raises(InputError, match="of a different kind"):
        write_merged(tmp_path / "all.h5", [own_result(), sample(1)], {})


def test_a_kind_that_is_not_known(run, monkeypatch):
    monkeypatch.setattr(Child, "MODULE", "leeward.store.reader_main")
    (file,) = read_files([run.shard(sample(7).key)])
    assert file.verdict is Verdict.WRONG_STRUCTURE
    assert "results of the kind 'samples'" in file.reason


def test_a_file_of_layouts_names_no_kind():
    """A second kind leaves no trace in files that were there before it."""
    with h5py.File(io.BytesIO(shard_bytes(own_result()))) as file:
        assert set(file.attrs) == {"format_version", "seal"}
