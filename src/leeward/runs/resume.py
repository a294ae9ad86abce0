"""Read a run directory when a run begins; raise an error if its results do not fit the work."""

import contextlib
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from leeward import __version__
from leeward.engines.work import Work
from leeward.errors import BadSourceError, InputError
from leeward.events import Emit
from leeward.files import read_regular, replace_file, storage_errors, sync_folder
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
    parse_key,
    quarantine,
    read_files,
    read_record,
    read_results,
)
from leeward.wording import count

_CREDENTIALS_NAME = re.compile(rf"{re.escape(CREDENTIALS)}[a-z0-9_]{{8}}\Z")
_PROBE_NAME = re.compile(rf"{re.escape(PROBE)}leeward-[0-9a-f]{{16}}\Z")
UNKNOWN_SETTINGS = "the fingerprints differ; the old settings are not known"
LEFT_BEHIND_S = 3600.0  # no process still writes to a temporary file of this age


@dataclass
class Stored:
    """Verified results of a run directory, in a form that needs little memory.

    fingerprints: of results that leeward computed. makers: version of leeward that made each. lines: for the index.
    bad: bad files, with verdict and reason. loose: keys of results in shards. doubled: shards whose results are also
    in packs. kinds: of all results.
    """

    results: dict[Key, Brief] = field(default_factory=dict)
    fingerprints: dict[Key, str] = field(default_factory=dict)
    makers: dict[Key, Maker] = field(default_factory=dict)
    lines: IndexLines = field(default_factory=IndexLines)
    bad: list[BadFile] = field(default_factory=list)
    loose: list[Key] = field(default_factory=list)
    doubled: list[Doubled] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    _known_makers: dict[Maker, Maker] = field(default_factory=dict)

    def versions(self, work: Work) -> dict[Key, int | None]:
        """Return the method version of each result; None if it was made with other settings."""
        known = {key: maker.method_version for key, maker in self.makers.items() if key in work}
        return {key: work.version_of(key, self.fingerprints.get(key), stated) for key, stated in known.items()}

    def add(self, key: Key, found: FoundResult | Result) -> None:
        line = found.index_line()
        self.kinds.add(found.kind if isinstance(found, FoundResult) else found.KIND)
        self.results[key] = Brief.of(line)
        self.lines.add(line)
        maker = Maker.of(found.details)
        self.makers[key] = self._known_makers.setdefault(maker, maker)
        if found.origin == OWN:
            self.fingerprints[key] = sys.intern(found.fingerprint)


def sync_names(paths: RunPaths) -> None:
    """Sync the folders of all results: a killed process may have renamed a file without syncing its folder."""
    folders = [Path(entry.path) for entry in entries(paths.results) if entry.is_dir(follow_symlinks=False)]
    with storage_errors(paths.results, "cannot be synced"):
        for folder in (*folders, paths.results, paths.packs):
            with contextlib.suppress(FileNotFoundError):  # no packs, or the folder was just removed
                sync_folder(folder)


def read_stored(files: RunFiles, processes: int, notice: Callable[[], None]) -> Stored:
    """Read every pack and shard in child processes. notice: called for each of them."""
    stored = Stored()
    packs = set(files.packs)
    for found in read_results(files, processes=processes):
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


def remove_leftovers(paths: RunPaths) -> None:
    """Remove heartbeats and temporary files of killed processes.

    Only files and folders with names of leeward are removed. Links are neither removed nor followed.
    """
    long_ago = time.time() - LEFT_BEHIND_S
    with storage_errors(paths.root, "cannot be cleaned up"):
        for entry in entries(paths.root, may_be_link=True):
            if _CREDENTIALS_NAME.match(entry.name) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(entry.path)
            elif _PROBE_NAME.match(entry.name) and entry.is_file(follow_symlinks=False):
                Path(entry.path).unlink(missing_ok=True)
        for path in paths.heartbeats():
            path.unlink(missing_ok=True)  # a live worker writes it again
        for path in paths.temporaries() + paths.temporary_outputs():
            with contextlib.suppress(FileNotFoundError):  # its writer is alive and has just renamed it
                if path.lstat().st_mtime < long_ago:
                    path.unlink()


def read_records(paths: RunPaths, record: Emit) -> dict[Key, Record]:
    """Return the records of attempts and failures; an unreadable one goes to quarantine, and its task starts again."""
    records = {}
    for path in sorted(paths.failures.glob("*.json")):
        if (found := read_or_quarantine(paths, path, record)) is not None:
            records[parse_key(path.stem)] = found
    return records


def read_or_quarantine(paths: RunPaths, path: Path, record: Emit) -> Record | None:
    """Return the record of a task; None if there is none, or if it is unreadable and was moved to quarantine."""
    try:
        parse_key(path.stem)
        return read_record(path)
    except (BadRecordError, InputError) as error:
        quarantine(paths, path, Verdict.UNREADABLE, str(error), record)
        return None


def refuse_changed(work: Work, paths: RunPaths, stored: Stored) -> None:
    """Raise InputError if results were made with other settings or another method version. A run never mixes them."""
    for kind in stored.kinds - {work.kind}:
        raise InputError(f"{paths.root}: holds {kind}, but this run makes {work.kind}; choose another output with -o")
    versions = stored.versions(work)
    changed = [key for key, version in versions.items() if version is None]
    if not changed:
        _refuse_other_versions(work, paths, stored, versions)
        return
    before = former_work(work, paths)
    listed = (work.differences(before, changed) if before is not None else []) or [UNKNOWN_SETTINGS]
    others = {stored.makers[key].method_version for key in changed} - {None, work.method_version}
    listed += [f"method_version: {work.method_version}, was {old}" for old in sorted(filter(None, others))]
    raise InputError(
        f"{paths.root}: {len(changed)} of its results were made with other settings, for example {min(changed)}:\n  "
        + "\n  ".join(listed)
        + "\nUse the same settings, choose another output with -o, or start over with --new, which keeps the old "
        "results under another name"
    )


