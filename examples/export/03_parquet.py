"""A layout from a Parquet file with a row for each turbine.

leeward export layouts.run -o turbines.parquet
python 03_parquet.py turbines.parquet arrays.npz
"""

import sys

import pandas
from pywake_model import compare, load_arrays

arrays = load_arrays(sys.argv[2])
table = pandas.read_parquet(sys.argv[1])
layout = table[table.key == str(arrays["key"])].sort_values("turbine")
compare("Parquet", arrays, layout.x_m.to_numpy(), layout.y_m.to_numpy())
