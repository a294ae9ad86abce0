"""The same farms in PyWake: the numbers that ours are compared with."""

import numpy as np
import xarray
from py_wake.deficit_models.gaussian import BastankhahGaussianDeficit, IEA37SimpleBastankhahGaussianDeficit
from py_wake.deficit_models.no_wake import NoWakeDeficit
from py_wake.deficit_models.utils import ct2a_madsen, ct2a_mom1d
from py_wake.literature.noj import Jensen_1983
from py_wake.literature.turbopark import Nygaard_2022
from py_wake.site import XRSite
from py_wake.superposition_models import LinearSum, SquaredSum
from py_wake.wind_farm_models.engineering_models import PropagateDownwind
from py_wake.wind_turbines import WindTurbine, WindTurbines
from py_wake.wind_turbines.power_ct_functions import PowerCtTabular


def peer_site(path, interpolation="nearest"):
    return XRSite.load(path, interp_method=interpolation)


def peer_table(directions, speeds, probability, turbulence_intensity):
    dataset = xarray.Dataset(
        {"P": (("wd", "ws"), probability), "TI": turbulence_intensity}, coords={"wd": directions, "ws": speeds}
    )
    return XRSite(dataset, interp_method="nearest")


def peer_turbine(turbine):
    """From the curve itself: straight lines between its knots."""
    knots = turbine.curve.ends[:-1]
    power, thrust = turbine.curve(knots)
    function = PowerCtTabular(knots, power, "MW", thrust)
    return WindTurbine(turbine.name, turbine.rotor_diameter_m, turbine.hub_height_m, function)


def peer_turbines(turbines):
    if len(turbines) == 1:
        return peer_turbine(turbines[0])
    return WindTurbines.from_WindTurbine_lst([peer_turbine(t) for t in turbines])


def peer_farm(model, site, turbines):
    """PyWake's wind farm model for one of ours."""
    machines = peer_turbines(turbines)
    if model.name == "nygaard_2022":
        farm = Nygaard_2022(site, machines)
        deficit = farm.wake_deficitModel
        deficit.A, deficit.cTI = model.expansion, [model.ambient_turbulence, model.added_turbulence]
        deficit._ceps, deficit._ctlim = model.initial_width, model.thrust_limit
        return farm
    if model.name == "jensen":
        return Jensen_1983(site, machines, k=model.expansion)
    if model.name == "iea37_gaussian":
        return PropagateDownwind(site, machines, IEA37SimpleBastankhahGaussianDeficit(), SquaredSum())
    if model.name == "no_wake":
        return PropagateDownwind(site, machines, NoWakeDeficit(), SquaredSum())
    deficit = BastankhahGaussianDeficit(
        ct2a=ct2a_madsen if model.induction == "madsen" else ct2a_mom1d,
        k=model.expansion,
        ceps=model.initial_width,
        ctlim=model.thrust_limit,
        use_effective_ws=model.reference_speed == "effective",
    )
    superposition = SquaredSum() if model.superposition == "squared" else LinearSum()
    return PropagateDownwind(site, machines, deficit, superposition)


def peer_simulation(model, site, turbines, x, y, kinds, directions, speeds):
    """AEP (GWh) and effective speeds of shape (turbines, directions, speeds)."""
    result = peer_farm(model, site, turbines)(x, y, type=kinds, wd=directions, ws=speeds)
    return float(result.aep().sum()), np.broadcast_to(result.WS_eff.ilk(), (len(x), len(directions), len(speeds)))
