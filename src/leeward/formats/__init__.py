"""CSV and GeoJSON text of tables and layouts, for pages and for `leeward export`."""

from leeward.formats.geojson import layout_geojson
from leeward.formats.rows import layout_csv
from leeward.formats.tabular import csv_text

__all__ = ["csv_text", "layout_csv", "layout_geojson"]
