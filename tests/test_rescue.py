"""The way out of the crash: from a folder of worker files and a campaign to a complete, valid layouts.h5."""

from dataclasses import replace

import h5py
import numpy as np
import pytest

from foreign_files import write_own_file
from leeward.campaign import load
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import FOREIGN, Result
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


@pytest.mark.slow
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
        assert result.aep_gwh == pytest.approx(true[seed], rel=1e-12)
        assert result.details.get("aep_source") == ("recomputed" if seed in (2, 3, 4) else None)
    checked = leeward_here("check", "layouts.h5", "--complete", "--deep", cwd=folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    (told,) = [line for line in audit(folder / "layouts.run") if line["event"] == "adopted"]
    assert told["adopted"] == 9
    assert any("worker_101.h5" in line for line in told["bad_files"])

    again = leeward_here("run", "campaign.yaml", "--adopt", "layouts.h5_temp", cwd=folder)
    assert again.returncode == 0
    assert "10 existed before" in again.stderr
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
    assert results(folder / "rescued.h5")["farm0_t0_s4"].aep_gwh == pytest.approx(true[4], rel=1e-12)
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


def foreign_layout(folder, name, seed, aep, *, apart=None):
    """A worker file with one layout; apart: how far the second turbine is from the first, m."""
    write_worker_file(folder / name, {seed: aep})
    if apart is not None:
        with h5py.File(folder / name, "a") as file:
            file[f"farm0_t0_s{seed}/layout"][:, 1] = layout(seed)[:, 0] + [apart, 0.0]


def adopted(folder):
    (told,) = [line for line in audit(folder / "layouts.run") if line["event"] == "adopted"]
    return told


def test_the_wake_engine_judges_and_not_the_stored_aep(tmp_path):
    """An inflated AEP displaces no better layout; what a file claims is kept, and each disagreement is listed."""
    campaign = load(make_campaign(tmp_path, seeds=3, execution=INLINE))
    true = {seed: campaign.recompute(Key(0, 0, seed), *layout(seed))[0] for seed in range(3)}
    foreign_layout(tmp_path, "good.h5", 0, true[0])
    foreign_layout(tmp_path, "inflated.h5", 0, 1e300, apart=620.0)
    foreign_layout(tmp_path, "tiny.h5", 1, 5e-324)
    foreign_layout(tmp_path, "near.h5", 2, true[2] * (1 + 1e-7))
    sources = [word for name in ("inflated", "good", "tiny", "near") for word in ("--adopt", f"{name}.h5")]
    done = leeward_here("run", "campaign.yaml", *sources, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = results(tmp_path / "layouts.h5")
    for seed, claimed in ((0, true[0]), (1, 5e-324), (2, true[2] * (1 + 1e-7))):
        result = found[f"farm0_t0_s{seed}"]
        assert np.array_equal(result.layout, layout(seed))
        assert result.aep_gwh == pytest.approx(true[seed], rel=1e-12)
        assert result.details["aep_claimed"] == claimed
        assert "aep_source" not in result.details
        assert result.details["wake_loss"] == pytest.approx(campaign.recompute(result.key, *result.layout)[1])
    listed = adopted(tmp_path)["disagreeing"]
    assert [(one["key"], one["file"], one["claimed_aep_gwh"]) for one in listed] == [
        ("farm0_t0_s0", "inflated.h5", 1e300),
        ("farm0_t0_s1", "tiny.h5", 5e-324),
    ]
    for said in ("inflated.h5: farm0_t0_s0: 1e+300 GWh stored", "tiny.h5: farm0_t0_s1: ", "computed"):
        assert said in done.stderr
    assert "near.h5: farm0" not in done.stderr
    assert leeward_here("check", "layouts.h5", "--complete", "--deep", cwd=tmp_path).returncode == 0
    merged = leeward_here("merge", "layouts.h5", "good.h5", "tiny.h5", "near.h5", "-o", "all.h5", cwd=tmp_path)
    assert merged.returncode == 0, merged.stderr  # what was adopted stands for its source


@pytest.mark.slow
def test_turbines_closer_than_a_rotor_are_adopted_only_on_demand(tmp_path):
    make_campaign(tmp_path, seeds=2, execution=INLINE)
    foreign_layout(tmp_path, "close.h5", 0, 100.0, apart=194.0)
    foreign_layout(tmp_path, "apart.h5", 1, 100.0, apart=196.0)  # violates the spacing of 600 m, which is noted
    command = ("run", "campaign.yaml", "--adopt", "close.h5", "--adopt", "apart.h5")
    done = leeward_here(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "two turbines are 194 m apart, less than a rotor diameter (195 m)" in done.stderr
    assert "--keep-infeasible" in done.stderr
    found = results(tmp_path / "layouts.h5")
    assert [found[f"farm0_t0_s{seed}"].origin for seed in (0, 1)] == ["leeward", FOREIGN]
    assert found["farm0_t0_s1"].details["violation_m"] == pytest.approx(404.0)

    kept = leeward_here(*command, "--new", "--keep-infeasible", cwd=tmp_path)
    assert kept.returncode == 0, kept.stderr
    found = results(tmp_path / "layouts.h5")
    assert [found[f"farm0_t0_s{seed}"].origin for seed in (0, 1)] == [FOREIGN, FOREIGN]
    assert leeward_here("clean", "layouts.run", "--merged", cwd=tmp_path).returncode == 0
    again = leeward_here("run", "campaign.yaml", cwd=tmp_path)  # they are this run's own now
    assert again.returncode == 0, again.stderr
    assert "0 computed now" in again.stdout
    alone = leeward_here("run", "campaign.yaml", "--keep-infeasible", cwd=tmp_path)
    assert alone.returncode == 2
    assert "adopt" in alone.stderr


@pytest.mark.slow
def test_an_own_result_with_a_wrong_aep_is_not_believed(tmp_path):
    make_campaign(tmp_path, seeds=2, execution=INLINE)
    assert leeward_here("run", "campaign.yaml", "-o", "other.h5", cwd=tmp_path).returncode == 0
    own = results(tmp_path / "other.h5")
    wrong = replace(own["farm0_t0_s1"], aep_gwh=own["farm0_t0_s1"].aep_gwh * 2)
    write_own_file(tmp_path / "changed.h5", [own["farm0_t0_s0"], wrong])
    done = leeward_here("run", "campaign.yaml", "--adopt", "changed.h5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = results(tmp_path / "layouts.h5")
    assert found["farm0_t0_s0"].digest == own["farm0_t0_s0"].digest
    assert (found["farm0_t0_s1"].origin, found["farm0_t0_s1"].aep_gwh) == (FOREIGN, own["farm0_t0_s1"].aep_gwh)
    assert found["farm0_t0_s1"].details["aep_claimed"] == wrong.aep_gwh


@pytest.mark.slow
def test_results_adopted_by_an_older_leeward_are_shown_and_adopted_again(tmp_path):
    """Those keep the AEP of their file as `aep`, and that of the wake engine as `aep_here`."""
    campaign = load(make_campaign(tmp_path, seeds=1, execution=INLINE))
    true = campaign.recompute(Key(0, 0, 0), *layout(0))[0]
    details = {"aep_source": "stored", "aep_here": true, "evidence": "plausible"}
    old = Result(Key(0, 0, 0), layout(0), 1e300, 195.0, "", "", 0, origin=FOREIGN, details=details)
    write_own_file(tmp_path / "old.h5", [old], campaign=campaign.study_text())
    shown = leeward_here("show", "farm0_t0_s0", "old.h5", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for said in ("aep here", "aep source", "stored"):
        assert said in shown.stdout
    assert leeward_here("run", "campaign.yaml", "--adopt", "old.h5", cwd=tmp_path).returncode == 0
    result = results(tmp_path / "layouts.h5")["farm0_t0_s0"]
    assert (result.aep_gwh, result.details["aep_claimed"]) == (true, 1e300)
    assert not {"aep_here", "aep_source"} & result.details.keys()
    assert leeward_here("run", "campaign.yaml", "-o", "b.h5", "--adopt", "layouts.h5", cwd=tmp_path).returncode == 0
    assert results(tmp_path / "b.h5")["farm0_t0_s0"].details["aep_claimed"] == 1e300
