"""Whole runs, in one process: from nothing, with results of other origin, and in the place of another."""

import time
from pathlib import Path

import numpy as np
import yaml
from interception import ERRORS, KILLS, Fault
from operation import Act, Operation, run_paths, seeds

from foreign_files import write_foreign_file
from leeward.errors import InputError
from leeward.store.directory.results import RunFiles, read_results
from leeward.store.format.found import FoundResult
from run_cases import calls as recipe_calls, leeward as leeward_command, make_campaign
from small_studies import write_study

FAILURES = (*ERRORS, "short", "full")
SEEDS = range(3)
INLINE = {"engine": "inline"}
ADOPTED = (0, 1)
OTHER_SPACING_M = 650.0  # of the run whose place another one takes


def with_campaign(folder: Path) -> None:
    make_campaign(folder, seeds=len(SEEDS), execution=INLINE)


def leeward_run(folder: Path, **options) -> None:
    """In this process, with little patience for the disk."""
    import leeward
    from leeward.engines import worker
    from leeward.runs import disk

    disk.TRY_AGAIN_S = 0.01
    worker.PAUSES_S = (0.01,)
    report = leeward.run(folder / "campaign.yaml", folder / "layouts.h5", storage_wait_s=0, **options)
    assert report.is_complete, report


def run_elsewhere(folder: Path) -> None:
    """In a process of its own: a process imports a recipe of one name only once."""
    done = leeward_command("run", "campaign.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr


def _run(folder: Path, fault: Fault | None) -> Act:
    def act(turn: str) -> None:
        before = {seed: recipe_calls(folder).count(seed) for seed in _stored_seeds(folder)}
        leeward_run(folder)
        now = recipe_calls(folder)
        again = [seed for seed, count in before.items() if now.count(seed) != count]
        assert not again, f"computed again after they had been stored: seeds {again}"

    return act


def _stored_seeds(folder: Path) -> set[int]:
    """In files of their own, and in packs."""
    paths = run_paths(folder)
    if not paths.packs.exists():
        return seeds(paths)
    return {found.key.seed for found in read_results(RunFiles(paths)) if isinstance(found, FoundResult)}


def is_run(folder: Path) -> None:
    _is_run_despite_errors(folder)
    assert not list(run_paths(folder).workers.glob("*.json"))


def _is_run_despite_errors(folder: Path) -> None:
    """One heartbeat may be left, if the call that was to remove it failed: the next run removes it."""
    assert _stored_seeds(folder) == set(SEEDS)
    assert not list(run_paths(folder).failures.glob("*.json"))
    assert len(list(run_paths(folder).workers.glob("*.json"))) <= 1


def _with_worker_files(folder: Path) -> None:
    """Two layouts that another script made for this campaign, and a file without any."""
    with_campaign(folder)
    source = folder / "worker_files"
    source.mkdir()
    for seed in ADOPTED:
        layout = np.array([[500.0, 2500.0, 4500.0], [1000.0, 2000.0 + 100.0 * seed, 3000.0]])
        facts = {"turbines": 3, "layout": layout, "aep": 90.0 + seed, "diameter": 195.0}
        write_foreign_file(source / f"worker_{seed}.h5", [(0, 0, seed)], **facts)
    (source / "worker_9.h5").touch()


def _run_and_adopt(folder: Path, fault: Fault | None) -> Act:
    return lambda turn: leeward_run(folder, adopt=folder / "worker_files")


def _is_run_and_adopted(folder: Path) -> None:
    """Only what was not to be had elsewhere was computed; the sources stay."""
    _is_run_despite_errors(folder)
    assert set(recipe_calls(folder)) == set(SEEDS) - set(ADOPTED), recipe_calls(folder)
    assert len(list((folder / "worker_files").iterdir())) == 3


def _with_other_run(folder: Path) -> None:
    """A run that is complete, and then other settings."""
    make_campaign(folder, seeds=2, spacing_m=OTHER_SPACING_M, execution=INLINE)
    run_elsewhere(folder)
    with_campaign(folder)


def _run_anew(folder: Path, fault: Fault | None) -> Act:
    """Run anew. An old run is kept under a name with the second in it: in the same second the command asks to retry."""

    def act(turn: str) -> None:
        try:
            leeward_run(folder, new=True)
        except InputError as error:
            if "try again" not in str(error):
                raise
            time.sleep(1.1)
            leeward_run(folder, new=True)

    return act


def _is_run_anew(folder: Path) -> None:
    """The other run is kept; so may be a new one that was killed."""
    _is_run_despite_errors(folder)
    kept = [path for path in folder.glob("layouts-*.run") if (path / "campaign.yaml").exists()]
    old = [path for path in kept if _spacing_m(path / "campaign.yaml") == OTHER_SPACING_M]
    assert len(old) == 1, list(folder.iterdir())
    assert len(list(old[0].glob("results/*/*.h5"))) == 2


def _spacing_m(campaign: Path) -> float:
    return float(yaml.safe_load(campaign.read_text())["spacing_m"])


def _with_packing(folder: Path) -> None:
    make_campaign(folder, seeds=len(SEEDS), execution={**INLINE, "loose_results": 1})


def _is_run_and_packed(folder: Path) -> None:
    """All of them, and few in files of their own."""
    paths = run_paths(folder)
    found = [one for one in read_results(RunFiles(paths)) if isinstance(one, FoundResult)]
    assert {one.key.seed for one in found} == set(SEEDS)
    assert len(found) == len(SEEDS)
    assert not list(paths.failures.glob("*.json"))


def _with_study(folder: Path) -> None:
    write_study(folder, len(SEEDS))


def _evaluate(folder: Path, fault: Fault | None) -> Act:
    def act(turn: str) -> None:
        import leeward
        from leeward.engines import worker
        from leeward.runs import disk

        disk.TRY_AGAIN_S = 0.01
        worker.PAUSES_S = (0.01,)
        before = _inodes(folder)
        report = leeward.evaluate(folder / "study.yaml", folder / "layouts.h5", storage_wait_s=0)
        assert report.is_complete, report
        now = _inodes(folder)
        again = [path.name for path, inode in before.items() if now.get(path) != inode]
        assert not again, f"computed again after they had been stored: {again}"

    return act


def _inodes(folder: Path) -> dict[Path, int]:
    """Of valid results: a result that is computed again is a new file."""
    found = read_results(RunFiles(run_paths(folder))) if run_paths(folder).results.exists() else ()
    return {one.path: one.path.stat().st_ino for one in found if isinstance(one, FoundResult)}


def _is_evaluated(folder: Path) -> None:
    paths = run_paths(folder)
    found = [one for one in read_results(RunFiles(paths)) if isinstance(one, FoundResult)]
    assert {str(one.key) for one in found} == {f"target0_scenario{number}" for number in SEEDS}
    assert not list(paths.failures.glob("*.json"))


RUNS = {
    "run": Operation(with_campaign, _run, is_run, modes=KILLS, every=4, sample=2),
    "run, calls fail": Operation(with_campaign, _run, _is_run_despite_errors, modes=FAILURES, every=3, sample=2),
    "run, packing": Operation(_with_packing, _run, _is_run_and_packed, every=4, sample=2),
    "run --adopt": Operation(_with_worker_files, _run_and_adopt, _is_run_and_adopted, every=5, sample=2),
    "evaluate": Operation(_with_study, _evaluate, _is_evaluated, modes=KILLS, every=4, sample=2),
    "evaluate, calls fail": Operation(_with_study, _evaluate, _is_evaluated, modes=FAILURES, every=3, sample=2),
    "run --new": Operation(_with_other_run, _run_anew, _is_run_anew, every=3, sample=2, keeps_output=False),
}
