"""A layout from a NetCDF file with all of them.

leeward export layouts.run -o layouts.nc
python 02_netcdf.py layouts.nc arrays.npz
"""

import sys

import xarray
from pywake_model import compare, load_arrays

arrays = load_arrays(sys.argv[2])
with xarray.open_dataset(sys.argv[1]) as dataset:
    layout = dataset.isel(layout=(dataset.key == str(arrays["key"])).argmax("layout").item())
    count = int(layout.n_turbines)
    if layout.aep.item() != float(arrays["aep_gwh"]):
        sys.exit("the NetCDF file and the arrays are not of one run")
    compare("NetCDF", arrays, layout.x.values[:count], layout.y.values[:count])
