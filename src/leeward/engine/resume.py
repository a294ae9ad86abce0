"""What a run directory holds when a run begins: verified results, bad files, records; and does it fit the campaign?"""

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leeward.campaign import Campaign
from leeward.errors import BadSourceError, InputError, LeewardError, StorageError
from leeward.files import TEMPORARY, replace_file
from leeward.store.found import FoundFile
from leeward.store.index import encode_line, index_line
from leeward.store.keys import Key
from leeward.store.paths import RunPaths, key_of_shard
from leeward.store.quarantine import quarantine
from leeward.store.reader import read_files
from leeward.store.records import BadRecordError, Record, forget, read_record
from leeward.store.schema import OWN, Result
from leeward.store.shard import store_result
from leeward.store.shards import BadShard, ShardPaths, read_shards
from leeward.store.verdicts import Verdict

MOST_LISTED = 12
LEFT_BEHIND_S = 3600.0  # nobody takes so long for writing a file


@dataclass
class Stored:
    """lines: what the index says of each verified result, by key. bad: files that are none, with verdict and reason."""

    lines: dict[Key, dict[str, Any]] = field(default_factory=dict)
    bad: list[BadShard] = field(default_factory=list)


def read_stored(paths: RunPaths, shards: Sequence[Path] | None = None, processes: int = 1) -> Stored:
    """Read every shard, or these, in child processes."""
    stored = Stored()
    for found in read_shards(ShardPaths(paths) if shards is None else shards, processes=processes):
        if isinstance(found, BadShard):
            stored.bad.append(found)
        elif found.key is not None:
            stored.lines[found.key] = index_line(found)
    return stored


def tidy(paths: RunPaths) -> None:
    """Remove what killed processes left behind: heartbeats, and files that they were writing."""
    long_ago = time.time() - LEFT_BEHIND_S
    try:
        for path in paths.workers.iterdir():
            path.unlink(missing_ok=True)  # a worker that lives on writes it anew
        for path in (
            *paths.root.rglob(f".*{TEMPORARY}"),
            *paths.output.parent.glob(f".{paths.output.name}.*{TEMPORARY}"),
        ):
            if path.lstat().st_mtime < long_ago:
                path.unlink()
    except FileNotFoundError:  # its writer was not gone after all
        return
    except OSError as error:
        raise StorageError(f"{paths.root}: cannot be tidied ({error})") from error


def read_records(paths: RunPaths, record: Callable[..., None]) -> dict[Key, Record]:
    """Attempts and failures of tasks; a record that cannot be read goes to quarantine, and its task starts anew."""
    records = {}
    for path in sorted(paths.failures.glob("*.json")):
        try:
            key = key_of_shard(path.with_suffix(".h5"))
            found = read_record(path)
        except (BadRecordError, InputError) as error:
            quarantine(paths, path, Verdict.UNREADABLE, str(error), record)
            continue
        if found is not None:
            records[key] = found
    return records


def write_index(paths: RunPaths, known: Mapping[Key, dict[str, Any]]) -> None:
    """The cache anew, from what was verified."""
    try:
        lines = (encode_line(line) for line in known.values())
        replace_file(paths.index, b"".join(lines), durable=False)
    except OSError as error:
        raise StorageError(f"{paths.index}: cannot be written ({error})") from error


def refuse_changed(campaign: Campaign, paths: RunPaths, stored: Stored) -> None:
    """Refuse to go on where results were made with other settings: they never mix silently."""
    changed = []
    for key, line in stored.lines.items():
        if key in campaign and line["origin"] == OWN:
            expected = campaign.fingerprint(key.farm_idx, key.type_idx)
            if line["fingerprint"] != expected:
                changed.append(key)
    if not changed:
        return
    listed = _differences(campaign, paths, changed)
    raise InputError(
        f"{paths.root}: {len(changed)} of its results were made with other settings, {min(changed)} for one:\n  "
        + "\n  ".join(listed)
        + "\nexpected the same settings; otherwise choose another output with -o, or start anew with --new, which "
        "keeps the old results under another name"
    )


