"""The list of skipped tests with which every run of the suite ends."""

from types import SimpleNamespace

import conftest


def summarised(*reasons):
    """Return what the terminal shows after tests were skipped for these reasons."""
    shown = []
    skipped = [SimpleNamespace(longrepr=("test_x.py", 3, f"Skipped: {reason}")) for reason in reasons]
    reporter = SimpleNamespace(stats={"skipped": skipped}, section=shown.append, write_line=shown.append)
    conftest.pytest_terminal_summary(reporter)
    return shown


def test_reasons_are_counted_and_listed_for_make(tmp_path, monkeypatch):
    listed = tmp_path / "skipped.txt"
    monkeypatch.setenv("LEEWARD_SKIPPED", str(listed))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    lines = "    2  no SLURM here\n    1  needs root"
    assert summarised("needs root", "no SLURM here", "no SLURM here") == ["skipped", lines]
    assert summarised() == []
    assert listed.read_text() == lines + "\n"


def test_a_worker_of_xdist_leaves_the_list_to_the_main_process(tmp_path, monkeypatch):
    monkeypatch.setenv("LEEWARD_SKIPPED", str(tmp_path / "skipped.txt"))
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    summarised("needs root")
    assert not list(tmp_path.iterdir())
