"""A FLORIS input and its wind rose into FLORIS 4, which needs `pip install 'floris>=4.7,<5'`.

FLORIS has wake models of its own, so only the energy without wakes is the same; the energy with wakes is printed
beside leeward's.

    leeward export layouts.run --key farm0_t5_s0 --format floris -o floris.yaml     # and the wind rose
    leeward export layouts.run --key farm0_t5_s0 -o arrays.npz
    python 07_floris.py floris.yaml floris_wind_rose.csv arrays.npz
"""

import sys

import numpy as np
import pandas
from floris import FlorisModel

GWH_PER_WH = 1e-9

with np.load(sys.argv[3]) as file:
    arrays = dict(file)
frequency = pandas.read_csv(sys.argv[2])["freq"].to_numpy()
own = np.r_[np.ones(len(arrays["x_m"])), np.zeros(len(arrays["neighbour_x_m"]))]
model = FlorisModel(sys.argv[1])
weights = np.broadcast_to(own, (len(frequency), len(own)))

model.run_no_wake()
free = model.get_farm_AEP(freq=frequency, turbine_weights=weights) * GWH_PER_WH
curve = arrays["turbine0_wind_speed_m_s"], arrays["turbine0_power_mw"]
power_mw = np.interp(arrays["wind_speed_m_s"], *curve)
expected = float((power_mw * arrays["probability"]).sum()) * 8.76 * len(arrays["x_m"])
off = abs(free - expected) / expected
print(f"FLORIS: {arrays['key']}, without wakes {free:.6f} GWh, leeward {expected:.6f} GWh, {off:.1e} apart")
model.run()
waked = model.get_farm_AEP(freq=frequency, turbine_weights=weights) * GWH_PER_WH
stored = float(arrays["aep_gwh"])
print(f"FLORIS: with its own wake model {waked:.6f} GWh, leeward {stored:.6f} GWh, {waked / stored - 1:+.2%}")
if not off <= 1e-6:
    sys.exit("the energies without wakes differ")
