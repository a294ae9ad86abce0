"""Find the campaigns of stored layouts, and compare results with them."""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from leeward import __version__
from leeward.campaign import Campaign
from leeward.campaign.campaign import MOST_TASKS
from leeward.campaign.judge import version_of
from leeward.errors import BadSourceError, InputError
from leeward.store import Maker, Result, gather, is_pack, is_shard
from leeward.watch.places import file_attributes, run_of, work_text
from leeward.wording import count


def campaign_of(path: Path) -> Campaign | None:
    """Return the campaign of a run directory or a file of results; None if it has none."""
    found = work_text(path)
    return None if found is None else _campaign(*found)


@lru_cache(maxsize=2)
def _campaign(text: str, where: str) -> Campaign:
    """Parse a campaign once, because every page needs it."""
    return Campaign.from_text(text, where)


class _Reader:
    """Reads each campaign once. problems: errors of unreadable ones."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._known: dict[Path | str, Campaign | None] = {}

    def read(self, path: Path, text: str = "") -> Campaign | None:
        """Return the campaign of a run directory, or of a text in a file; None if it is unreadable."""
        source = text or path
        if source not in self._known:
            self._known[source] = None
            try:
                found = Campaign.from_text(text, f"the campaign in {path}") if text else campaign_of(path)
                self._known[source] = found
            except (InputError, BadSourceError) as error:
                if str(error) not in self.problems:
                    self.problems.append(str(error))
        return self._known[source]


def campaigns_of(paths: Collection[Path]) -> tuple[list[Campaign], list[str]]:
    """Return the distinct campaigns of run directories and files, and the errors of unreadable ones.

    Other folders are ignored. Execution settings do not make campaigns distinct. Campaigns that differ only in their
    seeds become one, with the seeds of all.
    """
    reader = _Reader()
    runs = [path for path in paths if (run := run_of(path)) is not None and os.path.lexists(run.campaign)]
    files = [path for path in paths if path.is_file() and run_of(path) is None]
    found = [reader.read(path) for path in runs]
    found += [reader.read(path, text) for path, text, _ in _texts_in(files) if text]
    distinct = {campaign.study_text(): campaign for campaign in reversed(found) if campaign is not None}
    return united(list(reversed(distinct.values()))), reader.problems


def _texts_in(files: Collection[Path]) -> Iterator[tuple[Path, str, bool]]:
    """Yield each file, the text of its campaign, and whether it was merged from different campaigns."""
    for file, attributes in file_attributes(files):
        yield file, str(attributes.get("campaign", "")), "campaigns" in attributes


def united(campaigns: list[Campaign]) -> list[Campaign]:
    """Return one campaign with all seeds if they differ in nothing else; else the campaigns unchanged."""
    if len(campaigns) < 2 or sum(len(campaign.seeds) for campaign in campaigns) > MOST_TASKS:
        return campaigns
    all_seeds = sorted({seed for campaign in campaigns for seed in campaign.seeds})
    is_range = all_seeds == list(range(all_seeds[0], all_seeds[-1] + 1))
    seeds = f"{all_seeds[0]}:{all_seeds[-1] + 1}" if is_range else all_seeds
    joined = [campaign.with_overrides(seeds=seeds) for campaign in campaigns]
    return joined[:1] if len({campaign.study_text() for campaign in joined}) == 1 else campaigns


class Comparison:
    """A function that returns why a result does not fit its campaign, or None.

    The campaign of a result is `named`; else, for a shard or pack, that of its run directory; else that in the file;
    else `other`. A file merged from different campaigns is not compared. Unreadable campaigns are ignored;
    problems: their errors. A result of another method version is compared under its own version.
    """

    def __init__(self, paths: Iterable[Path], named: Campaign | None, other: Campaign | None) -> None:
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

    def __call__(self, file: Path, result: Result) -> str | None:
        campaign = self._named or self._campaign(file)
        if campaign is None or result.key not in campaign:
            return None
        reason = campaign.judge.misfit(result)
        version = version_of(campaign, result)
        if reason is None and version != campaign.fingerprints.method_version:
            maker = Maker.of(result.details)._replace(method_version=version)
            self._versions[maker, campaign.fingerprints.method_version] += 1
        return reason

    def notes(self) -> list[str]:
        """Return notes on unreadable campaigns and other method versions, after all results were compared."""
        made = [
            f"{count(number, 'result')} made by {maker}, and compared under that version: this is leeward "
            f"{__version__}, method version {version}, which gives different numbers for the same settings"
            for (maker, version), number in sorted(self._versions.items(), key=str)
        ]
        return [f"not compared with a campaign: {problem}" for problem in self.problems] + made

    def _campaign(self, file: Path) -> Campaign | None:
        if is_shard(file):
            return self._reader.read(file.parents[2])
        return self._reader.read(file.parents[1]) if is_pack(file) else self._files.get(file, self._other)
