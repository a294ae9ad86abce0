"""Campaigns: the tasks to compute, and their settings."""

from leeward.campaign.campaign import Campaign, builtin_campaign, load, open_layouts
from leeward.campaign.execution import Execution
from leeward.campaign.fingerprint import METHOD_VERSION

__all__ = ["METHOD_VERSION", "Campaign", "Execution", "builtin_campaign", "load", "open_layouts"]
