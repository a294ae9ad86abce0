"""A layout from a CSV file with a row for each turbine.

leeward export layouts.run -o turbines.csv
python 04_csv.py turbines.csv arrays.npz
"""

import csv
import sys

import numpy as np
from pywake_model import compare, load_arrays

arrays = load_arrays(sys.argv[2])
with open(sys.argv[1], newline="", encoding="utf-8") as file:
    rows = [row for row in csv.DictReader(file) if row["key"] == str(arrays["key"])]
x, y = (np.array([float(row[column]) for row in rows]) for column in ("x_m", "y_m"))
compare("CSV", arrays, x, y)
