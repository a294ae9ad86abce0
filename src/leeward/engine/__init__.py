"""Engines: where tasks are computed, from this process to many; and the run that drives them through a campaign."""
