"""Studies in `watch`: the kind of a place, and the snapshot of a study."""

import numpy as np
import pytest

from foreign_files import own_result
from leeward.store import Evaluation, EvaluationKey, RunPaths, merge_run, store_result
from leeward.watch import kind_of


def evaluation(target=0, scenario=0, **options):
    """An evaluation of two cases; later scenarios lose more."""
    aep = np.array([90.0 - scenario, 95.0])
    details = {"target": f"alone:farm{target}_t5_s0", "scenario": f"sample {scenario}"}
    return Evaluation(
        EvaluationKey(target, scenario), ("all", "internal"), aep, 100.0, "f" * 64, details=details, **options
    )


@pytest.fixture
def paths(tmp_path):
    paths = RunPaths(tmp_path / "study.h5")
    for scenario in range(3):
        store_result(paths, evaluation(scenario=scenario))
    return paths


def test_kind_of_a_run_directory(paths):
    assert kind_of(paths.root) == kind_of(paths.output) == "evaluations"  # from the names of the shards
    paths.campaign.write_text("# written by leeward\nname: x\nfarms: 2\n" + "#" * 2000 + "\nkind: evaluations\n")
    assert kind_of(paths.root) == "layouts"  # the campaign counts, and only its start
    paths.campaign.write_text("# written by leeward\nkind: evaluations\nname: x\n")
    assert kind_of(paths.root) == "evaluations"


def test_kind_of_a_file(paths, tmp_path):
    merge_run(paths, {})
    alone = paths.output.rename(tmp_path / "alone.h5")
    assert kind_of(alone) == "evaluations"  # from its attributes
    layouts = RunPaths(tmp_path / "layouts.h5")
    store_result(layouts, own_result())
    assert kind_of(layouts.root) == "layouts"
    merge_run(layouts, {})
    assert kind_of(layouts.output.rename(tmp_path / "lone.h5")) == "layouts"
    assert kind_of(tmp_path / "nothing.h5") == kind_of(tmp_path) == "layouts"
