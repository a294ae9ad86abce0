"""CSV and GeoJSON text of tables and layouts, for pages and for `leeward export`."""
