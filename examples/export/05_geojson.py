"""A layout from a GeoJSON file: from longitudes and latitudes back to metres, by pyproj.

Degrees have nine decimals, a tenth of a millimetre: enough for six digits of the energy, and more.

    leeward export layouts.run --best -o best.geojson
    python 05_geojson.py best.geojson arrays.npz
"""

import json
import sys
from pathlib import Path

import numpy as np
import pyproj
from pywake_model import compare, load_arrays

arrays = load_arrays(sys.argv[2])
collection = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
turbines = [
    feature["geometry"]["coordinates"]
    for feature in collection["features"]
    if feature["properties"].get("key") == str(arrays["key"])
]
to_metres = pyproj.Transformer.from_crs("EPSG:4326", collection["projected_crs"], always_xy=True)
x, y = to_metres.transform(*np.array(turbines).T)
compare("GeoJSON", arrays, x, y, tolerance=1e-6)
