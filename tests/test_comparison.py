"""Check and merge compare results with the campaign that they belong to, without --deep."""

import shutil

import h5py
import numpy as np
import pytest

from leeward.campaign import load
from leeward.store.format.keys import Key
from run_cases import INLINE, leeward_here, make_campaign, results

SEEDS = 2


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory):
    """Two finished campaigns with the same tasks and different spacings, in the folders `one` and `two`."""
    folder = tmp_path_factory.mktemp("campaigns")
    for name, spacing in (("one", 600), ("two", 650)):
        (folder / name).mkdir()
        make_campaign(folder / name, seeds=SEEDS, spacing_m=spacing, execution=INLINE)
        done = leeward_here("run", "campaign.yaml", cwd=folder / name)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def folder(campaigns, tmp_path):
    shutil.copytree(campaigns, tmp_path, dirs_exist_ok=True)
    return tmp_path


def shard(folder, name, seed):
    (path,) = (folder / name / "layouts.run").glob(f"results/*/farm0_t0_s{seed}.h5")
    return path


def write_foreign(path, layout, aep):
    with h5py.File(path, "w") as file:
        group = file.create_group("farm0_t0_s0")
        group["layout"], group["aep"] = layout, aep
        group.attrs["diameter"] = 195.0


@pytest.mark.slow
def test_a_shard_of_another_campaign(folder):
    alien = shard(folder, "one", 1)
    shutil.copy(shard(folder, "two", 1), alien)
    for options in ([], ["--complete"], ["--campaign", "one/campaign.yaml"]):
        checked = leeward_here("check", "one/layouts.run", *options, cwd=folder)
        assert checked.returncode == 3, checked.stdout
        assert "farm0_t0_s1" in checked.stdout
        assert "made with other settings" in checked.stdout
        assert "quarantine" not in checked.stdout  # a run refuses such a directory
        assert "Move their files" in checked.stdout
    for options in ([], ["--campaign", "one/campaign.yaml"]):
        merged = leeward_here("merge", "one/layouts.run", "-o", "merged.h5", *options, cwd=folder)
        assert merged.returncode == 3
        assert "farm0_t0_s1: implausible (it was made with other settings" in merged.stderr
        assert not (folder / "merged.h5").exists()
    skipped = leeward_here("merge", "one/layouts.run", "-o", "merged.h5", "--on-bad", "skip", cwd=folder)
    assert skipped.returncode == 3
    assert sorted(results(folder / "merged.h5")) == ["farm0_t0_s0"]
    assert leeward_here("check", "two/layouts.run", cwd=folder).returncode == 0
    alien.unlink()
    assert leeward_here("run", "campaign.yaml", cwd=folder / "one").returncode == 0
    assert leeward_here("check", "one/layouts.run", "--complete", "--deep", cwd=folder).returncode == 0


def test_a_merged_file_is_compared_with_the_campaign_that_it_tells(folder):
    assert leeward_here("check", "one/layouts.h5", cwd=folder).returncode == 0
    other = leeward_here("check", "one/layouts.h5", "--campaign", "two/campaign.yaml", cwd=folder)
    assert other.returncode == 3
    assert "made with other settings" in other.stdout


def test_another_number_of_turbines(folder):
    """The AEP of six turbines with a layout of two."""
    write_foreign(folder / "odd.h5", np.array([[500.0, 2500.0], [500.0, 2500.0]]), 100.0)
    merged = leeward_here("merge", "odd.h5", "-o", "m.h5", "--campaign", "one/campaign.yaml", cwd=folder)
    assert merged.returncode == 3
    assert "its layout has the shape (2, 2); expected (2, 3)" in merged.stderr
    checked = leeward_here("check", "odd.h5", "--campaign", "one/campaign.yaml", cwd=folder)
    assert checked.returncode == 3
    assert leeward_here("check", "odd.h5", cwd=folder).returncode == 0  # nobody knows its campaign


@pytest.mark.slow
def test_a_farm_that_was_moved(folder):
    """The AEP is the same there."""
    campaign = load(folder / "one" / "campaign.yaml")
    layout = results(folder / "one" / "layouts.h5")["farm0_t0_s0"].layout
    aep = campaign.recompute(Key(0, 0, 0), *layout)[0]
    for moved, is_refused in ((1e6, True), (100.0, False)):
        there = layout - np.array([[layout[0].min() + moved], [0.0]])
        write_foreign(folder / "moved.h5", there, aep)
        told = ["--campaign", "one/campaign.yaml"]
        merged = leeward_here("merge", "moved.h5", "-o", f"{moved:g}.h5", *told, cwd=folder)
        checked = leeward_here("check", "moved.h5", *told, cwd=folder)
        assert checked.returncode == (3 if is_refused else 0), checked.stdout
        assert (folder / f"{moved:g}.h5").exists() is not is_refused
        assert ("m outside the area of farm 0" in merged.stderr) is is_refused


@pytest.mark.slow
def test_adopted_results_have_no_fingerprint_to_compare(folder):
    layout = results(folder / "one" / "layouts.h5")["farm0_t0_s0"].layout.copy()
    layout[0] -= layout[0].min() + 50.0  # outside, by less than a spacing
    write_foreign(folder / "foreign.h5", layout, 100.0)
    done = leeward_here("run", "one/campaign.yaml", "-o", "a.h5", "--adopt", "foreign.h5", cwd=folder)
    assert done.returncode == 0, done.stderr
    for path in ("a.run", "a.h5"):
        checked = leeward_here("check", path, "--complete", cwd=folder)
        assert checked.returncode == 0, checked.stdout
    assert leeward_here("merge", "a.run", "-o", "m.h5", cwd=folder).returncode == 0


@pytest.mark.slow
def test_a_file_merged_from_different_campaigns_is_compared_with_none(folder):
    shard(folder, "one", 1).unlink()
    shard(folder, "two", 0).unlink()
    merged = leeward_here("merge", "one/layouts.run", "two/layouts.run", "-o", "m.h5", cwd=folder)
    assert merged.returncode == 0, merged.stderr
    again = leeward_here("merge", "m.h5", "two/layouts.run", "-o", "m.h5", cwd=folder)
    assert again.returncode == 0, again.stderr
    assert leeward_here("check", "m.h5", cwd=folder).returncode == 0
    told = leeward_here("check", "m.h5", "--campaign", "one/campaign.yaml", cwd=folder)
    assert told.returncode == 3
    assert "farm0_t0_s1" in told.stdout


def test_a_campaign_that_cannot_be_read_is_named(folder):
    (folder / "one" / "layouts.run" / "campaign.yaml").write_text("seeds: [")
    checked = leeward_here("check", "one/layouts.run", cwd=folder)
    assert checked.returncode == 0, checked.stdout
    assert "not compared with a campaign" in checked.stdout
