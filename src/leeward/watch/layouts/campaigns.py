"""Find the campaign of stored layouts."""

import os
from collections.abc import Callable, Collection
from functools import lru_cache, partial
from pathlib import Path

from leeward.campaign import Campaign
from leeward.campaign.campaign import MOST_TASKS
from leeward.errors import BadSourceError, InputError
from leeward.watch.places import file_attributes, run_of, work_text


def campaign_of(path: Path) -> Campaign | None:
    """Return the campaign of a run directory or a file of results; None if it has none."""
    found = work_text(path)
    return None if found is None else _campaign(*found)


@lru_cache(maxsize=2)
def _campaign(text: str, where: str) -> Campaign:
    """Parse a campaign once, because pages ask for it again and again."""
    return Campaign.from_text(text, where)


def campaigns_of(paths: Collection[Path]) -> tuple[list[Campaign], list[str]]:
    """Return the distinct campaigns of run directories and files, and the errors of unreadable ones.

    Other folders are ignored. Execution settings do not make campaigns distinct. Campaigns that differ only in their
    seeds become one, with the seeds of all.
    """
    runs = [path for path in paths if (run := run_of(path)) is not None and os.path.lexists(run.campaign)]
    files = [path for path in paths if path.is_file() and run_of(path) is None]
    stored = ((path, str(attributes.get("campaign", ""))) for path, attributes in file_attributes(files))
    texts = {text: f"the campaign in {path}" for path, text in stored if text}
    ways: list[Callable[[], Campaign | None]] = [partial(campaign_of, path) for path in runs]
    ways += [partial(Campaign.from_text, text, where) for text, where in texts.items()]
    found: dict[str, Campaign] = {}
    problems = []
    for way in ways:
        try:
            campaign = way()
        except (InputError, BadSourceError) as error:
            problems.append(str(error))
            continue
        if campaign is not None:
            found.setdefault(campaign.study_text(), campaign)
    return united(list(found.values())), problems


def united(campaigns: list[Campaign]) -> list[Campaign]:
    """Return one campaign with all seeds if they differ in nothing else; else the campaigns unchanged."""
    if len(campaigns) < 2 or sum(len(campaign.seeds) for campaign in campaigns) > MOST_TASKS:
        return campaigns
    all_seeds = sorted({seed for campaign in campaigns for seed in campaign.seeds})
    is_range = all_seeds == list(range(all_seeds[0], all_seeds[-1] + 1))
    seeds = f"{all_seeds[0]}:{all_seeds[-1] + 1}" if is_range else all_seeds
    joined = [campaign.with_overrides(seeds=seeds) for campaign in campaigns]
    return joined[:1] if len({campaign.study_text() for campaign in joined}) == 1 else campaigns
