"""Thousands of optimised wind-farm layouts, and never one lost."""

__version__ = "0.1.0"
