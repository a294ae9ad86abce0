"""Optimise many layouts in lock step on a GPU."""
