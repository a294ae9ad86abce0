"""Results for other programs: NetCDF, Parquet, CSV, GeoJSON, windIO, FLORIS, and arrays for PyWake.

`__init__.pyi` lists the names; a name is imported when it is first used, so that a command starts quickly.
"""

from leeward.lazy import lazy_names

__getattr__ = lazy_names(__name__, __file__)
