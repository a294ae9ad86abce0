"""What the charts of pages (SVG text) and of plots (matplotlib) share: functions from plain data to plain data."""
