"""The truth about the damaged files of the corpus, and what recovery has to get out of a sample of them."""

import math
from pathlib import Path

import h5py
import numpy as np
import pytest

from hdf5_walk import Walk, WalkError
from leeward.store.format.found import FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import FOREIGN, NO_AEP, SUCCESS, Result
from leeward.store.format.verdicts import Verdict
from leeward.store.rescue.recovery import Recoverer
from salvage_corpus import (
    CLASSES,
    FOLDER,
    FORMATS,
    Style,
    Tally,
    count,
    extents_of,
    file_bytes,
    is_kept,
    random_results,
    specimen,
)

STYLES = {
    "plain": {"is_reopened": False, "folder": None, "has_status": True},
    "reopened": {"is_reopened": True, "folder": None, "has_status": True},
    "folder": {"is_reopened": False, "folder": FOLDER, "has_status": False},
}


def whole_file(form, style, results=50, *, is_odd=False):
    originals = random_results(np.random.default_rng(7), results, is_odd)
    return file_bytes(Style(FORMATS[form], **STYLES[style]), originals), {one.key: one for one in originals}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("results", [1, 50])
def test_the_walk_finds_every_number(form, style, results):
    data, originals = whole_file(form, style, results)
    extents = extents_of(data)
    assert extents.keys() == originals.keys()
    for key, extent in extents.items():
        original = originals[key]
        assert data[slice(*extent.layout)] == original.layout.tobytes()
        if original.aep is not None:
            assert np.frombuffer(data[slice(*extent.aep)])[0] == original.aep
        assert Key(*(extent.attributes[name] for name in ("farm_idx", "type_idx", "ss_seed"))) == key
        assert extent.attributes["diameter"] == original.diameter
        assert extent.attributes.get("status", "success") == "success"


@pytest.mark.parametrize("is_odd", [False, True])
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("form", FORMATS)
def test_the_walk_agrees_with_the_library(form, style, is_odd, tmp_path):
    data, _ = whole_file(form, style, 40, is_odd=is_odd)
    (tmp_path / "file.h5").write_bytes(data)
    with h5py.File(tmp_path / "file.h5") as file:
        parent = file[STYLES[style]["folder"] or "/"]
        for key, extent in extents_of(data).items():
            group = parent[str(key)]
            information = h5py.h5o.get_info(group.id)
            assert information.addr == extent.headers[""]
            assert extent.headers.keys() == {"", *group}
            headers = information.hdr.space.total
            for name in group:
                dataset = group[name].id
                assert h5py.h5o.get_info(dataset).addr == extent.headers[name]
                headers += h5py.h5o.get_info(dataset).hdr.space.total
                for start, size in pieces(dataset):
                    assert (start, start + size) in extent.own
            assert len(places(extent.own)) >= headers


def pieces(dataset):
    """Where the library says that the numbers are."""
    if dataset.get_offset() is not None:
        return [(dataset.get_offset(), dataset.get_storage_size())]
    chunks = [dataset.get_chunk_info(i) for i in range(dataset.get_num_chunks())]
    return [(chunk.byte_offset, chunk.size) for chunk in chunks]


def places(ranges):
    return {place for start, end in ranges for place in range(start, end)}


