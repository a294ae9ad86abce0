"""The table of records: stored layouts, table.json and docs/records.md agree, and other programs confirm them."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import shapely

from conftest import DATA
from leeward.campaign import Campaign, load
from run_cases import leeward_here

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "benchmarks"))

import record_cases  # noqa: E402
import record_files  # noqa: E402
import records  # noqa: E402
from record_cases import RecordError, all_cases, violations  # noqa: E402
from record_files import Record  # noqa: E402

CASES = all_cases()
IEA37 = [name for name in CASES if name.startswith("iea37")]
SMALL = CASES["iea37-cs1-16"]
FILES = sorted({case.record_file for case in CASES.values()})


@pytest.fixture(scope="module")
def stored():
    return record_files.stored_records(CASES)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of records, with the campaign files."""
    for path in record_cases.FOLDER.glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text())
    monkeypatch.setattr(record_cases, "FOLDER", tmp_path)
    return tmp_path


@functools.cache
def campaign_of(case_file):
    return load(case_file)


def problem_of(case):
    return campaign_of(case.campaign_file).problem(case.farm_idx, case.type_idx)


# the stored files


@pytest.mark.parametrize("name", CASES)
def test_a_stored_layout(name, stored):
    case, record = CASES[name], stored[name]
    assert len(record.x) == case.turbines
    assert violations(case, record.x, record.y) == []
    assert record.aep_mwh == pytest.approx(1e3 * problem_of(case).farm.aep_gwh(record.x, record.y), rel=1e-9)
    if name in IEA37:
        assert record.aep_mwh == pytest.approx(record_cases.formulas_mwh(case, record.x, record.y), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", IEA37)
def test_a_stored_layout_in_pywake(name, stored):
    case, record = CASES[name], stored[name]
    assert record.aep_mwh == pytest.approx(case.scorers["PyWake"](case, record.x, record.y), rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_campaigns_have_the_figures_of_the_cases(name):
    case, problem = CASES[name], problem_of(CASES[name])
    assert problem.n_turbines == case.turbines
    assert (problem.min_distances_m == case.spacing_m).all()
    if case.ring is None:
        edge = np.array([case.radius_m + 1e-3, 0.0]), np.zeros(2)
        assert problem.area.signed_distance(*edge) == pytest.approx([-1e-3, case.radius_m], abs=1e-9)
    else:
        assert problem.area.to_shapely().equals(shapely.Polygon(case.ring))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_check_deep(path):
    checked = leeward_here("check", "--deep", path, cwd=ROOT)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "No errors." in checked.stdout


def test_check_deep_computes_the_aep(folder, stored, monkeypatch):
    honest = Campaign.recompute
    with monkeypatch.context() as patch:
        patch.setattr(Campaign, "recompute", lambda *given: (honest(*given)[0] * 1.00001, *honest(*given)[1:]))
        record_files.write_records(folder / "wrong.h5", {SMALL.name: stored[SMALL.name]})
    checked = leeward_here("check", "--deep", "wrong.h5", cwd=folder)
    assert checked.returncode == 3
    assert "a relative difference of 1.0e-05" in checked.stdout


def test_files_agree(stored):
    table = record_files.read_table()
    assert list(table["cases"]) == list(CASES)
    for name, entry in table["cases"].items():
        assert entry["record"] == {"aep_mwh": stored[name].aep_mwh, "made_by": stored[name].made_by}
        assert (entry["turbines"], entry["published_mwh"]) == (CASES[name].turbines, CASES[name].published_mwh)
        assert all(figures["best_mwh"] <= stored[name].aep_mwh * (1 + 1e-9) for figures in entry["efforts"].values())
    page = record_files.PAGE.read_text()
    assert record_files.made_part(table) in page, "docs/records.md is old: make bench-records"
    pictures = record_files.pictures()
    for picture in pictures:
        assert f"(pictures/{picture})" in page
    files = [*record_cases.FOLDER.iterdir(), *(record_files.PICTURES / name for name in pictures)]
    assert sum(path.stat().st_size for path in files) < 1_000_000


def test_case_study_3_as_published():
    """The example layout is from the case study's file iea37-ex-opt3.yaml, which states this AEP too."""
    case, published = CASES["iea37-cs3"], record_cases.iea37_cs3_figures()["published_mwh"]
    x, y = records.read_layout(DATA / "iea37-cs3-example.csv")
    for aep_mwh in (record_cases.formulas_mwh(case, x, y), 1e3 * problem_of(case).farm.aep_gwh(x, y)):
        assert aep_mwh == pytest.approx(published["example_layout"], rel=1e-9)
    gross_mwh = 1e3 * problem_of(case).farm.simulate(x, y).gross_aep_gwh.sum()
    assert gross_mwh == pytest.approx(published["no_wake"], rel=1e-9)


# updates


@pytest.mark.slow
def test_only_a_better_layout_replaces_a_record(folder, stored):
    best = stored[SMALL.name]
    turned = (best.x + 1j * best.y) * np.exp(0.1j) * (1 - 1e-12)
    aep = 1e3 * problem_of(SMALL).farm.aep_gwh(turned.real, turned.imag)
    worse, better = sorted([best, Record(turned.real, turned.imag, aep, "a test", 3)], key=lambda one: one.aep_mwh)
    for candidate, replaces in ((worse, True), (worse, False), (better, True), (worse, False)):
        assert record_files.update_records({SMALL.name: candidate}) == ([SMALL.name] if replaces else [])
    kept = record_files.stored_records({SMALL.name: SMALL})[SMALL.name]
    assert (kept.x == better.x).all()
    assert (kept.y == better.y).all()
    assert (kept.made_by, kept.seed) == (better.made_by, better.seed)
    outside = Record(1.1 * best.x, 1.1 * best.y, 2 * best.aep_mwh, "a test")
    with pytest.raises(RecordError, match="outside the area"):
        record_files.update_records({SMALL.name: outside})


class Child:
    """Stands for the process that optimises: it answers with a stored layout, and counts the calls."""

    def __init__(self, record, **changes):
        self.record, self.changes, self.calls = record, changes, 0

    def __call__(self, command, **_):
        self.calls += 1
        name, effort, seed = command[-3:]
        figures = {"aep_mwh": self.record.aep_mwh, "cpu_s": 1.0, "scores": {"formulas": self.record.aep_mwh}}
        places = {"x": self.record.x.tolist(), "y": self.record.y.tolist()}
        answer = {**records.key_of(name, effort, int(seed)), **figures, **places, **self.changes}
        return subprocess.CompletedProcess(command, 0, json.dumps(answer), "")


def options_for(*arguments):
    return records.parser().parse_args(["--cases", SMALL.name, "--efforts", "fast,normal", *map(str, arguments)])


def test_resuming_skips_what_is_finished(stored, tmp_path, monkeypatch):
    child = Child(stored[SMALL.name])
    monkeypatch.setattr(records.subprocess, "run", child)
    work = "--work", tmp_path / "work"
    assert len(records.measure_all(options_for("--seeds", 2, *work))) == child.calls == 4
    results = records.measure_all(options_for("--seeds", 3, *work))
    assert child.calls == 6
    assert [(result["effort"], result["seed"]) for result in results] == [
        (effort, seed) for effort in ("fast", "normal") for seed in range(3)
    ]
    monkeypatch.setattr(records, "maker", lambda: "leeward 99, method version 99")
    records.measure_all(options_for("--seeds", 3, *work))
    assert child.calls == 12


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"x": [0.0] * 16}, "violates a constraint"),
        ({"x": [0.0]}, "1 turbines; expected 16"),
        ({"scores": {"PyWake": 1.0}}, "by PyWake; they differ"),
        ({"scores": {"PyWake": float("nan")}}, "by PyWake; they differ"),
    ],
)
def test_a_wrong_layout_stops_the_table(changes, says, stored, tmp_path, monkeypatch):
    monkeypatch.setattr(records.subprocess, "run", Child(stored[SMALL.name], **changes))
    with pytest.raises(RecordError, match=says):
        records.measure_all(options_for("--seeds", 1, "--work", tmp_path))


