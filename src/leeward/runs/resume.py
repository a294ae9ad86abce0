"""What a run directory holds when a run begins: verified results, bad files, records; and does it fit the campaign?"""

import contextlib
import functools
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leeward import __version__
from leeward.campaign import Campaign
from leeward.errors import BadSourceError, InputError, StorageError
from leeward.events import Emit
from leeward.files import read_regular, replace_file, sync_folder
from leeward.runs.adopt import refusal
from leeward.store import (
    CREDENTIALS,
    LONGEST_CAMPAIGN,
    OWN,
    PROBE,
    SUCCESS,
    BadFile,
    BadPack,
    BadRecordError,
    BadShard,
    Brief,
    Doubled,
    FoundFile,
    FoundResult,
    IndexLines,
    Key,
    Maker,
    Record,
    Result,
    RunFiles,
    RunPaths,
    Verdict,
    entries,
    forget_record,
    index_line,
    key_of_shard,
    quarantine,
    read_files,
    read_record,
    read_results,
    store_result,
)

MOST_LISTED = 12
_CREDENTIALS_NAME = re.compile(rf"{re.escape(CREDENTIALS)}[a-z0-9_]{{8}}\Z")
_PROBE_NAME = re.compile(rf"{re.escape(PROBE)}leeward-[0-9a-f]{{16}}\Z")
LEFT_BEHIND_S = 3600.0  # nobody takes so long for writing a file


@dataclass
class Stored:
    """Verified results; of a hundred thousand in little memory.

    fingerprints: of leeward's own. makers: which leeward made each. lines: for the index. bad: files that are none,
    with verdict and reason. loose: keys of those in files of their own. doubled: files of results that packs hold too.
    """

    results: dict[Key, Brief] = field(default_factory=dict)
    fingerprints: dict[Key, str] = field(default_factory=dict)
    makers: dict[Key, Maker] = field(default_factory=dict)
    lines: IndexLines = field(default_factory=IndexLines)
    bad: list[BadFile] = field(default_factory=list)
    loose: list[Key] = field(default_factory=list)
    doubled: list[Doubled] = field(default_factory=list)
    _known_makers: dict[Maker, Maker] = field(default_factory=dict)

    def version(self, campaign: Campaign, key: Key) -> int | None:
        """Return the method version that made a result of a task; None if it was made with other settings."""
        return campaign.version_of(key, self.fingerprints.get(key), self.makers[key].method_version)

    def add(self, key: Key, found: FoundResult | Result) -> None:
        line = index_line(found)
        self.results[key] = Brief.of(line)
        self.lines.add(line)
        maker = Maker.of(found.details)
        self.makers[key] = self._known_makers.setdefault(maker, maker)
        if found.origin == OWN:
            self.fingerprints[key] = sys.intern(found.fingerprint)


def sync_names(paths: RunPaths) -> None:
    """Make the names of all results durable: a killed process may have renamed one, and not synced its folder."""
    folders = [Path(entry.path) for entry in entries(paths.results) if entry.is_dir(follow_symlinks=False)]
    try:
        for folder in (*folders, paths.results, paths.packs):
            with contextlib.suppress(FileNotFoundError):  # there are no packs, or the folder was just removed
                sync_folder(folder)
    except OSError as error:
        raise StorageError(f"{paths.results}: cannot be synced ({error})") from error


def read_stored(files: RunFiles, processes: int = 1, notice: Callable[[], None] | None = None) -> Stored:
    """Read every pack and every shard, in child processes; notice: called now and then."""
    stored = Stored()
    packs = set(files.packs)
    for found in read_results(files, processes=processes):
        if notice is not None:
            notice()
        if isinstance(found, BadShard | BadPack):
            stored.bad.append(found)
        elif isinstance(found, Doubled):
            stored.doubled.append(found)
        elif found.key is not None:
            stored.add(found.key, found)
            if found.path not in packs:
                stored.loose.append(found.key)
    return stored


