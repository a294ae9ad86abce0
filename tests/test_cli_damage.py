"""The commands about stored results, where small files are damaged, names impossible, or streams closed."""

import json
import subprocess
import sys

import pytest

from foreign_files import own_result
from leeward import cli
from leeward.campaign import load
from leeward.store.directory.records import begin_attempt, record_failure
from leeward.store.directory.shards import store_result
from leeward.store.format.keys import Key
from leeward.store.paths import RunPaths
from leeward.watch import absent_tasks, snapshot
from run_cases import LEEWARD, PATIENCE_S, make_campaign

BINARY = bytes(range(256))
TOO_LONG = "x" * 300


@pytest.fixture
def inside(monkeypatch, capsys, tmp_path):
    """The command line within this process, in the folder of the run: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["leeward", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture
def paths(tmp_path):
    """A run directory with two of three results."""
    campaign = load(make_campaign(tmp_path, seeds=3))
    paths = RunPaths(tmp_path / "layouts.h5")
    for folder in paths.folders():
        folder.mkdir(parents=True)
    paths.campaign.write_text(campaign.frozen_text())
    for seed in range(2):
        store_result(paths, own_result(0, 0, seed, turbines=3))
    return paths


# --- campaign.yaml ---------------------------------------------------------------------------------------------------

DAMAGED = {"binary": BINARY, "text with control characters": b"\0\1\2", "no YAML": b"farms: [", "empty": b""}
TYPICAL = ("binary", "no YAML")  # the others are slow tests where each one costs a second


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize(
    "arguments",
    [("check", "layouts.run", "--complete"), ("check", "layouts.run", "--deep"), ("missing", "layouts.run")],
)
def test_a_damaged_campaign_is_one_line(paths, inside, arguments, content):
    paths.campaign.write_bytes(content)
    code, out, err = inside(*arguments)
    assert (code in (1, 2), out) == (True, "")
    assert "layouts.run/campaign.yaml" in err


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(content, id=name, marks=() if name in TYPICAL else pytest.mark.slow)
        for name, content in DAMAGED.items()
    ],
)
def test_good_shards_are_merged_and_counted_whatever_the_campaign(paths, inside, content):
    paths.campaign.write_bytes(content)
    code, out, _ = inside("merge", "layouts.run", "-o", "m.h5")
    assert code == 0
    assert "m.h5: 2 results" in out
    assert "note: not compared with a campaign: layouts.run/campaign.yaml" in out
    assert "campaign.yaml" in next(paths.root.parent.glob("merge_log_*.txt")).read_text().partition("Files (")[0]
    assert "2 layouts; the expected number is not known" in inside("status")[1]


def test_a_folder_in_the_place_of_the_campaign(paths, inside):
    paths.campaign.unlink()
    paths.campaign.mkdir()
    assert inside("merge", "layouts.run", "-o", "m.h5")[0] == 0
    code, _, err = inside("missing", "layouts.run")
    assert (code, "is a folder" in err) == (1, True)


# --- failures and workers --------------------------------------------------------------------------------------------


def failure(paths, **changes):
    """A record as a run writes it, with some of it replaced."""
    key = Key(0, 0, 2)
    begin_attempt(paths, key, "f" * 64, "w", "node")
    facts = {"kind": "exception", "message": "ValueError", "traceback": "Traceback", "worker": "w", "host": "node"}
    record_failure(paths, key, final=True, died=False, seconds=3.0, **facts)
    content = json.loads(paths.failure(key).read_text())
    for name, value in changes.items():
        (content if name in content else content["failure"])[name] = value
    paths.failure(key).write_text(json.dumps(content))


@pytest.mark.parametrize(
    "changes",
    [
        {"attempts": 5},
        {"attempts": ["x"], "failure": None, "deaths": 9},
        {"deaths": "many"},
        {"seconds": "long"},
        {"failure": [1]},
    ],
)
def test_a_record_of_wrong_types_is_counted_as_unreadable(paths, inside, changes):
    failure(paths, **changes)
    seen = snapshot(paths.root)
    assert any("1 failure record(s) cannot be read" in note for note in seen.notes)
    assert inside("status")[0] == 3
    assert len(absent_tasks(paths.root).tasks) == 1


@pytest.mark.parametrize("changes", [{"message": 5}, {"worker": None}, {"key": 7}, {"message": ["a", "b"]}])
def test_odd_words_in_a_record_are_shown(paths, inside, changes):
    failure(paths, **changes)
    code, out, _ = inside("status")
    assert code == 3
    assert "1 task failed" in out


def test_folders_among_records_and_heartbeats(paths, inside):
    paths.failure(Key(0, 0, 2)).mkdir()
    (paths.workers / "w1.json").mkdir()
    code, out, _ = inside("status")
    assert code == 3
    assert "1 failure record(s) cannot be read" in out
    assert inside("missing", "layouts.run")[0] == 3


@pytest.mark.parametrize("beat", [b"[1, 2]", b'{"worker": "w", "time": "soon"}', b"\xff\xfe", b"7"])
def test_heartbeats_of_wrong_types(paths, inside, beat):
    (paths.workers / "w1.json").write_bytes(beat)
    assert inside("status")[0] == 3


# --- names and streams -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", TOO_LONG),
        ("status", "y" * 252 + ".h5"),  # whose run directory would have too long a name
        ("missing", TOO_LONG + ".run"),
        ("missing", "layouts.run", "--campaign", TOO_LONG),
        ("missing", "layouts.run", "--csv", TOO_LONG),
        ("show", "farm0_t0_s0", TOO_LONG + ".h5"),
        ("merge", TOO_LONG, "-o", "m.h5"),
        ("merge", "layouts.run", "-o", TOO_LONG + ".h5"),
        ("check", TOO_LONG),
        ("check", TOO_LONG + ".run", "--complete"),
        ("new", TOO_LONG),
        ("clean", TOO_LONG + ".run"),
        ("clean", TOO_LONG),
    ],
)
def test_names_that_are_too_long(paths, inside, arguments):
    code, out, err = inside(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "too long" in err


OPTIMISE = "optimise --turbines 2 --recipe random"
CODES = {"status": 3, "missing layouts.run --csv -": 3, "check layouts.run": 3, "show farm0_t0_s0 --csv -": 0}
CODES[OPTIMISE] = 0
CLOSED = {"status": ">&-", "missing layouts.run --csv -": "2>&-", "show farm0_t0_s0 --csv -": ">&- 2>&-"}
CLOSED[OPTIMISE] = "2>&-"


@pytest.mark.parametrize(
    ("closed", "arguments", "code"),
    [
        pytest.param(closed, arguments, code, marks=() if CLOSED.get(arguments) == closed else pytest.mark.slow)
        for closed in (">&-", "2>&-", ">&- 2>&-")
        for arguments, code in CODES.items()
    ],
)
def test_closed_streams(paths, tmp_path, closed, arguments, code):
    script = f'"$@" {arguments} {closed}'
    ended = subprocess.run(
        ["sh", "-c", script, "sh", *LEEWARD],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == code, ended
    assert "Traceback" not in ended.stdout + ended.stderr
