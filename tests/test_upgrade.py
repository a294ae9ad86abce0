"""After an upgrade that changes numbers: old results are read, checked and merged under their version, never mixed."""

import shutil
from dataclasses import replace

import pytest

import leeward
from foreign_files import write_own_file
from leeward.campaign import load
from leeward.store.directory.shards import store_result
from leeward.store.paths import RunPaths
from run_cases import INLINE, audit, leeward as leeward_process, leeward_here, make_campaign, results, shards

OLD = f"leeward {leeward.__version__}, method version 1"
RUN = ("run", "campaign.yaml")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished campaign of two tasks, as an older leeward left it: its wake engine computed another AEP, and its
    results do not state their method version.
    """
    folder = tmp_path_factory.mktemp("finished")
    make_campaign(folder, seeds=2, execution=INLINE)
    assert leeward_here(*RUN, cwd=folder).returncode == 0
    run = RunPaths(folder / "layouts.h5")
    old = [without_version(result) for result in results(folder / "layouts.h5").values()]
    for result in old:
        run.shard(result.key).unlink()
        store_result(run, result)
    write_own_file(folder / "layouts.h5", old, campaign=load(folder / "campaign.yaml").study_text())
    return folder


def without_version(result):
    details = {name: value for name, value in result.details.items() if name != "method_version"}
    return replace(result, aep_gwh=1.001 * result.aep_gwh, details=details)


@pytest.fixture
def folder(finished, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def upgrade(monkeypatch):
    def to(version):
        monkeypatch.setattr("leeward.campaign.fingerprint.METHOD_VERSION", version)

    return to


def refused(done):
    assert done.returncode == 2, done.stderr
    assert f"was made by {OLD}" in done.stderr
    assert "method version 2, which computes different numbers" in done.stderr
    for way_out in ("-o", "--new"):
        assert way_out in done.stderr
    return True


def test_a_result_states_what_made_it(tmp_path):
    make_campaign(tmp_path, seeds=1, execution=INLINE)
    assert leeward_here(*RUN, cwd=tmp_path).returncode == 0
    assert results(tmp_path / "layouts.h5")["farm0_t0_s0"].details["method_version"] == 1
    assert "method version" in leeward_here("show", "farm0_t0_s0", cwd=tmp_path).stdout


@pytest.mark.slow
def test_old_results_are_checked_and_merged_under_their_version(folder, upgrade):
    deep = leeward_here("check", "layouts.run", "--deep", cwd=folder)
    assert deep.returncode == 3  # as if this leeward had made them
    upgrade(2)
    for options in ([], ["--complete", "--deep"], ["--deep", "--campaign", "campaign.yaml"]):
        checked = leeward_here("check", "layouts.run", *options, cwd=folder)
        assert checked.returncode == 0, checked.stdout
        assert f"made by {OLD}, and compared under that version" in checked.stdout
        assert "method version 2" in checked.stdout
        assert "implausible" not in checked.stdout
    merged = leeward_here("merge", "layouts.run", "-o", "m.h5", "--campaign", "campaign.yaml", cwd=folder)
    assert merged.returncode == 0, merged.stderr
    assert f"2 results made by {OLD}" in merged.stdout
    (log,) = folder.glob("merge_log_*.txt")
    assert OLD in log.read_text()
    assert leeward_here("check", "m.h5", "--deep", cwd=folder).returncode == 0


def test_a_run_mixes_no_versions_and_says_what_to_do(folder, upgrade):
    upgrade(2)
    assert refused(leeward_here(*RUN, cwd=folder))
    assert len(shards(folder / "layouts.run")) == 2
    kept = leeward_here(*RUN, "-o", "b.h5", cwd=folder)
    assert kept.returncode == 0, kept.stderr
    new = leeward_here(*RUN, "--new", cwd=folder)
    assert new.returncode == 0, new.stderr
    assert {result.details["method_version"] for result in results(folder / "layouts.h5").values()} == {2}
    (old,) = folder.glob("layouts-*.h5")
    assert len(results(old)) == 2
    both = leeward_here("merge", old, "layouts.h5", "-o", "m.h5", cwd=folder)
    assert both.returncode == 3
    assert "method version 2 (their fingerprints differ)" in both.stderr
    assert leeward_here("merge", old, "layouts.h5", "-o", "m.h5", "--prefer", "newest", cwd=folder).returncode == 0


def test_old_results_that_only_the_output_holds_are_not_mixed_either(folder, upgrade):
    assert leeward_here("clean", "layouts.run", "--merged", cwd=folder).returncode == 0
    upgrade(2)
    assert refused(leeward_here(*RUN, cwd=folder))
    assert len(results(folder / "layouts.h5")) == 2


def test_other_settings_and_another_version(folder, upgrade):
    assert leeward_here(*RUN, "--new", cwd=folder).returncode == 0  # these state their version
    make_campaign(folder, seeds=2, spacing_m=650, execution=INLINE)
    upgrade(2)
    done = leeward_here(*RUN, cwd=folder)
    assert done.returncode == 2
    assert "made with other settings" in done.stderr
    assert "method_version: 2, was 1" in done.stderr


@pytest.mark.slow
def test_adopted_results_have_an_aep_of_one_version_too(folder, upgrade):
    upgrade(2)
    done = leeward_here(*RUN, "-o", "b.h5", "--adopt", "layouts.h5", cwd=folder)
    assert done.returncode == 0, done.stderr
    (adopted,) = [line for line in audit(folder / "b.run") if line["event"] == "adopted"]
    assert len(adopted["disagreeing"]) == 2
    assert {result.details["method_version"] for result in results(folder / "b.h5").values()} == {2}
    upgrade(3)
    again = leeward_here(*RUN, "-o", "b.h5", cwd=folder)
    assert again.returncode == 2
    assert "method version 2, but this is" in again.stderr
    checked = leeward_here("check", "b.run", "--complete", "--deep", cwd=folder)
    assert checked.returncode == 0, checked.stdout
    assert "method version 2, and compared under that version" in checked.stdout


@pytest.mark.slow
def test_an_upgrade_between_processes(folder):
    """The same in processes of their own: nothing is left over from the old version."""
    new = "import leeward.campaign.fingerprint as module; module.METHOD_VERSION = 2; "
    assert refused(leeward_process(*RUN, cwd=folder, before=new))
    checked = leeward_process("check", "layouts.run", "--deep", cwd=folder, before=new)
    assert checked.returncode == 0, checked.stdout
    assert OLD in checked.stdout
