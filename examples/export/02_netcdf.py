"""A layout from a NetCDF file with all of them.

leeward export layouts.run -o layouts.nc
python 02_netcdf.py layouts.nc arrays.npz
"""

import re
import sys

import xarray
from pywake_model import compare, load_arrays

arrays = load_arrays(sys.argv[2])
with xarray.open_dataset(sys.argv[1]) as dataset:
    farm, kind, seed = map(int, re.findall(r"\d+", str(arrays["key"])))
    layout = dataset.sel(farm_idx=farm, type_idx=kind, seed=seed)
    count = int(layout.n_turbines)
    if layout.aep_gwh.item() != float(arrays["aep_gwh"]):
        sys.exit("the NetCDF file and the arrays are not of one run")
    compare("NetCDF", arrays, layout.x_m.values[:count], layout.y_m.values[:count])
