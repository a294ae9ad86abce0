"""Scales, colours and series shared by the charts of pages (SVG) and of plots (matplotlib)."""
