"""The same farms in PyWake: the numbers that ours are compared with."""

import numpy as np
import xarray
from py_wake import np as numpy  # of autograd, while it computes gradients
from py_wake.deficit_models.gaussian import BastankhahGaussianDeficit, IEA37SimpleBastankhahGaussianDeficit
from py_wake.deficit_models.no_wake import NoWakeDeficit
from py_wake.deficit_models.utils import ct2a_madsen, ct2a_mom1d
from py_wake.literature.noj import Jensen_1983
from py_wake.literature.turbopark import Nygaard_2022
from py_wake.site import XRSite
from py_wake.site.distance import StraightDistance, TerrainFollowingDistance
from py_wake.site.shear import LogShear, PowerShear
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


class ElevatedDistance(StraightDistance):
    """Straight distances between hubs at their heights above sea level."""

    def __call__(self, src_x_ilk, src_y_ilk, src_h_ilk, wd_l=None, dst_xyh_jlk=None, **others):
        source, target = self.get_pos(src_x_ilk, src_y_ilk, src_h_ilk, dst_xyh_jlk=dst_xyh_jlk)
        target = None if dst_xyh_jlk is None else self._lifted(*target)
        return super().__call__(*self._lifted(*source), wd_l=wd_l, dst_xyh_jlk=target, **others)

    def _lifted(self, x, y, h):
        return x, y, h + self.site.elevation(x.reshape(-1), y.reshape(-1)).reshape(np.shape(x))


class EachDirectionDistance(TerrainFollowingDistance):
    """PyWake's terrain-following distances, one wind direction at a time.

    PyWake 2.6.20 sorts the turbines in each direction, but takes their positions in the order of the first one.
    """

    def __call__(self, src_x_ilk, src_y_ilk, src_h_ilk, wd_l=None, dst_xyh_jlk=None, **others):
        source, target = self.get_pos(src_x_ilk, src_y_ilk, src_h_ilk, dst_xyh_jlk=dst_xyh_jlk)
        parts = []
        for number in range(len(wd_l)):
            here, there = ([v[:, min(number, v.shape[1] - 1)][:, None] for v in places] for places in (source, target))
            there = None if dst_xyh_jlk is None else there
            parts.append(super().__call__(*here, wd_l=wd_l[number : number + 1], dst_xyh_jlk=there, **others))
        return [numpy.concatenate(values, 2) for values in zip(*parts, strict=True)]


DISTANCES = {
    "straight": StraightDistance,
    "elevated": ElevatedDistance,
    "terrain_following": EachDirectionDistance,
}


class FieldSite(XRSite):
    """`XRSite`, with a turbulence intensity at 15 m/s that depends on the speed as in PyWake's `WaspGridSite`."""

    def _local_wind(self, localWind, ws_bins=None):  # noqa: N803
        wind = super()._local_wind(localWind, ws_bins)
        if "TI_15" in self.ds:
            wind["TI_ilk"] = self.interp(self.ds.TI_15, wind) * (0.75 + 3.8 / wind.ws)
        return wind


def peer_field(case, distance=None, density=False):
    """PyWake's site for a `field_cases.Case`.

    The directions and speeds of a time series are arguments of its simulation, and so is the air density unless
    `density` is True.
    """
    data = case.dataset
    left_out = [name for name in ("wd", "WD", "ws") if name in data.variables and data[name].dims == ("time",)]
    if not density and "Air_density" in data:
        left_out.append("Air_density")
    data = data.drop_vars(left_out)
    if case.is_series:
        data = data.assign(P=1.0)
    shear = None
    if case.sector_shear is not None:
        kind, values = case.sector_shear
        shear = PowerShear(100.0, values) if kind == "power" else LogShear(100.0, values)
    if distance is None:
        distance = DISTANCES[case.distances]()
    methods = {"wd": case.interpolation, **dict.fromkeys(("x", "y", "h", "time", "ws"), "linear")}
    site = FieldSite(data, interp_method=methods, shear=shear, distance=distance)
    site.use_WS_bins = data.attrs.get("speed_bins") == "local"
    return site


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
