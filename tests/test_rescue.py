"""The way out of the crash: from a folder of worker files and a campaign to a complete, valid layouts.h5."""

import h5py
import numpy as np
import pytest

from leeward.campaign import load
from leeward.store.keys import Key
from leeward.store.schema import FOREIGN
from run_cases import INLINE, audit, calls, leeward_here, make_campaign, results

SEEDS = 12


def layout(seed):
    """Feasible, and no layout that the campaign's recipe would make."""
    return np.array([[600.0, 2400.0, 4400.0], [1000.0 + 100.0 * seed, 2000.0, 3000.0]])


def write_worker_file(path, groups, top=None):
    """groups: from seed to aep, None for none."""
    with h5py.File(path, "w") as file:
        file["init"] = 0
        parent = file.create_group(top) if top else file
        for seed, aep in groups.items():
            group = parent.create_group(f"farm0_t0_s{seed}")
            group["layout"] = layout(seed)
            if aep is not None:
                group["aep"] = aep
            facts = {"farm_idx": 0, "type_idx": 0, "n_turbines": 3, "diameter": 195, "ss_seed": seed}
            for name, value in facts.items():
                group.attrs[name] = value


@pytest.fixture
def crashed(tmp_path):
    """As the crash left it: the campaign, and worker files of every kind. Layouts 0 to 8 are in them."""
    campaign = load(make_campaign(tmp_path, seeds=SEEDS, execution=INLINE))
    true = {seed: campaign.recompute(Key(0, 0, seed), *layout(seed))[0] for seed in range(SEEDS)}
    folder = tmp_path / "layouts.h5_temp"
    folder.mkdir()
    write_worker_file(folder / "worker_100.h5", {0: true[0], 1: true[1]})
    (folder / "worker_101.h5").touch()
    write_worker_file(folder / "worker_102.h5", {})
    write_worker_file(folder / "worker_103.h5", {2: None, 3: 0.0, 4: -true[4]})
    write_worker_file(folder / "worker_104.h5", {5: true[5], 1: true[1]}, top="optimized_layouts")
    write_worker_file(folder / "worker_105.h5", {6: true[6], 7: true[7], 8: true[8]})
    write_worker_file(folder / "worker_106.h5", {9: true[9]})
    cut = (folder / "worker_106.h5").read_bytes()
    (folder / "worker_106.h5").write_bytes(cut[: len(cut) * 2 // 3])
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    yield tmp_path, true
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before  # the sources stay as they are


def test_one_command(crashed):
    folder, true = crashed
    looked = leeward_here("check", "layouts.h5_temp", cwd=folder)
    assert looked.returncode == 3
    for said in ("worker_101.h5", "empty", "worker_106.h5", "truncated"):
        assert said in looked.stdout
    assert "--adopt" in looked.stdout

    done = leeward_here("run", "campaign.yaml", "--adopt", "layouts.h5_temp", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "9 results adopted; 3 of them with their AEP recomputed" in done.stderr
    assert sorted(calls(folder)) == [9, 10, 11]
    found = results(folder / "layouts.h5")
    assert len(found) == SEEDS
    for seed in range(9):
        result = found[f"farm0_t0_s{seed}"]
        assert np.array_equal(result.layout, layout(seed))
        assert result.origin == FOREIGN
        assert result.aep == pytest.approx(true[seed], rel=1e-12)
        assert result.details["aep_source"] == ("recomputed" if seed in (2, 3, 4) else "stored")
    checked = leeward_here("check", "layouts.h5", "--complete", "--deep", cwd=folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    (told,) = [line for line in audit(folder / "layouts.run") if line["event"] == "adopted"]
    assert told["adopted"] == 9
    assert any("worker_101.h5" in line for line in told["bad_files"])

    again = leeward_here("run", "campaign.yaml", "--adopt", "layouts.h5_temp", cwd=folder)
    assert again.returncode == 0
    assert "10 were there already" in again.stderr
    assert len(calls(folder)) == 3


@pytest.mark.slow
def test_step_by_step(crashed):
    folder, true = crashed
    stopped = leeward_here("merge", "layouts.h5_temp", "-o", "rescued.h5", cwd=folder)
    assert stopped.returncode != 0
    assert not (folder / "rescued.h5").exists()
    assert "worker_101.h5" in stopped.stderr
    merged = leeward_here(
        "merge", "layouts.h5_temp", "-o", "rescued.h5", "--on-bad", "skip", "--campaign", "campaign.yaml", cwd=folder
    )
    assert merged.returncode == 3, merged.stderr  # not all is there
    assert len(results(folder / "rescued.h5")) == 9
    assert results(folder / "rescued.h5")["farm0_t0_s4"].aep == pytest.approx(true[4], rel=1e-12)
    missing = leeward_here("missing", "rescued.h5", "--csv", "missing.csv", cwd=folder)
    assert missing.returncode == 3
    assert (folder / "missing.csv").read_text().count("farm0_t0_s") == 3
    done = leeward_here("run", "campaign.yaml", "--adopt", "rescued.h5", "--only-from", "missing.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert len(results(folder / "layouts.h5")) == SEEDS


def test_layouts_of_another_campaign_are_not_adopted(crashed):
    folder, _ = crashed
    write_worker_file(folder / "odd.h5", {0: 100.0})
    with h5py.File(folder / "odd.h5", "a") as file:
        file["farm0_t0_s0"]["layout"][0] += 50_000
        file.copy("farm0_t0_s0", "farm7_t0_s0")
        file["farm7_t0_s0"].attrs["farm_idx"] = 7
    done = leeward_here("run", "campaign.yaml", "--adopt", "odd.h5", "--only", "seed=0", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "m outside the area" in done.stderr
    (told,) = [line for line in audit(folder / "layouts.run") if line["event"] == "adopted"]
    assert told["adopted"] == 0
    assert any("not a task of the campaign" in line for line in told["refused"])
    assert results(folder / "layouts.h5")["farm0_t0_s0"].origin == "leeward"