def test_figures():
    results = [
        {"case": "a", "effort": "fast", "aep_mwh": aep, "cpu_s": seconds}
        for aep, seconds in ((90.0, 1.0), (100.0, 9.0), (110.0, 2.0))
    ]
    expected = {"seeds": 3, "median_mwh": 100.0, "best_mwh": 110.0, "cpu_s": 2.0, "spread": 0.2}
    assert records.figures_of(results) == {"a": {"fast": expected}}


# scores


def score(path, case=SMALL.name):
    command = [sys.executable, ROOT / "benchmarks" / "records.py", "score", case, path]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def write_layout(path, x, y):
    path.write_text("x_m,y_m\n" + "".join(f"{a!r},{b!r}\n" for a, b in zip(x.tolist(), y.tolist(), strict=True)))
    return path


def test_score(stored, tmp_path):
    record = stored[SMALL.name]
    done = score(write_layout(tmp_path / "layout.csv", record.x, record.y))
    assert done.returncode == 0, done.stderr
    assert "16 turbines and satisfies all constraints" in done.stdout
    assert done.stdout.count(f"{record.aep_mwh:.3f} MWh") == 3  # leeward, the formulas, the record
    assert f"{SMALL.published_mwh:.3f} MWh, this layout {record.aep_mwh / SMALL.published_mwh - 1:+.4%}" in done.stdout


