"""Compare results with their campaign."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from leeward import __version__
from leeward.campaign import Campaign, fingerprint
from leeward.campaign.judge import version_of
from leeward.errors import BadSourceError, InputError
from leeward.store import Maker, Result, gather, is_pack, is_shard
from leeward.watch.layouts.campaigns import campaign_of
from leeward.watch.places import file_attributes
from leeward.wording import count


class Comparison:
    """A function that returns why a result does not fit its campaign, or None.

    Its campaign is `named`; else, for a shard or pack, that of its run directory; else that in the file; else `other`.
    A file merged from different campaigns is not compared. problems: errors of unreadable campaigns, which are ignored.
    versions: number of results by other method versions; each is compared under its own version.
    """

    def __init__(self, paths: Iterable[Path], named: Campaign | None, other: Campaign | None) -> None:
        self.problems: list[str] = []
        self.versions: Counter[Maker] = Counter()
        self._named = named
        self._other = other
        self._read: dict[Path | str, Campaign | None] = {}
        self._files: dict[Path, Campaign | None] = {}
        if named is None:
            self._read_texts([source.path for source in gather(paths) if source.run is None])

    def __call__(self, file: Path, result: Result) -> str | None:
        campaign = self._named or self._campaign(file)
        if campaign is None or result.key not in campaign:
            return None
        reason = campaign.judge.misfit(result)
        version = version_of(campaign, result)
        if reason is None and version != campaign.fingerprints.method_version:
            self.versions[Maker.of(result.details)._replace(method_version=version)] += 1
        return reason

    def notes(self) -> list[str]:
        """Return notes on unreadable campaigns and other method versions, after all results were compared."""
        here = f"leeward {__version__}, method version {fingerprint.METHOD_VERSION}"
        made = [
            f"{count(number, 'result')} made by {maker}, and compared under that version: this is {here}, which "
            "gives different numbers for the same settings"
            for maker, number in sorted(self.versions.items(), key=str)
        ]
        return [f"not compared with a campaign: {problem}" for problem in self.problems] + made

    def _campaign(self, file: Path) -> Campaign | None:
        if not (is_shard(file) or is_pack(file)):
            return self._files.get(file, self._other)
        run = file.parents[2] if is_shard(file) else file.parents[1]
        return self._read_once(run, partial(campaign_of, run))

    def _read_texts(self, files: list[Path]) -> None:
        for file, attributes in file_attributes(files):
            text = str(attributes.get("campaign", ""))
            if "campaigns" in attributes:
                self._files[file] = None
            elif text:
                read = partial(Campaign.from_text, text, f"the campaign in {file}")
                self._files[file] = self._read_once(text, read)

    def _read_once(self, source: Path | str, read: Callable[[], Campaign | None]) -> Campaign | None:
        """Return the campaign of a run directory or of a text; None if it cannot be read, which is noted."""
        if source not in self._read:
            try:
                self._read[source] = read()
            except (InputError, BadSourceError) as error:
                self._read[source] = None
                if str(error) not in self.problems:
                    self.problems.append(str(error))
        return self._read[source]
