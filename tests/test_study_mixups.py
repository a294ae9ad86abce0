"""Campaigns and studies that are taken for each other: refused before anything is written."""

import shutil

import pytest
import yaml

import leeward
from leeward.errors import BadSourceError, InputError
from run_cases import digests, leeward_here
from small_studies import study_data, write_campaign, write_study


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a small campaign and a small study, both computed, that nobody changes."""
    folder = tmp_path_factory.mktemp("both")
    path = write_study(folder, 3)
    campaign = yaml.safe_load(write_campaign(folder).read_text())
    campaign |= {"seeds": 1, "optimiser": {"recipe": "random"}, "execution": {"engine": "inline"}}
    (folder / "campaign.yaml").write_text(yaml.safe_dump(campaign))
    leeward.run(folder / "campaign.yaml", folder / "layouts.h5", only="farm=0")
    leeward.evaluate(path, folder / "study.h5")
    return folder


@pytest.fixture
def both(made, tmp_path):
    return shutil.copytree(made, tmp_path / "both")


def refused(folder, *words, message, code=2):
    done = leeward_here(*words, cwd=folder)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert message in done.stderr, done.stderr


@pytest.mark.slow
def test_a_run_is_not_overwritten_by_the_other_kind(both):
    before = {path: path.read_bytes() for path in both.rglob("*.run/campaign.yaml")}
    message = "layouts.run: holds layouts, but this run makes evaluations; choose another output with -o"
    refused(both, "evaluate", "study.yaml", "-o", "layouts.h5", message=message)
    message = "study.run: holds evaluations, but this run makes layouts"
    refused(both, "run", "campaign.yaml", "-o", "study.h5", message=message)
    assert {path: path.read_bytes() for path in both.rglob("*.run/campaign.yaml")} == before
    assert leeward_here("evaluate", "study.yaml", cwd=both).returncode == 0
    shutil.rmtree(both / "layouts.run")
    with pytest.raises(BadSourceError, match=r"holds 2 results that are not part of this run.*Choose another output"):
        leeward.evaluate(both / "study.yaml", both / "layouts.h5")


def test_files_of_the_other_kind(made):
    refused(made, "run", "study.yaml", message="is a study, not a campaign; evaluate it with `leeward evaluate")
    refused(made, "evaluate", "campaign.yaml", message="is a campaign, not a study; compute it with `leeward run")
    refused(made, "evaluate", "study.h5", message="is a file of results; expected a study file (YAML)")
    with pytest.raises(InputError, match="holds layouts, not evaluations"):
        leeward.open_study(made / "layouts.h5")


@pytest.mark.parametrize(
    "words",
    [
        ["report", "-o", "a.html"],
        ["serve", "--port", "0"],
        ["missing"],
        ["check"],
        ["merge", "-o", "a.h5"],
        ["export", "-o", "a.csv"],
    ],
)
def test_a_campaign_of_the_other_kind(made, words):
    name, *rest = words
    refused(made, name, "study.h5", "--campaign", "campaign.yaml", *rest, message="is a")
    if name != "export":
        refused(
            made, name, "layouts.h5", "--campaign", "study.yaml", *rest, message="layouts.h5 holds layouts; give the"
        )


def test_commands_of_studies_find_the_study_beside_the_layouts(made):
    assert "1 layout, 3 scenarios" in leeward_here("compare", cwd=made).stdout
    assert "target0_scenario1  in study" in leeward_here("show", "target0_scenario1", cwd=made).stdout
    refused(made, "status", message="the current folder has 2 runs; name one of layouts.run, study.run")


def test_a_merged_study_without_its_run_directory_is_continued(both):
    expected = digests(both / "study.h5")
    shutil.rmtree(both / "study.run")
    write_study(both, 4)
    report = leeward.evaluate(both / "study.yaml", both / "study.h5")
    assert (report.computed, report.done) == (1, 4)
    assert expected.items() <= digests(both / "study.h5").items()


def test_changed_settings_are_named_once(both):
    path = both / "study.yaml"
    changed = yaml.safe_load(path.read_text())
    changed["wind"]["turbulence_intensity"] = 0.08
    changed["cases"] = ["all"]
    path.write_text(yaml.safe_dump(changed))
    with pytest.raises(InputError) as error:
        leeward.evaluate(path, both / "study.h5")
    lines = str(error.value).splitlines()
    assert "  wind: other turbulence_intensity of wind (40 steps, was 40) (3 of 3 tasks compared)" in lines
    assert "  cases: ['all'], was ['all', 'external', 'internal'] (3 of 3 tasks compared)" in lines


def test_a_batch_file_for_a_study(tmp_path):
    write_study(tmp_path)
    done = leeward_here("slurm-script", "study.yaml", "--cores", 4, cwd=tmp_path)
    assert " evaluate study.yaml -o study.h5 --engine local --workers 4 --take-over" in done.stdout
    refused(tmp_path, "slurm-script", "study.yaml", "--seeds", 3, message="a study has no seeds")


@pytest.mark.slow
def test_a_zarr_folder_is_replaced(made, tmp_path):
    pytest.importorskip("zarr")
    for _ in range(2):
        done = leeward_here("export", made / "study.h5", "-o", tmp_path / "a.zarr", "--key", "0,1", cwd=made)
        assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "folder.zarr").mkdir()
    refused(made, "export", "study.h5", "-o", tmp_path / "folder.zarr", message="is not a Zarr folder")


def test_a_dict_of_a_frozen_study_is_refused(tmp_path):
    with pytest.raises(InputError, match="packed"):
        leeward.evaluate(study_data(tmp_path) | {"packed": ""})
