"""Results dug out of raw bytes: whatever h5py may have written them as, and nothing that was not there."""

import contextlib
import ctypes
import doctest
import os
import zlib

import h5py
import numpy as np
import pytest

from foreign_files import layout_of, own_result, write_foreign_group, write_own_file
from leeward.carving import Pages, Unfamiliar, carve as carve_groups, datasets, is_fletcher32, lookup3
from leeward.store.format.keys import Key
from leeward.store.isolated.reader import Reader, read_files

FORMATS = [None, "latest"]


@pytest.fixture(scope="module")
def carve():
    """A function: what is found in a file, by name, the file itself left out; with one child process for all."""
    with contextlib.closing(Reader(contents=True, carve=True)) as reader:

        def carve(path):
            *found, _ = reader.read(path)
            return {one.name: one for one in reversed(found)}  # of one name, that which comes first counts

        yield carve


def write(path, keys, libver=None, **options):
    with h5py.File(path, "w", libver=libver) as file:
        file["init"] = 1
        for key in keys:
            write_foreign_group(file, Key(*key), **options)
    return path


def keys(count):
    return [(0, 0, seed) for seed in range(count)]


def libhdf5():
    """The library that h5py has loaded, which may show its own checksums."""
    with open("/proc/self/maps") as file:
        paths = {line.split(None, 5)[5].strip() for line in file if "libhdf5" in line and "_hl" not in line}
    return ctypes.CDLL(paths.pop())


@pytest.mark.parametrize("length", [*range(40), 511, 512, 513])
def test_the_checksum_is_that_of_libhdf5(length):
    content = np.random.default_rng(length).bytes(length)
    try:
        known = libhdf5().H5_checksum_metadata(content, ctypes.c_size_t(length), ctypes.c_uint32(0))
    except (OSError, KeyError, AttributeError):
        pytest.skip("this libhdf5 does not show its checksums")
    assert lookup3(content) == ctypes.c_uint32(known).value


@pytest.mark.parametrize(("content", "expected"), [(b"", 0xDEADBEEF), (b"Four score and seven years ago", 0x17770551)])
def test_the_checksum_is_that_of_its_author(content, expected):
    """From the comments of lookup3.c."""
    assert lookup3(content) == expected


@pytest.mark.parametrize("length", [2, 3, 8, 1056, 100_001])
def test_fletcher32_is_that_of_libhdf5(length, tmp_path):
    content = np.random.default_rng(length).bytes(length)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = np.frombuffer(content, dtype=np.uint8)
        _, stored = file.create_dataset("x", data=data, chunks=data.shape, fletcher32=True).id.read_direct_chunk((0,))
    assert stored[:-4] == content
    assert is_fletcher32(content, stored[-4:])
    assert not is_fletcher32(content, bytes([stored[-4] ^ 1]) + stored[-3:])


@pytest.mark.parametrize("libver", FORMATS)
@pytest.mark.parametrize("count", [1, 7, 8, 9, 50])
def test_all_of_a_whole_file(carve, tmp_path, libver, count):
    found = carve(write(tmp_path / "a.h5", keys(count), libver, status="success"))
    assert len(found) == count
    for key in keys(count):
        one = found[str(Key(*key))]
        assert one.is_valid, one
        assert not one.sealed
        assert np.array_equal(one.result.layout, layout_of(key))
        assert (one.aep_gwh, one.attributes["diameter"]) == (100.0, 240.0)
        assert one.details == {"source": "a.h5", "evidence": "plausible", "source_status": "success"}


