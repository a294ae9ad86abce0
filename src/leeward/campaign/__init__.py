"""Campaigns: the tasks to compute, and their settings."""

from leeward.campaign.campaign import Campaign, builtin_campaign, load
from leeward.campaign.execution import Execution
from leeward.campaign.fingerprint import METHOD_VERSION
from leeward.campaign.reading import open_layouts

__all__ = ["METHOD_VERSION", "Campaign", "Execution", "builtin_campaign", "load", "open_layouts"]
