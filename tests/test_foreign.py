"""The worker files of other scripts: what is taken for a result, and what it becomes."""

import contextlib
import io
import math

import h5py
import numpy as np
import pytest

from foreign_files import layout_of, own_result, write_crashed_folder, write_foreign_file, write_foreign_group
from leeward.store.directory.shards import shard_bytes
from leeward.store.format.found import FoundFile
from leeward.store.format.groups import read_group
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import Result
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import Reader, read_files


def stored_result(content, key):
    """What a shard holds, by way of h5py."""
    with h5py.File(io.BytesIO(content), "r") as file:
        return read_group(file[str(key)].id, str(key), Result)


KEY = Key(1, 2, 3)


@pytest.fixture(scope="module")
def judged():
    """Reads a file, by one child for all: gives its results, and what is said of the file."""
    with contextlib.closing(Reader(contents=True)) as reader:

        def judged(path):
            *results, file = reader.read(path)
            assert isinstance(file, FoundFile)
            return results, file

        yield judged


@pytest.fixture
def one(tmp_path, judged):
    """Write one group, and read it again."""

    def make(**options):
        path = tmp_path / "worker_7.h5"
        write_foreign_file(path, [KEY], **options)
        return judged(path)[0][0]

    return make


def test_a_chunk_that_is_shorter_than_it_should_be(tmp_path):
    """As after a flipped bit that hides its filters: what libhdf5 would return changes from read to read."""
    path = tmp_path / "worker_7.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("farm0_t0_s0")
        group["aep"] = 100.0
        layout = group.create_dataset("layout", (2, 20), "f8", chunks=(2, 20), compression="gzip")
        layout[:] = np.arange(40.0).reshape(2, 20)
        stored = layout.id.get_chunk_info(0).size
    content = path.read_bytes()
    pipeline = bytes.fromhex("0b00") + (32).to_bytes(
        2, "little"
    )  # the message of the filters, in a header of version 1
    assert pipeline in content
    path.write_bytes(content.replace(pipeline, bytes.fromhex("00002000")))  # an empty message instead
    found = next(iter(read_files([path])))
    assert found.verdict is Verdict.WRONG_STRUCTURE
    assert found.reason == f"layout has a chunk of {stored} bytes; expected 320"


def test_a_usual_group(one):
    found = one(aep=5300.5, optimizer="smart_start", grid=np.int32(18), flags=np.array([1, 2]), weight=np.float32(0.5))
    assert found.is_valid
    assert not found.sealed
    result = found.result
    assert (result.key, result.aep_gwh, result.rotor_diameter_m, result.status) == (KEY, 5300.5, 240.0, "success")
    assert (result.origin, result.fingerprint, result.stop_reason, result.steps) == ("foreign", "", "", 0)
    np.testing.assert_array_equal(result.layout, layout_of(KEY))
    details = dict(result.details)
    assert details.pop("flags").tolist() == [1.0, 2.0]
    about = {"source": "worker_7.h5", "evidence": "plausible"}
    assert details == {**about, "optimizer": "smart_start", "grid": 18, "weight": 0.5}
    assert found.digest == result.digest
    again = stored_result(shard_bytes(result), KEY)
    assert again.seal == result.seal


@pytest.mark.parametrize(
    ("aep", "note"),
    [
        (None, "no aep in the source"),
        (0.0, "aep was 0.0 in the source: no energy"),
        (0, "aep was 0.0 in the source: no energy"),
        (-5300.1, "aep was -5300.1 in the source: a cost, not an energy"),
        (math.nan, "aep was nan in the source: no energy"),
        (-math.inf, "aep was -inf in the source: no energy"),
    ],
)
def test_an_impossible_aep_is_not_a_lost_layout(one, aep, note):
    found = one(aep=aep)
    assert found.is_valid
    assert found.status == found.result.status == "no-aep"
    assert math.isnan(found.result.aep_gwh)
    assert found.details["aep_note"] == note
    assert stored_result(shard_bytes(found.result), KEY).status == "no-aep"


@pytest.mark.parametrize("aep", [np.float32(100.5), [100.5], [[100.5]], np.array(100.5, dtype=">f8")])
def test_forms_of_aep(one, aep):
    assert one(aep=aep).result.aep_gwh == 100.5


@pytest.mark.parametrize("value", [np.uint8(1), 1.0, "1", np.bytes_(b"1"), [1], np.array([1.0], dtype="f4")])
def test_forms_of_numbers_in_attributes(one, value):
    assert one(farm_idx=value).is_valid


def test_attributes_may_be_missing(one):
    found = one(farm_idx=None, type_idx=None, n_turbines=None, diameter=None, ss_seed=None)
    assert found.is_valid
    assert math.isnan(found.result.rotor_diameter_m)


@pytest.mark.parametrize(
    "wrong",
    [
        {"farm_idx": 2},
        {"type_idx": "x"},
        {"ss_seed": 3.5},
        {"ss_seed": math.nan},
        {"n_turbines": 6},
        {"n_turbines": [5, 5]},
        {"aep": "much"},
        {"aep": [1.0, 2.0]},
        {"layout": np.zeros((3, 5))},
        {"layout": np.zeros(10)},
        {"layout": np.zeros((2, 0))},
        {"layout": np.zeros((2, 5, 1))},
        {"layout": 1.0},
        {"layout": "far away"},
        {"layout": np.zeros((2, 5), dtype=complex)},
        {"layout": h5py.Empty("f8")},
    ],
)
def test_contradictions_and_other_shapes(one, wrong):
    found = one(**wrong)
    assert found.verdict is Verdict.WRONG_STRUCTURE
    assert found.reason
    assert found.key == KEY


