"""Fixtures that test modules share by naming this one in `pytest_plugins`: one of each for a whole session."""

import pytest

from cluster_cases import DaskCluster
from run_cases import digests, leeward, make_campaign


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Two Dask workers for all tests that do no harm to them."""
    with DaskCluster(tmp_path_factory.mktemp("cluster") / "dask", workers=2) as shared:
        yield shared


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The digests of six tasks, computed one after the other, with nobody else involved."""
    folder = tmp_path_factory.mktemp("undisturbed")
    make_campaign(folder, seeds=6)
    done = leeward("run", "campaign.yaml", "--engine", "inline", cwd=folder)
    assert done.returncode == 0, done.stderr
    return digests(folder / "layouts.h5")