@pytest.mark.slow
def test_an_accepted_layout_is_stored(stored, folder, tmp_path, monkeypatch, capsys):
    for name in ("TABLE", "PAGE"):
        path = getattr(record_files, name)
        monkeypatch.setattr(record_files, name, tmp_path / path.name)
        (tmp_path / path.name).write_text(path.read_text())
    monkeypatch.setattr(record_files, "PICTURES", tmp_path)
    before, record = record_files.read_table(), stored[SMALL.name]
    path = write_layout(tmp_path / "layout.csv", record.x, record.y)
    options = records.parser().parse_args(["score", SMALL.name, str(path), "--accept", "A. Person, by hand"])
    for says in ("stored as the new record", "not stored: it does not beat the record"):
        records.score(options)
        assert says in capsys.readouterr().out
    entry = record_files.read_table()["cases"][SMALL.name]
    assert entry["record"] == {"aep_mwh": record.aep_mwh, "made_by": "A. Person, by hand"}
    assert entry["efforts"] == before["cases"][SMALL.name]["efforts"]
    assert "A. Person, by hand" in record_files.PAGE.read_text()
    assert (tmp_path / f"record-{SMALL.name}.png").stat().st_size < 100_000


def test_score_rejects_a_violation(stored, tmp_path):
    x, y = stored[SMALL.name].x.copy(), stored[SMALL.name].y.copy()
    x[3], y[3] = 1300.5, 0.0
    x[5], y[5] = 1300.5, 250.0
    done = score(write_layout(tmp_path / "layout.csv", x, y))
    assert done.returncode == 1
    assert "turbine 3 is 0.5 m outside the area" in done.stderr
    assert "turbines 3 and 5 are 10 m closer than 260 m" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x_m,y_m\n0,0\n500,0\n", "2 turbines; expected 16"),
        ("x_m,y_m\n0,north\n", "line 2: y_m is 'north'"),
        ("key,x_m,y_m\nfarm0_t0_s0,0,0\nfarm0_t0_s1,1,0\n", "2 layouts; expected one"),
        (None, "no such file"),
    ],
)
def test_score_rejects_a_file(text, says, tmp_path):
    path = tmp_path / "layout.csv"
    if text is not None:
        path.write_text(text)
    done = score(path)
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_score_of_an_unknown_case(tmp_path):
    done = score(tmp_path / "layout.csv", "iea37-cs9")
    assert done.returncode == 2
    assert "iea37-cs9" in done.stderr
