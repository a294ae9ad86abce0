"""Results for other programs: NetCDF, Parquet, CSV, GeoJSON, windIO, FLORIS, and arrays for PyWake."""

from leeward.export.choice import Choice, chosen, damaged, open_results
from leeward.export.target import FORMATS
from leeward.export.write import export_layouts

__all__ = ["FORMATS", "Choice", "chosen", "damaged", "export_layouts", "open_results"]