@pytest.mark.parametrize("is_odd", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_own_bytes_are_nobody_elses_and_are_enough(form, is_odd):
    data, _ = whole_file(form, "plain", 20, is_odd=is_odd)
    seen = set()
    for extent in extents_of(data).values():
        own = places(extent.own)
        assert not own & seen
        assert not own & places(extent.link)
        seen |= own
        alone = bytearray(len(data))
        for start, end in extent.own:
            alone[start:end] = data[start:end]
        again = Walk(bytes(alone)).result(extent.headers[""])
        assert (again.layout, again.aep, again.headers) == (extent.layout, extent.aep, extent.headers)


@pytest.mark.parametrize("form", FORMATS)
def test_a_walk_misses_what_is_cut_off(form):
    """Every result that the walk still gets from its header alone is one that counts as recoverable, and no other."""
    data, originals = whole_file(form, "reopened", 30)
    extents = extents_of(data)
    short = data[: len(data) * 2 // 3]
    kept = {key for key, extent in extents.items() if is_kept(data, short, extent.own)}
    assert 0 < len(kept) < len(originals)
    for key, extent in extents.items():
        if key in kept:
            assert Walk(short).result(extent.headers[""]).layout == extent.layout
        else:
            with pytest.raises(WalkError):
                Walk(short).result(extent.headers[""])


@pytest.mark.parametrize("name", [name for name in CLASSES if "killed" not in name])
def test_a_seed_makes_the_same_file_again(name):
    one, again = specimen(name, 3), specimen(name, 3)
    assert one.data == again.data
    assert one.recoverable == again.recoverable
    assert one.recoverable <= one.bare <= one.originals.keys()
    if "whole" in name:
        assert one.recoverable == one.named == one.originals.keys()


@pytest.mark.parametrize("form", FORMATS)
def test_a_writer_is_killed(form):
    """A file that was closed after each result loses at most those that were being written."""
    one = specimen(f"{form} killed, reopened", 1)
    finished = int(one.note.split()[0])
    assert finished >= 1
    assert len(one.originals) in (finished, finished + 1)
    assert len(one.recoverable) >= 1
    flushed = specimen(f"{form} killed, flushed at times", 1)
    assert flushed.recoverable <= flushed.bare


# --- the measure itself ----------------------------------------------------------------------------------------------


def found_result(original, *, sealed=False, evidence="plausible", key=None, layout=None, aep=None):
    energy = original.aep if aep is None else aep
    result = Result(
        key=key or original.key,
        layout=original.layout if layout is None else layout,
        aep_gwh=energy,
        rotor_diameter_m=original.diameter,
        fingerprint="",
        stop_reason="",
        steps=0,
        status=NO_AEP if math.isnan(energy) else SUCCESS,
        origin=FOREIGN,
    )
    attributes = {**result.attributes, "evidence": evidence}
    about = {"sealed": sealed, "attributes": attributes, "result": result}
    return FoundResult(Path("x.h5"), "x", result.key, Verdict.VALID, **about)


def test_the_measure_tells_right_from_wrong():
    one = specimen("old whole", 2)
    with_energy = [original for original in one.originals.values() if original.has_energy]
    first, second, third, fourth, fifth = with_energy[:5]
    shifted = second.layout.copy()
    shifted[0, 0] = np.nextafter(shifted[0, 0], math.inf)
    found = [
        found_result(first),
        found_result(second, layout=shifted),
        found_result(third, aep=math.nan),
        found_result(fourth, key=Key(99, 0, 0)),
        found_result(fifth, aep=fifth.aep + 1, sealed=True),
        found_result(first, evidence=""),
    ]
    tally = Tally()
    count(tally, one, found)
    assert (tally.recovered, tally.beyond, tally.without_aep) == (1, 0, 1)
    assert len(tally.missed) == len(one.originals) - 1
    assert [line.split("called ")[1].split(":")[0] for line in tally.wrong] == ["plausible", "plausible", "verified"]
    assert len(tally.unlabelled) == 1


# --- what recovery has to get ----------------------------------------------------------------------------------------


def recovered(names, seeds, folder):
    tally = Tally()
    with Recoverer(folder) as recoverer:
        for one in [specimen(name, seed) for name in names for seed in seeds]:
            path = folder / "worker_1.h5"
            path.write_bytes(one.data)
            found = recoverer.recover(path).results
            assert path.read_bytes() == one.data
            count(tally, one, [result for result in found if result.result is not None])
    return tally


@pytest.mark.parametrize("form", FORMATS)
def test_truncated_files(form, tmp_path):
    tally = recovered([f"{form} truncated"], range(10), tmp_path)
    assert tally.wrong == []
    assert tally.recoverable > 50
    assert tally.share >= 0.9


@pytest.mark.parametrize("form", FORMATS)
def test_flipped_files(form, tmp_path):
    tally = recovered([f"{form} flipped", f"{form} zeroed"], range(3), tmp_path)
    assert tally.unlabelled == []
    assert [line for line in tally.wrong if "called verified" in line] == []
    assert tally.share >= 0.9


@pytest.mark.parametrize("form", FORMATS)
def test_files_of_killed_writers(form, tmp_path):
    tally = recovered([name for name in CLASSES if name.startswith(f"{form} killed")], range(2), tmp_path)
    assert tally.wrong == []
    assert tally.share >= 0.9
