"""Find the campaigns and studies of stored results, and compare results with them."""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from leeward import __version__
from leeward.campaign import Campaign
from leeward.campaign.judge import version_of
from leeward.errors import BadSourceError, InputError
from leeward.store import Maker, gather, is_pack, is_shard
from leeward.study import Study
from leeward.watch.layouts.campaigns import campaign_from, united
from leeward.watch.places import file_attributes, is_study, run_of, work_text
from leeward.watch.studies.snapshot import study_from
from leeward.wording import count

Work = Campaign | Study


def work_from(text: str, where: str) -> Work:
    """Return the campaign or the study that a run directory or a file stores as this text."""
    return study_from(text, where) if is_study(text.encode(errors="replace")) else campaign_from(text, where)


class _Reader:
    """Reads each campaign once. problems: errors of unreadable ones."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._known: dict[Path | str, Work | None] = {}

    def read(self, path: Path, text: str = "") -> Work | None:
        """Return the campaign of a run directory, or of a text in a file; None if it is unreadable."""
        source = text or path
        if source not in self._known:
            self._known[source] = None
            try:
                found = (text, f"the campaign in {path}") if text else work_text(path)
                self._known[source] = None if found is None else work_from(*found)
            except (InputError, BadSourceError) as error:
                if str(error) not in self.problems:
                    self.problems.append(str(error))
        return self._known[source]


def campaigns_of(paths: Collection[Path]) -> tuple[list[Any], list[str]]:
    """Return the distinct campaigns and studies of run directories and files, and the errors of unreadable ones.

    Other folders are ignored. Execution settings do not make campaigns distinct. Campaigns that differ only in their
    seeds become one, with the seeds of all.
    """
    reader = _Reader()
    runs = [path for path in paths if (run := run_of(path)) is not None and os.path.lexists(run.campaign)]
    files = [path for path in paths if path.is_file() and run_of(path) is None]
    found = [reader.read(path) for path in runs]
    found += [reader.read(path, text) for path, text, _ in _texts_in(files) if text]
    distinct = {campaign.study_text(): campaign for campaign in reversed(found) if campaign is not None}
    works = list(reversed(distinct.values()))
    campaigns = [work for work in works if isinstance(work, Campaign)]
    return united(campaigns) if len(campaigns) == len(works) else works, reader.problems


def _texts_in(files: Collection[Path]) -> Iterator[tuple[Path, str, bool]]:
    """Yield each file, the text of its campaign, and whether it was merged from different campaigns."""
    for file, attributes in file_attributes(files):
        yield file, str(attributes.get("campaign", "")), "campaigns" in attributes


class Comparison:
    """A function that returns why a result does not fit its campaign or study, or None.

    The campaign of a result is `named`; else, for a shard or pack, that of its run directory; else that in the file;
    else `other`. A file merged from different campaigns is not compared. Unreadable campaigns are ignored;
    problems: their errors. A result of another method version is compared under its own version.
    """

    def __init__(self, paths: Iterable[Path], named: Work | None, other: Work | None) -> None:
        self._named = named
        self._other = other
        self._reader = _Reader()
        self.problems = self._reader.problems
        # number of results of another method version than the campaign has here
        self._versions: Counter[tuple[Maker, int]] = Counter()
        files = [] if named is not None else [source.path for source in gather(paths) if source.run is None]
        self._files = {
            file: None if is_mixed else self._reader.read(file, text)
            for file, text, is_mixed in _texts_in(files)
            if text or is_mixed
        }

    def __call__(self, file: Path, result: Any) -> str | None:
        campaign = self._named or self._campaign(file)
        if campaign is None or result.key not in campaign:
            return None
        reason = campaign.judge.misfit(result)
        version, here = _versions(campaign, result)
        if reason is None and version != here:
            self._versions[Maker.of(result.details)._replace(method_version=version), here] += 1
        return reason

    def notes(self) -> list[str]:
        """Return notes on unreadable campaigns and other method versions, after all results were compared."""
        made = [
            f"{count(number, 'result')} made by {maker}, and compared under that version: this is leeward "
            f"{__version__}, method version {version}, which gives different numbers for the same settings"
            for (maker, version), number in sorted(self._versions.items(), key=str)
        ]
        return [f"not compared with a campaign: {problem}" for problem in self.problems] + made

    def _campaign(self, file: Path) -> Work | None:
        if is_shard(file):
            return self._reader.read(file.parents[2])
        return self._reader.read(file.parents[1]) if is_pack(file) else self._files.get(file, self._other)


def _versions(work: Work, result: Any) -> tuple[int | None, int]:
    """Return the method version that made a result, and the one that computes such results here."""
    if isinstance(work, Campaign):
        return version_of(work, result), work.fingerprints.method_version
    return work.judge.version_of(result), work.method_version