@pytest.mark.parametrize("libver", FORMATS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_lzf_is_read_and_carved(carve, tmp_path, libver, shuffle):
    """h5py's own filter; numbers that it cannot make smaller are stored as they are."""
    rng = np.random.default_rng(5)
    layouts = [np.array([1000.0 * np.arange(100), np.full(100, 5e3)]), rng.uniform(0, 1e4, (2, 7))]
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for seed, layout in enumerate(layouts):
            group = write_foreign_group(file, Key(0, 0, seed), turbines=layout.shape[1], layout=layout)
            del group["layout"]
            group.create_dataset("layout", data=layout, chunks=layout.shape, compression="lzf", shuffle=shuffle)
    with contextlib.closing(Reader(contents=True)) as reader:
        *read, _ = reader.read(path)
    carved = carve(path)
    for one, layout in zip(read, layouts, strict=True):
        assert one.is_valid, one.reason
        assert np.array_equal(one.result.layout, layout)
        assert np.array_equal(carved[one.name].result.layout, layout)


@pytest.mark.parametrize("data", [b"\x20", b"\x20\x00", b"\xe0", b"\xe0\xff", b"\x00a\x20\x05"])
def test_what_lzf_cannot_have_written(data):
    with pytest.raises(Unfamiliar):
        datasets._from_lzf(data, 100)


@pytest.mark.parametrize("libver", FORMATS)
def test_what_libhdf5_reads_is_what_is_carved(carve, tmp_path, libver):
    """Every kind of attribute and dataset that is kept, in one file: both readers agree to the letter."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for seed, options in enumerate(({}, {"track_order": True})):
            group = file.create_group(f"farm1_t2_s{seed}", **options)
            group["layout"] = np.arange(6, dtype="f4").reshape(2, 3) + 0.25
            group["aep"] = np.int32(5)
            group["extra"] = [1, 2, 3]
            attributes = {"flag": True, "text": "ä" * 5, "fixed": np.bytes_(b"abc"), "many": np.arange(4), "f4": 0.5}
            attributes |= {
                "big": np.array(513, dtype=">i2"),
                "empty": "",
                "whole": np.uint8(7),
                "table": np.zeros((2, 2)),
            }
            for name, value in attributes.items():
                group.attrs[name] = value
        for seed in (2, 3):  # few attributes, and so many that they lie in a heap of their own
            write_foreign_group(file, Key(1, 2, seed), **({f"a{i}": i for i in range(20)} if seed == 3 else {}))
    read = {one.name: one for one in list(read_files([path], contents=True))[:-1]}
    carved = carve(path)
    assert read.keys() == carved.keys()
    for name, one in read.items():
        assert one.is_valid, one
        assert carved[name].is_valid, carved[name]
        assert carved[name].digest == one.digest
        ignored = [set(str(found.details.get("ignored", "")).split(", ")) for found in (one, carved[name])]
        assert ignored[0] == ignored[1]
        both = [sorted({**found.details, "ignored": ""}.items()) for found in (one, carved[name])]
        assert repr(both[0]) == repr(both[1])


@pytest.mark.parametrize("libver", FORMATS)
@pytest.mark.parametrize(
    "form",
    [
        {"compression": "gzip"},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        {"chunks": (2, 40)},
        {"dtype": ">f8"},
        {"dtype": "i4"},
    ],
)
def test_other_forms_of_a_layout(carve, tmp_path, libver, form):
    layout = np.floor(layout_of((0, 0, 0), 40))
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        group = file.create_group("farm0_t0_s0")
        group.create_dataset("layout", data=layout, **form)
        group["aep"] = 3.0
    (one,) = carve(path).values()
    assert one.is_valid, one
    assert np.array_equal(one.result.layout, layout)


@pytest.mark.parametrize("libver", FORMATS)
@pytest.mark.parametrize("form", [{}, {"compression": "gzip"}])
def test_several_chunks(carve, tmp_path, libver, form):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        group = file.create_group("farm0_t0_s0")
        group.create_dataset("layout", data=layout_of((0, 0, 0), 40), chunks=(1, 7), **form)
        group["aep"] = 3.0
    (one,) = carve(path).values()
    assert one.is_valid, one
    assert np.array_equal(one.result.layout, layout_of((0, 0, 0), 40))


def test_a_chunk_of_zeros(carve, tmp_path):
    """As where a flipped bit in its address leads into free space; libhdf5 reads it without a word."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("farm0_t0_s0")
        layout = group.create_dataset("layout", data=layout_of((0, 0, 0), 40), chunks=(1, 8))
        group["aep"] = 3.0
        layout[0, 8:16] = 0.0
    (one,) = carve(path).values()
    assert "a chunk of its layout is all zeros" in one.reason


def test_chunks_on_top_of_each_other(carve, tmp_path):
    """A flipped bit in the address of a chunk: the numbers of another one would be read."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("farm0_t0_s0")
        layout = group.create_dataset("layout", data=layout_of((0, 0, 0), 40), chunks=(1, 8))
        places = [layout.id.get_chunk_info(number).byte_offset for number in range(2)]
        group["aep"] = 3.0
    path.write_bytes(path.read_bytes().replace(places[0].to_bytes(8, "little"), places[1].to_bytes(8, "little")))
    (one,) = carve(path).values()
    assert "overlap" in one.reason


@pytest.mark.parametrize("libver", FORMATS)
def test_before_a_user_block_and_in_a_folder(carve, tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=1024) as file:
        folder = file.create_group("optimized_layouts")
        for key in keys(12):
            write_foreign_group(folder, Key(*key))
    assert [one.is_valid for one in carve(path).values()] == [True] * 12


@pytest.mark.parametrize("libver", FORMATS)
@pytest.mark.parametrize("cut", [0.3, 0.5, 0.8, 0.95])
def test_before_the_cut(carve, tmp_path, libver, cut):
    path = write(tmp_path / "a.h5", keys(30), libver, turbines=40)
    content = path.read_bytes()
    path.write_bytes(content[: int(cut * len(content))])
    valid = [one for one in carve(path).values() if one.is_valid]
    assert len(valid) >= 30 * cut - 6  # what was begun before the cut may end after it
    for one in valid:
        assert np.array_equal(one.result.layout, layout_of(one.key, 40))
        assert one.aep_gwh == 100.0


def test_names_come_from_attributes_or_from_links(carve, tmp_path):
    """The root is lost. What no attributes say the key of has its name in a table that is still there."""
    path = write(tmp_path / "a.h5", keys(6), farm_idx=None)
    content = bytearray(path.read_bytes())
    content[:200] = bytes(200)
    path.write_bytes(content)
    found = carve(path)
    assert set(found) == {f"farm0_t0_s{seed}" for seed in range(6)}
    assert all(one.is_valid for one in found.values())


def test_a_name_that_contradicts_the_attributes(carve, tmp_path):
    found = carve(write(tmp_path / "a.h5", keys(2), ss_seed=1))
    assert found["farm0_t0_s1"].is_valid
    assert "expected 0, as in the name of the group" in found["farm0_t0_s0"].reason


@pytest.mark.parametrize("cut", [0.5, 0.9])
def test_own_results_are_verified(carve, tmp_path, cut):
    results = [own_result(seed=seed, note="ä", is_odd=bool(seed % 2)) for seed in range(20)]
    path = write_own_file(tmp_path / "layouts.h5", results, campaign="text")
    content = path.read_bytes()
    path.write_bytes(content[: int(cut * len(content))])
    valid = [one for one in carve(path).values() if one.is_valid]
    assert len(valid) >= 20 * cut - 4
    for one in valid:
        assert one.sealed
        assert one.result.seal == results[one.key.seed].seal


def test_a_flipped_bit_breaks_a_seal(carve, tmp_path):
    """In whichever byte of the group: the result is carved as it was, or not at all."""
    result = own_result()
    path = write_own_file(tmp_path / "layouts.h5", [result])
    content = path.read_bytes()
    rng = np.random.default_rng(5)
    carved = 0
    for place in rng.choice(len(content), 60, replace=False):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        for one in carve(path).values():
            if one.is_valid:
                carved += 1
                assert one.result.seal == result.seal
    assert carved < 60


@pytest.mark.parametrize("page", [512, 4096])
def test_lost_pages(carve, tmp_path, page):
    """Zeros in the place of a page: no result has a layout that is not its own."""
    path = write(tmp_path / "a.h5", keys(20), turbines=48)
    content = path.read_bytes()
    for start in range(0, len(content), page):
        path.write_bytes(content[:start] + bytes(page) + content[start + page :])
        for one in carve(path).values():
            if one.is_valid:
                assert np.array_equal(one.result.layout, layout_of(one.key, 48))


def test_what_was_deleted_and_written_again(carve, tmp_path):
    """Links tell which of two results of a key counts."""
    path = write(tmp_path / "a.h5", keys(3))
    with h5py.File(path, "a") as file:
        del file["farm0_t0_s1"]
        write_foreign_group(file, Key(0, 0, 1), aep=7.0)
    assert carve(path)["farm0_t0_s1"].aep_gwh == 7.0


def test_what_is_no_hdf5_file(carve, tmp_path):
    path = tmp_path / "a.h5"
    for content in (b"", b"x", np.random.default_rng(1).bytes(200_000), b"OHDR\x02" * 5000, b"SNOD\x01\0" * 5000):
        path.write_bytes(content)
        assert carve(path) == {}


def test_a_header_in_a_circle(carve, tmp_path):
    """A continuation that leads back to its own header."""
    path = write(tmp_path / "a.h5", keys(1))
    content = bytearray(path.read_bytes())
    messages = b"\x10\0\x10\0\0\0\0\0"
    place = content.index(messages)
    content[place + 8 : place + 16] = place.to_bytes(8, "little")
    path.write_bytes(content)
    assert not [one for one in carve(path).values() if one.is_valid]


def test_what_would_unpack_to_more_than_it_should(tmp_path):
    bomb = zlib.compress(bytes(50_000_000), 9)
    assert len(datasets._plain(bomb, [1], 8, 100)) <= 804


def test_a_scan_sees_what_lies_across_windows(tmp_path, monkeypatch):
    from leeward.carving import search
    from leeward.store import Result

    path = write(tmp_path / "a.h5", keys(20), "latest")
    handle = os.open(path, os.O_RDONLY)
    whole = search._scan(handle, 0, Result.NAMES)
    monkeypatch.setattr(search, "_WINDOW", 1 << 12)
    assert search._scan(handle, 0, Result.NAMES) == whole
    os.close(handle)
    assert len(whole.headers) > 60


def test_the_example_of_the_package(tmp_path, monkeypatch):
    """On a truncated file of groups that have nothing to do with wind farms."""
    import leeward.carving

    path = tmp_path / "truncated.h5"
    with h5py.File(path, "w", libver="latest") as file:
        for number in range(12):
            group = file.create_group(f"run_{number}")
            group.attrs["voltage"] = 0.5 * (number + 1)
            group["trace"] = np.arange(100.0) + number
    content = path.read_bytes()
    path.write_bytes(content[: content.index((np.arange(100.0) + 1).tobytes()) + 8])  # within the second
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "example", **vars(leeward.carving)}
    test = doctest.DocTestParser().get_doctest(leeward.carving.__doc__, names, "example", None, 0)
    assert doctest.DocTestRunner().run(test) == (0, 1)


@pytest.mark.parametrize("libver", FORMATS)
def test_groups_of_any_kind(tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for number in range(20):
            group = file.create_group(f"outer/run {number}")
            group.attrs["number"] = number
            group.create_dataset("trace", data=np.arange(60.0).reshape(3, 4, 5), chunks=(1, 4, 5), compression="gzip")
    content = path.read_bytes()
    for cut, fewest in ((1.0, 20), (0.75, 12)):
        path.write_bytes(content[: int(cut * len(content))])
        with path.open("rb") as file:
            found = [group for group in carve_groups(Pages(file.fileno())) if "trace" in group.arrays]
        assert len(found) >= fewest
        for group in found:
            assert group.name == f"run {group.attributes['number']}" or (cut < 1 and group.name.startswith("group at"))
            assert np.array_equal(group.arrays["trace"].numbers, np.arange(60.0).reshape(3, 4, 5))
