"""Groups read straight from their bytes: what that calls valid, libhdf5 calls valid too, with the same content."""

import os

import h5py
import numpy as np

from foreign_files import own_result, write_own_file
from leeward.carving import Pages
from leeward.store import reader_main as reading
from leeward.store.directory.shards import shard_bytes
from leeward.store.format import direct
from leeward.store.format.groups import LIBVER


def read_directly(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        return direct.sealed_results(Pages(handle))
    finally:
        os.close(handle)


def is_valid(path):
    """Whether the reading process finds nothing wrong with a file, here in this process."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    request = {"path": str(path), "names": None, "start": 0, "contents": False, "sha256": False, "carve": False}
    about = reading._read_file(request, reading.Output(nothing, 0))
    os.close(nothing)
    return about.verdict == "valid" and about.bad == 0 and about.attributes == {"format_version": 1}


def test_all_that_a_result_may_hold(tmp_path):
    results = [
        own_result(),
        own_result(farm=1, turbines=1, truth=True, lie=False, whole=-5, nothing=float("nan"), row=np.arange(300.0)),
        own_result(farm=2, long="æ" * 30_000, empty="", one=np.array([1.0]), none=np.zeros(0)),
        own_result(farm=3, **{f"detail_{i}": "x" * 500 for i in range(180)}),
        own_result(farm=4, turbines=50),
    ]
    path = write_own_file(tmp_path / "layouts.h5", results, campaign_name="sample")
    attributes, found = read_directly(path)
    assert {**attributes, "seal": ""} == {"format_version": 1, "campaign_name": "sample", "seal": ""}
    assert {name: result.seal for name, result in found.items()} == {str(one.key): one.seal for one in results}
    assert [result.history is None for result in found.values()] == [False] * 5
    np.testing.assert_array_equal(found["farm1_t0_s0"].details["row"], np.arange(300.0))


def test_what_is_unfamiliar(tmp_path):
    path = write_own_file(tmp_path / "many.h5", [own_result(seed=seed) for seed in range(20)])
    assert read_directly(path) is None  # its links lie in a heap
    path = write_own_file(tmp_path / "other.h5", [own_result()])
    with h5py.File(path, "r+", libver=LIBVER) as file:
        file["farm0_t0_s0"].attrs["note"] = "of any length"
    assert read_directly(path) is None
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    assert read_directly(path) is None


def test_damage_is_no_more_valid_than_libhdf5_finds_it(tmp_path, monkeypatch):
    """Damage that the quick way does not mind is none to libhdf5 either; and what has its seal is as it was."""
    original = own_result()
    content = shard_bytes(original)
    rng = np.random.default_rng(2)
    path = tmp_path / "damaged.h5"
    sound = proved = 0
    for _ in range(1500):
        damaged = bytearray(content)
        start = int(rng.integers(len(content)))
        match rng.integers(4):
            case 0:
                damaged[start] ^= 1 << int(rng.integers(8))
            case 1:
                damaged[start : start + 20] = bytes(len(damaged[start : start + 20]))
            case 2:
                damaged = damaged[:start]
            case 3:
                damaged += bytes(rng.integers(0, 256, 100, dtype=np.uint8))
        path.write_bytes(damaged)
        found = read_directly(path)
        proved += found is not None
        assert found is None or found[1]["farm0_t0_s0"].seal == original.seal
        if is_valid(path):
            sound += 1
            with monkeypatch.context() as context:
                context.setattr(reading, "sealed_result_at", lambda *_: None)
                assert is_valid(path)
    assert 375 * 0.8 < sound < 700  # appended junk, and bits that nothing hangs on
    assert proved == sound