def tidy(paths: RunPaths) -> None:
    """Remove what killed processes left behind: heartbeats, and files that they were writing.

    Only files and folders go that have the names that leeward gives them. Links are not followed, and stay.
    """
    long_ago = time.time() - LEFT_BEHIND_S
    try:
        for entry in entries(paths.root, may_be_link=True):
            if _CREDENTIALS_NAME.match(entry.name) and entry.is_dir(follow_symlinks=False):
                _remove_if_there(Path(entry.path), shutil.rmtree)
            elif _PROBE_NAME.match(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_if_there(Path(entry.path))
        for path in paths.heartbeats():
            _remove_if_there(path)  # a worker that lives on writes it anew
        for path in paths.temporaries() + paths.temporary_outputs():
            with contextlib.suppress(FileNotFoundError):  # its writer was not gone after all
                if path.lstat().st_mtime < long_ago:
                    path.unlink()
    except OSError as error:
        raise StorageError(f"{paths.root}: cannot be tidied ({error})") from error


def _remove_if_there(path: Path, remove: Callable[[Path], None] = Path.unlink) -> None:
    """Remove a file or a folder; what is gone already, or goes meanwhile, is no reason to leave the rest."""
    with contextlib.suppress(FileNotFoundError):
        remove(path)


def read_records(paths: RunPaths, record: Emit) -> dict[Key, Record]:
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


def write_index(paths: RunPaths, lines: bytes) -> None:
    """The cache anew, from what was verified."""
    try:
        replace_file(paths.index, lines, durable=False)
    except OSError as error:
        raise StorageError(f"{paths.index}: cannot be written ({error})") from error


def refuse_changed(campaign: Campaign, paths: RunPaths, stored: Stored) -> None:
    """Refuse to go on where results were made with other settings or another method version: they never mix."""
    versions = {key: stored.version(campaign, key) for key in stored.makers if key in campaign}
    changed = [key for key, version in versions.items() if version is None]
    if not changed:
        _refuse_other_versions(campaign, paths, stored, versions)
        return
    listed = _differences(campaign, paths, changed)
    listed += _other_method(campaign, {stored.makers[key] for key in changed})
    raise InputError(
        f"{paths.root}: {len(changed)} of its results were made with other settings, {min(changed)} for one:\n  "
        + "\n  ".join(listed)
        + "\nexpected the same settings; otherwise choose another output with -o, or start anew with --new, which "
        "keeps the old results under another name"
    )


def _refuse_other_versions(
    campaign: Campaign, paths: RunPaths, stored: Stored, versions: Mapping[Key, int | None]
) -> None:
    old = [key for key, version in versions.items() if version != campaign.method_version]
    if not old:
        return
    first = min(old)
    maker = stored.makers[first]._replace(method_version=versions[first])
    raise InputError(
        f"{paths.root}: {len(old)} of its results are of another method version; {first} was made by {maker}, and this "
        f"is leeward {__version__}, method version {campaign.method_version}, which computes other numbers from the "
        "same settings. A run never mixes them. To keep them, leave this run as it is and choose another output with "
        "-o: check, merge and export still read them. To recompute them, start anew with --new, which keeps the old "
        "results under another name"
    )


def _other_method(campaign: Campaign, makers: Iterable[Maker]) -> list[str]:
    """Name the method versions that differ too, as far as results state theirs."""
    others = sorted({maker.method_version for maker in makers if maker.method_version is not None})
    return [f"method_version: {campaign.method_version}, was {old}" for old in others if old != campaign.method_version]


def _differences(campaign: Campaign, paths: RunPaths, changed: list[Key]) -> list[str]:
    """Which settings differ, with the farms and types that each concerns."""
    unknown = ["the fingerprint differs; with which settings they were made is not known any more"]
    before = former_campaign(paths)
    if before is None:
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


def former_campaign(paths: RunPaths) -> Campaign | None:
    """What the run directory was made for; None where that is not there, or cannot be read any more."""
    try:
        text = read_regular(paths.campaign, LONGEST_CAMPAIGN).decode()
        return Campaign.from_text(text, str(paths.campaign))
    except (FileNotFoundError, UnicodeDecodeError, InputError):
        return None
    except OSError as error:
        raise StorageError(f"{paths.campaign}: cannot be read ({error})") from error


def freeze(campaign: Campaign, paths: RunPaths, record: Emit) -> None:
    """Keep the campaign in the run directory; a grown or shrunk one replaces the old, which is in the audit log."""
    text = campaign.frozen_text()
    try:
        old = read_regular(paths.campaign, LONGEST_CAMPAIGN) if paths.campaign.exists() else None
        if old == text.encode():
            return
        former = former_campaign(paths)
        if old is not None and (former is None or former.study_text() != campaign.study_text()):
            record("campaign-replaced", old_campaign=old.decode(errors="backslashreplace"))
        replace_file(paths.campaign, text.encode())
    except OSError as error:
        raise StorageError(f"{paths.campaign}: cannot be written ({error})") from error


def take_back(
    campaign: Campaign,
    paths: RunPaths,
    stored: Stored,
    store: Callable[[Callable[[], Any]], Any],
    notice: Callable[[], None],
) -> int:
    """Results of an existing output that are not in the run directory: this run's own become shards again.

    That happens after `leeward clean --merged`, and when a shard was damaged. Any others would be lost with the output:
    that is an error. So are results of another method version.
    """
    if not paths.output.exists():
        return 0
    others: list[str] = []
    older = Stored()
    restored = 0
    is_ours = paths.campaign.exists()
    for found in read_files([paths.output], contents=True):
        notice()
        if isinstance(found, FoundFile):
            if not is_ours and not found.is_valid:
                _refuse_damaged(paths, found)
        elif found.is_valid and found.result is not None and found.key is not None and found.key not in stored.results:
            if is_ours and _is_own(campaign, found):
                store(functools.partial(store_result, paths, found.result))
                stored.add(found.key, found)
                restored += 1
            else:
                others.append(found.name)
                if is_ours and found.sealed:
                    older.add(found.key, found)
    _refuse_other_versions(campaign, paths, older, _known_versions(campaign, older))
    if others:
        raise BadSourceError(
            f"{paths.output}: it holds {len(others)} result(s) that this run would not have, "
            f"{', '.join(others[:5])}{', ...' if len(others) > 5 else ''}; it is not overwritten. To bring them into "
            f"this run: --adopt {paths.output}; to leave it alone: another output with -o"
        )
    return restored


def _known_versions(campaign: Campaign, stored: Stored) -> dict[Key, int | None]:
    """Return the method versions of results of the campaign's settings."""
    versions = {key: stored.version(campaign, key) for key in stored.makers if key in campaign}
    return {key: version for key, version in versions.items() if version is not None}


def _is_own(campaign: Campaign, found: FoundResult) -> bool:
    """Whether a result in the output may count as one of this run's: sealed, and as good as one that is adopted.

    A task that is not in the campaign any more keeps its result. So does one whose turbines are too close: it was
    adopted with --keep-infeasible, or before leeward refused such layouts.
    """
    if not found.sealed or found.status != SUCCESS or found.result is None or found.key is None:
        return False
    if found.key not in campaign:
        return True
    if found.origin == OWN:
        return found.fingerprint == campaign.fingerprint(found.key.farm_idx, found.key.type_idx)
    stated = Maker.of(found.details).method_version
    return stated in (None, campaign.method_version) and refusal(campaign, found, keep_infeasible=True) is None


def refuse_odd_output(paths: RunPaths) -> None:
    """What can never be replaced by a file is said before anything is computed."""
    if paths.output.exists() and not paths.output.is_file():
        what = "a folder" if paths.output.is_dir() else "no plain file"
        raise InputError(f"{paths.output}: is {what}; expected a file, or nothing: choose another output with -o")


def _refuse_damaged(paths: RunPaths, found: FoundFile) -> None:
    raise BadSourceError(
        f"{paths.output}: is there, and is damaged or no file of leeward's ({found.verdict}"
        f"{', ' + found.reason if found.reason else ''}); it is not overwritten. Move it away, or choose another "
        "output with -o"
    )


def forget_records(paths: RunPaths, keys: Iterable[Key]) -> None:
    """Failures that a result outranks, or that somebody wants to be tried again."""
    for key in keys:
        forget_record(paths, key)
