"""Find the campaigns of stored layouts."""

from functools import lru_cache
from pathlib import Path

from leeward.campaign import Campaign
from leeward.campaign.campaign import MOST_TASKS
from leeward.watch.places import work_text


def campaign_of(path: Path) -> Campaign | None:
    """Return the campaign of a run directory or a file of results; None if it has none."""
    found = work_text(path)
    return None if found is None else campaign_from(*found)


@lru_cache(maxsize=2)
def campaign_from(text: str, where: str) -> Campaign:
    """Parse a campaign once, because every page needs it."""
    return Campaign.from_text(text, where)


def united(campaigns: list[Campaign]) -> list[Campaign]:
    """Return one campaign with all seeds if they differ in nothing else; else the campaigns unchanged."""
    if len(campaigns) < 2 or sum(len(campaign.seeds) for campaign in campaigns) > MOST_TASKS:
        return campaigns
    all_seeds = sorted({seed for campaign in campaigns for seed in campaign.seeds})
    is_range = all_seeds == list(range(all_seeds[0], all_seeds[-1] + 1))
    seeds = f"{all_seeds[0]}:{all_seeds[-1] + 1}" if is_range else all_seeds
    joined = [campaign.with_overrides(seeds=seeds) for campaign in campaigns]
    return joined[:1] if len({campaign.study_text() for campaign in joined}) == 1 else campaigns
