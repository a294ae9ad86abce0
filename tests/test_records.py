"""Attempts, failures, the audit log, the selection of tasks and the number of cores."""

import json

import pytest

from leeward.campaign.selection import read_keys
from leeward.errors import InputError, StorageError
from leeward.processes import _container_limits, usable_cores
from leeward.store.directory.audit import Audit, read_lines
from leeward.store.directory.records import (
    BadRecordError,
    begin_attempt,
    read_record,
    record_failure,
    remove_record,
    withdraw_attempt,
)
from leeward.store.format.keys import Key
from leeward.store.paths import RunPaths

KEY = Key(0, 5, 3)
FAILURE = {"kind": "died", "message": "SIGKILL", "traceback": "", "worker": "w", "host": "h", "seconds": 1.0}


@pytest.fixture
def paths(tmp_path):
    paths = RunPaths(tmp_path / "layouts.h5")
    for folder in paths.folders():
        folder.mkdir(parents=True)
    return paths


def test_attempts_are_counted_until_there_is_no_hope(paths):
    for count in (1, 2, 3):
        begin_attempt(paths, KEY, "f", f"w{count}", "h")
        record = record_failure(paths, KEY, final=False, died=True, **FAILURE)
        assert (len(record.attempts), record.deaths) == (count, count)
        assert record.has_failed(2) is (count == 3)
    assert read_record(paths.failure(KEY)) == record
    remove_record(paths, KEY)
    assert read_record(paths.failure(KEY)) is None
    remove_record(paths, KEY)


def test_being_cut_off_is_not_dying(paths):
    for i in range(10):
        record = begin_attempt(paths, KEY, "f", f"w{i}", "h")
    assert len(record.attempts) - record.deaths == 10
    assert not record.has_failed(2)
    assert begin_attempt(paths, KEY, "f", "w", "h").has_failed(2)


def test_what_is_recorded_twice_counts_once(paths):
    """As when a disk took the record, and would not sync it."""
    for _ in range(2):
        record = begin_attempt(paths, KEY, "f", "w", "h")
    assert len(record.attempts) == 1
    for _ in range(2):
        record = record_failure(paths, KEY, final=False, died=True, **FAILURE)
    assert (len(record.attempts), record.deaths) == (1, 1)


def test_an_attempt_that_somebody_ended_does_not_count(paths):
    begin_attempt(paths, KEY, "f", "w", "h")
    withdraw_attempt(paths, KEY)
    assert read_record(paths.failure(KEY)) is None
    begin_attempt(paths, KEY, "f", "w", "h")
    record_failure(paths, KEY, final=False, died=True, **FAILURE)
    begin_attempt(paths, KEY, "f", "w", "h")
    withdraw_attempt(paths, KEY)
    record = read_record(paths.failure(KEY))
    assert (len(record.attempts), record.deaths, record.failure.message) == (1, 1, "SIGKILL")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"failure": 1}', '{"failure": {"a": 1}}'])
def test_a_damaged_record_is_not_taken_for_none(paths, content):
    paths.failure(KEY).write_text(content)
    with pytest.raises(BadRecordError, match="cannot be read"):
        read_record(paths.failure(KEY))


def test_the_audit_log_survives_a_torn_line(paths):
    audit = Audit(paths.audit)
    audit.record("one", number=1)
    with paths.audit.open("a") as file:
        file.write('{"event": "to')
    audit.record("two")
    assert [line["event"] for line in read_lines(paths.audit)] == ["one", "two"]
    assert paths.audit.read_text().endswith("}\n")


def test_nobody_but_the_owner_writes_the_audit_log(paths):
    def guard():
        raise StorageError("not yours")

    with pytest.raises(StorageError, match="not yours"):
        Audit(paths.audit, guard).record("one")
    assert not paths.audit.exists()


def test_keys_from_files(tmp_path):
    path = tmp_path / "missing.csv"
    path.write_text("key,farm_idx,type_idx,seed,reason\nfarm0_t5_s3,0,5,3,\nfarm1_t0_s0,1,0,0,failed\n")
    keys = [Key(0, 5, 3), Key(1, 0, 0)]
    assert read_keys(path, Key.parse) == keys
    path.write_text("farm0_t5_s3\nfarm1_t0_s0\n")
    assert read_keys(path, Key.parse) == keys
    path.write_text(json.dumps([str(key) for key in keys]))
    assert read_keys(path, Key.parse) == keys
    path.write_text(json.dumps({"missing": [{"key": str(key)} for key in keys]}))
    assert read_keys(path, Key.parse) == keys
    for content in ("key\nfarm0\n", "{", '{"a": 1}'):
        path.write_text(content)
        with pytest.raises(InputError, match=r"missing\.csv"):
            read_keys(path, Key.parse)
    with pytest.raises(InputError, match="cannot be read"):
        read_keys(tmp_path / "nowhere.csv", Key.parse)


@pytest.mark.parametrize("text", ["farm0_t5", "farm0_t5_s03", "farm-1_t0_s0", "farm0_t0_s0/../x", "", "farm٣_t0_s0"])
def test_what_is_no_key(text):
    with pytest.raises(InputError, match="is not a key"):
        Key.parse(text)


def test_cores_within_a_container(tmp_path, monkeypatch):
    own, root = tmp_path / "own", tmp_path / "groups"
    own.write_text("0::/a/b\n")
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "cpu.max").write_text("max 100000\n")
    assert _container_limits(root, own) == []
    (root / "a" / "cpu.max").write_text("250000 100000\n")
    assert _container_limits(root, own) == [2.5]
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    assert usable_cores() == 1
    monkeypatch.delenv("SLURM_CPUS_PER_TASK")
    assert usable_cores() >= 1