def _refuse_other_versions(work: Work, paths: RunPaths, stored: Stored, versions: Mapping[Key, int | None]) -> None:
    old = [key for key, version in versions.items() if version != work.method_version]
    if not old:
        return
    first = min(old)
    maker = stored.makers[first]._replace(method_version=versions[first])
    raise InputError(
        f"{paths.root}: {len(old)} of its results are of another method version; {first} was made by {maker}, but this "
        f"is leeward {__version__}, method version {work.method_version}, which computes different numbers from the "
        "same settings. A run never mixes them. To keep them, leave this run as it is and choose another output with "
        "-o: check, merge and export still read them. To recompute them, start over with --new, which keeps the old "
        "results under another name"
    )


def former_work(work: Work, paths: RunPaths) -> Work | None:
    """Return the work that is stored in the run directory; None if it is missing or unreadable."""
    with storage_errors(paths.campaign, "cannot be read"):
        try:
            text = read_regular(paths.campaign, LONGEST_CAMPAIGN).decode()
            return type(work).from_text(text, str(paths.campaign))
        except (FileNotFoundError, UnicodeDecodeError, InputError):
            return None


def freeze(work: Work, paths: RunPaths, record: Emit) -> None:
    """Store the work in the run directory; the audit log keeps an old one that it replaces."""
    text = work.frozen_text()
    with storage_errors(paths.campaign, "cannot be written"):
        old = read_regular(paths.campaign, LONGEST_CAMPAIGN) if paths.campaign.exists() else None
        if old == text.encode():
            return
        former = former_work(work, paths)
        if old is not None and (former is None or former.study_text() != work.study_text()):
            record("campaign-replaced", old_campaign=old.decode(errors="backslashreplace"))
        replace_file(paths.campaign, text.encode())


def restore(
    work: Work,
    paths: RunPaths,
    stored: Stored,
    store: Callable[[Result], None],
    notice: Callable[[], None],
) -> int:
    """Store results of this run that exist only in the output as shards again; return their number.

    They exist only there after `leeward clean --merged`, or if a shard was damaged. Raise an error if the output holds
    any other result, which would be lost with it, or a result of another method version. If the run directory is gone,
    results of the same settings count if the work cannot adopt.
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
                raise BadSourceError(
                    f"{paths.output}: exists, and is damaged or not a file of leeward ({found.verdict}"
                    f"{', ' + found.reason if found.reason else ''}); it is not overwritten. Move it away, or choose "
                    "another output with -o"
                )
        elif found.is_valid and found.result is not None and found.key is not None and found.key not in stored.results:
            if (is_ours or (not work.can_adopt and found.key in work)) and _is_own(work, found):
                store(found.result)
                stored.add(found.key, found)
                restored += 1
            else:
                others.append(found.name)
                if is_ours and found.sealed:
                    older.add(found.key, found)
    versions = older.versions(work)
    _refuse_other_versions(work, paths, older, {key: known for key, known in versions.items() if known is not None})
    if others:
        how = f"Adopt them with --adopt {paths.output}, or choose" if work.can_adopt else "Choose"
        raise BadSourceError(
            f"{paths.output}: holds {count(len(others), 'result')} that are not part of this run, "
            f"{', '.join(others[:5])}{', ...' if len(others) > 5 else ''}; it is not overwritten. "
            f"{how} another output with -o"
        )
    return restored


def _is_own(work: Work, found: FoundResult) -> bool:
    """Return whether a result in the output counts as one of this run: sealed, and acceptable for adoption.

    A result of a task that is no longer in the work counts. A result that breaks a constraint counts too: it was
    adopted with --keep-infeasible, or before leeward rejected such results.
    """
    is_whole = found.sealed and found.status == SUCCESS and found.result is not None
    if not is_whole or found.key is None or found.kind != work.kind:
        return False
    if found.key not in work:
        return True
    if found.origin == OWN:
        return found.fingerprint == work.fingerprint(found.key)
    stated = Maker.of(found.details).method_version
    return stated in (None, work.method_version) and work.refusal(found) is None


def is_source(output: Path, sources: Iterable[Path]) -> bool:
    """Return whether the output is one of the files to adopt from."""
    return output.resolve() in {source.resolve() for source in sources}


def refuse_missing_folder(paths: RunPaths) -> None:
    """Raise InputError if the folder of the output does not exist."""
    folder = paths.output.absolute().parent
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; create it first, or choose another output with -o")


def refuse_odd_output(paths: RunPaths) -> None:
    """Raise InputError if the output is not a regular file, before anything is computed."""
    if paths.output.exists() and not paths.output.is_file():
        what = "a folder" if paths.output.is_dir() else "not a regular file"
        raise InputError(f"{paths.output}: is {what}; choose another output with -o")


def refuse_bad_sources(sources: Iterable[Path]) -> None:
    """Raise InputError if a source does not exist."""
    for source in sources:
        if not source.exists():
            raise InputError(f"{source}: no such file or folder; check the path given with --adopt")
