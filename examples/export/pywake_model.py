"""A PyWake wind farm model from the arrays that `leeward export -o arrays.npz` writes; the examples here share it."""

import json
import sys
from pathlib import Path

import numpy as np
import xarray
from py_wake.deficit_models.gaussian import BastankhahGaussianDeficit, IEA37SimpleBastankhahGaussianDeficit
from py_wake.deficit_models.no_wake import NoWakeDeficit
from py_wake.deficit_models.utils import ct2a_madsen, ct2a_mom1d
from py_wake.literature.noj import Jensen_1983
from py_wake.literature.turbopark import Nygaard_2022
from py_wake.site import UniformSite, XRSite
from py_wake.superposition_models import LinearSum, SquaredSum
from py_wake.wind_farm_models.engineering_models import PropagateDownwind
from py_wake.wind_turbines import WindTurbine, WindTurbines
from py_wake.wind_turbines.power_ct_functions import PowerCtTabular

GWH_PER_MWH = 1e-3
HOURS = 8760


def load_arrays(path):
    """The arrays of a .npz or .json file, by name."""
    if Path(path).suffix == ".json":
        return {name: np.asarray(value) for name, value in json.loads(Path(path).read_text()).items()}
    with np.load(path) as file:
        return dict(file)


def site_of(arrays):
    """Weibull distributions by sector; or, of any other site, one whose conditions are given one by one."""
    if "weibull_k" in arrays:
        names = {
            "Sector_frequency": "sector_frequency",
            "Weibull_A": "weibull_a_m_s",
            "Weibull_k": "weibull_k",
            "TI": "sector_turbulence_intensity",
        }
        count = len(arrays["weibull_k"])
        wind = xarray.Dataset(
            {theirs: ("wd", np.asarray(arrays[ours])) for theirs, ours in names.items()},
            coords={"wd": np.arange(count) * (360.0 / count)},
        )
        return XRSite(wind, interp_method=str(arrays["interpolation"]))
    return UniformSite([1.0], ti=0.1)


def turbines_of(arrays):
    """The turbine of the layout, then those of its neighbours."""
    machines = []
    for number, name in enumerate(arrays["turbine_name"]):
        speed, power, thrust = (
            arrays[f"turbine{number}_{what}"] for what in ("wind_speed_m_s", "power_mw", "thrust_coefficient")
        )
        curves = PowerCtTabular(speed, power, "MW", thrust)
        machines.append(
            WindTurbine(str(name), arrays["rotor_diameter_m"][number], arrays["hub_height_m"][number], curves)
        )
    return machines[0] if len(machines) == 1 else WindTurbines.from_WindTurbine_lst(machines)


def farm_model(arrays):
    """PyWake's model with the options of leeward's."""
    site, machines = site_of(arrays), turbines_of(arrays)
    options = json.loads(str(arrays["wake_model"]))
    name = options["name"]
    if name == "nygaard_2022":
        farm = Nygaard_2022(site, machines)
        deficit = farm.wake_deficitModel
        deficit.A, deficit.cTI = options["expansion"], [options["ambient_turbulence"], options["added_turbulence"]]
        deficit._ceps, deficit._ctlim = options["initial_width"], options["thrust_limit"]
        return farm
    if name == "jensen":
        return Jensen_1983(site, machines, k=options["expansion"])
    if name == "iea37_gaussian":
        return PropagateDownwind(site, machines, IEA37SimpleBastankhahGaussianDeficit(), SquaredSum())
    if name == "no_wake":
        return PropagateDownwind(site, machines, NoWakeDeficit(), SquaredSum())
    deficit = BastankhahGaussianDeficit(
        ct2a=ct2a_madsen if options["induction"] == "madsen" else ct2a_mom1d,
        k=options["expansion"],
        ceps=options["initial_width"],
        ctlim=options["thrust_limit"],
        use_effective_ws=options["reference_speed"] == "effective",
    )
    superposition = SquaredSum() if options["superposition"] == "squared" else LinearSum()
    return PropagateDownwind(site, machines, deficit, superposition)


def aep_gwh(arrays, x, y):
    """Of a layout with the turbines, the wind and the wake model of the arrays; neighbours count with their wakes."""
    count = len(x)
    places = np.r_[x, arrays["neighbour_x_m"]], np.r_[y, arrays["neighbour_y_m"]]
    kinds = np.r_[np.zeros(count, int), arrays["neighbour_type"]].astype(int)
    direction, speed = arrays["wind_direction_deg"], arrays["wind_speed_m_s"]
    farm = farm_model(arrays)
    if "weibull_k" in arrays:
        return float(farm(*places, type=kinds, wd=direction, ws=speed[0]).aep().isel(wt=slice(count)).sum())
    each = np.broadcast_to(direction[:, None], speed.shape)
    conditions = {"wd": each.ravel(), "ws": speed.ravel(), "TI": arrays["turbulence_intensity"].ravel()}
    probability = arrays["probability"].ravel()
    if "local_probability" in arrays:  # the wind varies over the site: a row for each turbine
        shape = (len(kinds), speed.size)
        conditions["WS"] = arrays["local_wind_speed_m_s"].reshape(shape)
        conditions["TI"] = arrays["local_turbulence_intensity"].reshape(shape)
        if np.ndim(arrays["local_air_density_kg_m3"]):
            conditions["Air_density"] = arrays["local_air_density_kg_m3"].reshape(shape)
        probability = arrays["local_probability"].reshape(shape)[:count]
    power_mw = farm(*places, type=kinds, time=True, **conditions).Power.values[:count] * 1e-6
    return float((power_mw * probability).sum() * HOURS * GWH_PER_MWH)


def compare(what, arrays, x, y, tolerance=1e-9):
    """Print PyWake's AEP beside the stored one, and end with an error if they differ."""
    found, stored = aep_gwh(arrays, x, y), float(arrays["aep_gwh"])
    off = abs(found - stored) / stored
    print(f"{what}: {arrays['key']}, PyWake {found:.6f} GWh, stored {stored:.6f} GWh, {off:.1e} apart")
    if not off <= tolerance:
        sys.exit(f"{what}: the energies differ by more than {tolerance:g}")