def _differences(campaign: Campaign, paths: RunPaths, changed: list[Key]) -> list[str]:
    """Which settings differ, with the farms and types that each concerns."""
    unknown = ["the fingerprint differs; with which settings they were made is not known any more"]
    try:
        before = Campaign.from_text(paths.campaign.read_text(encoding="utf-8"), str(paths.campaign))
    except FileNotFoundError:
        return unknown
    pairs = sorted({(key.farm_idx, key.type_idx) for key in changed})
    found: dict[str, list[str]] = {}
    for farm, kind in pairs:
        if farm in before.farms and kind in before.types:
            for difference in campaign.differences(before, farm, kind):
                found.setdefault(difference, []).append(f"farm {farm} type {kind}")
    lines = []
    for difference, where in found.items():
        concerned = "" if len(where) == len(pairs) else f" ({', '.join(where[:3])}{', ...' if len(where) > 3 else ''})"
        lines.append(difference + concerned)
    return (lines[:MOST_LISTED] + (["..."] if len(lines) > MOST_LISTED else [])) or unknown


def freeze(campaign: Campaign, paths: RunPaths, record: Callable[..., None]) -> None:
    """Keep the campaign in the run directory; a grown or shrunk one replaces the old, which is in the audit log."""
    text = campaign.frozen_text()
    try:
        old = paths.campaign.read_text(encoding="utf-8") if paths.campaign.exists() else None
        if old == text:
            return
        if old is not None:
            record("campaign-replaced", old_campaign=old)
        replace_file(paths.campaign, text.encode())
    except OSError as error:
        raise StorageError(f"{paths.campaign}: cannot be written ({error})") from error


def take_back(campaign: Campaign, paths: RunPaths, stored: Stored, write: Callable[[Callable[[], Any]], Any]) -> int:
    """Results of an existing output that are not in the run directory: this run's own become shards again.

    That happens after `leeward clean --merged`. Any others would be lost with the output: that is an error.
    """
    if not paths.output.exists():
        return 0
    others: list[str] = []
    restored = 0
    for found in read_files([paths.output], contents=True):
        if isinstance(found, FoundFile):
            if not found.is_valid and not others:
                _refuse_damaged(paths, found)
            continue
        if not found.is_valid or found.result is None or found.key is None or found.key in stored.lines:
            continue
        if is_own(campaign, paths, found.result):
            write(functools.partial(store_result, paths, found.result))
            stored.lines[found.key] = index_line(found)
            restored += 1
        else:
            others.append(found.name)
    if others:
        raise BadSourceError(
            f"{paths.output}: it holds {len(others)} result(s) that this run would not have, "
            f"{', '.join(others[:5])}{', ...' if len(others) > 5 else ''}; it is not overwritten. To bring them into "
            f"this run: --adopt {paths.output}; to leave it alone: another output with -o"
        )
    return restored


def is_own(campaign: Campaign, paths: RunPaths, result: Result) -> bool:
    """Whether a result in the output came from this run directory."""
    if not paths.campaign.exists() or result.key not in campaign:
        return False
    if result.origin != OWN:
        return True  # adopted before: only what was checked gets a seal
    return result.fingerprint == campaign.fingerprint(result.key.farm_idx, result.key.type_idx)


def _refuse_damaged(paths: RunPaths, found: FoundFile) -> None:
    if found.bad == 0 and found.verdict is Verdict.VALID:
        return
    if not any(paths.shards()):
        raise BadSourceError(
            f"{paths.output}: is there, and is damaged or no file of leeward's ({found.verdict}"
            f"{', ' + found.reason if found.reason else ''}); it is not overwritten. Move it away, or choose another "
            "output with -o"
        )


def forget_records(paths: RunPaths, keys: Iterable[Key]) -> None:
    """Failures that a result outranks, or that somebody wants to be tried again."""
    for key in keys:
        forget(paths, key)


def read_campaign(paths: RunPaths) -> Campaign:
    """The campaign of a run directory."""
    try:
        return Campaign.from_text(paths.campaign.read_text(encoding="utf-8"), str(paths.campaign))
    except FileNotFoundError as error:
        raise LeewardError(f"{paths.root}: no campaign.yaml in it; expected a run directory") from error