def test_coordinates(one):
    layout = layout_of(KEY)
    np.testing.assert_array_equal(one(layout=layout.T).result.layout, layout)
    square = layout[:, :2]
    np.testing.assert_array_equal(one(layout=square, n_turbines=2).result.layout, square)
    holes = layout.copy()
    holes[1, 2] = np.nan
    assert one(layout=holes).verdict is Verdict.IMPLAUSIBLE
    assert one(layout=np.zeros((2, 5))).verdict is Verdict.IMPLAUSIBLE
    assert one(layout=layout.astype("f4")).is_valid


def test_a_diameter_that_is_none(one):
    for value in (0.0, -1.0, "large", [1.0, 2.0]):
        found = one(diameter=value)
        assert found.is_valid
        assert math.isnan(found.result.rotor_diameter_m)
        assert "diameter was" in found.details["diameter_note"]


def test_attributes_of_all_kinds(one):
    kinds = {
        "status": "success",
        "source": "elsewhere",
        "digest": "abc",
        "empty": "",
        "large": np.uint64(2**64 - 1),
        "truth": True,
        "complex": 1j,
        "table": np.zeros((2, 2)),
        "nothing": h5py.Empty("f4"),
        "texts": np.array([b"a", b"b"]),
        "latin": np.bytes_(b"caf\xe9"),
        "long": "x" * 60_000,
    }
    found = one(**kinds)
    assert found.is_valid
    details = found.details
    assert details["source_status"] == "success"
    assert (details["source_source"], details["source"], details["source_digest"]) == (
        "elsewhere",
        "worker_7.h5",
        "abc",
    )
    assert (details["empty"], details["large"], details["truth"]) == ("", str(2**64 - 1), True)
    assert details["latin"] == "caf�"
    assert details["ignored"] == "complex, nothing, table, texts"
    assert stored_result(shard_bytes(found.result), KEY).seal == found.result.seal


def test_many_attributes_are_still_stored(one):
    found = one(**{f"a{i}": i for i in range(190)})
    assert found.is_valid
    assert stored_result(shard_bytes(found.result), KEY).seal == found.result.seal
    assert "ignored" in found.details
    assert one(**{f"a{i}": i for i in range(300)}).verdict is Verdict.WRONG_STRUCTURE


def test_what_else_is_in_a_file(tmp_path, judged):
    path = write_foreign_file(tmp_path / "worker.h5", [KEY], folder="optimized_layouts")
    with h5py.File(path, "r+") as file:
        write_foreign_group(file, Key(0, 0, 0))
        file["notes"] = "text"
        file.create_group("farm00_t1_s1")
        file["farm5_t5_s5"] = 1
        file["optimized_layouts/other"] = 1
        file["optimized_layouts"][str(KEY)]["time"] = 5.0
    results, file = judged(path)
    assert {found.name: found.verdict.value for found in results} == {
        "farm0_t0_s0": "valid",
        "farm5_t5_s5": "wrong-structure",
        "optimized_layouts/farm1_t2_s3": "valid",
    }
    assert results[2].key == KEY
    assert results[2].details["ignored"] == "time"
    assert file.verdict is Verdict.VALID
    assert not file.sealed
    assert file.reason == "ignored in it: farm00_t1_s1, notes, optimized_layouts/other"


def test_a_folder_that_is_a_link(tmp_path, judged):
    path = write_foreign_file(tmp_path / "worker.h5")
    with h5py.File(path, "r+") as file:
        file["optimized_layouts"] = h5py.ExternalLink("other.h5", "/")
    results, file = judged(path)
    assert [(found.name, found.verdict.value, found.key) for found in results] == [
        ("optimized_layouts", "wrong-structure", None)
    ]
    assert file.bad == 1


def test_a_seal_is_judged_wherever_it_stands(tmp_path, judged):
    """A sealed group that was copied into a file without a format version, and damaged there."""
    result = own_result()
    (tmp_path / "shard.h5").write_bytes(shard_bytes(result))
    path = tmp_path / "copy.h5"
    with h5py.File(tmp_path / "shard.h5") as source, h5py.File(path, "w") as file:
        source.copy(str(result.key), file)
    (found,), file = judged(path)
    assert (found.verdict, found.sealed, file.sealed) == (Verdict.VALID, True, False)
    with h5py.File(path, "r+") as file:
        file[str(result.key)]["aep"][()] = 5.0
    assert judged(path)[0][0].verdict is Verdict.BAD_SEAL


def test_the_folder_of_the_crash(tmp_path):
    folder = write_crashed_folder(tmp_path / "layouts.h5_temp")
    found = list(read_files(sorted(folder.iterdir())))
    files = {one.path.name: (one.verdict.value, one.valid) for one in found if isinstance(one, FoundFile)}
    assert files == {
        "worker_100.h5": ("valid", 2),
        "worker_101.h5": ("empty", 0),
        "worker_102.h5": ("valid", 0),
        "worker_103.h5": ("valid", 1),
        "worker_104.h5": ("valid", 1),
        "worker_105.h5": ("valid", 2),
        "worker_106.h5": ("valid", 2),
        "worker_107.h5": ("valid", 1),
        "worker_108.h5": ("truncated", 0),
    }
    results = [one for one in found if not isinstance(one, FoundFile)]
    assert {str(one.key) for one in results if one.status == "no-aep"} == {"farm0_t0_s2", "farm0_t0_s3", "farm0_t0_s7"}


def test_the_same_layout_has_the_same_digest(tmp_path):
    for name in ("a", "b"):
        write_foreign_file(tmp_path / f"{name}.h5", [KEY])
    results = [
        one.result for one in read_files(sorted(tmp_path.iterdir()), contents=True) if not isinstance(one, FoundFile)
    ]
    assert all(isinstance(result, Result) for result in results)
    assert results[0].digest == results[1].digest
    assert results[0].seal != results[1].seal
