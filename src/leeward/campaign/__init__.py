"""Campaigns: what is to be computed."""
