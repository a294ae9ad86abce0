"""Arrays into PyWake: the layout, its site, turbine and wake model.

leeward export layouts.run --key farm0_t5_s0 -o arrays.npz
python 01_arrays.py arrays.npz
"""

import sys

from pywake_model import compare, load_arrays

arrays = load_arrays(sys.argv[1])
compare("arrays", arrays, arrays["x_m"], arrays["y_m"])
