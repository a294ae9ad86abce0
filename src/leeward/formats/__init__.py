"""Texts that several parts write: tables as CSV, and layouts as CSV and GeoJSON. From data to text; nothing is written.

Pages offer one layout by them, and `leeward export` writes thousands. `layout_table` reads layouts from CSV again.
"""

from leeward.formats.geojson import layout_geojson
from leeward.formats.rows import layout_csv
from leeward.formats.tabular import csv_text

__all__ = ["csv_text", "layout_csv", "layout_geojson"]
