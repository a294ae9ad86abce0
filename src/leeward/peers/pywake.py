"""Wind farms as models of PyWake, with the same AEP to 1e-9."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.peers.setup import Setup, is_straight, setup
from leeward.wind import Turbine, WindFarm
from leeward.wind.conditions import Conditions
from leeward.wind.field_data import FieldData
from leeward.wind.field_dataset import dataset_of
from leeward.wind.wake_models import known_wake_models


@dataclass(frozen=True)
class PyWakeCase:
    """A PyWake model and the arguments of a call: `model(**layout)` simulates the layout.

    It unpacks into the two: `model, layout = case`. n_turbines: of the farm; the turbines after them are neighbours.
    """

    model: Any
    layout: dict[str, Any]
    n_turbines: int

    def __iter__(self) -> Iterator[Any]:
        return iter((self.model, self.layout))

    def aep_gwh(self) -> float:
        """Return PyWake's AEP of the farm without its neighbours."""
        return float(self.model(**self.layout).aep().isel(wt=slice(self.n_turbines)).sum())


def to_pywake(farm: WindFarm, x: npt.ArrayLike, y: npt.ArrayLike) -> PyWakeCase:
    """Return a wind farm and a layout as a PyWake model and the arguments of its call. x, y: m."""
    return pywake_case(setup(farm, x, y))


def pywake_case(setup: Setup) -> PyWakeCase:
    """Return the farm as a PyWake model. Raise InputError if PyWake is not installed or lacks the wake model."""
    try:
        import py_wake  # noqa: F401
    except ImportError as error:
        raise InputError("PyWake is not installed; pip install 'py_wake>=2.6.20'") from error
    site, conditions = _site(setup)
    layout = {
        "x": np.concatenate([setup.x, setup.neighbour_x]),
        "y": np.concatenate([setup.y, setup.neighbour_y]),
        "type": np.array(setup.types, dtype=np.int64),
        **conditions,
    }
    return PyWakeCase(_model(setup, site, _turbines(setup)), layout, len(setup.x))


def _turbines(setup: Setup) -> Any:
    from py_wake.wind_turbines import WindTurbines

    machines = [_turbine(turbine) for turbine in setup.turbines]
    return machines[0] if len(machines) == 1 else WindTurbines.from_WindTurbine_lst(machines)


def _turbine(turbine: Turbine) -> Any:
    from py_wake.wind_turbines import WindTurbine
    from py_wake.wind_turbines.power_ct_functions import PowerCtFunction, PowerCtTabular

    if is_straight(turbine):
        speeds = turbine.curve.ends[:-1]
        power, thrust = turbine.curve(speeds)
        function = PowerCtTabular(speeds, power, "MW", thrust)
    else:
        function = PowerCtFunction(["ws"], lambda ws, run_only: turbine.curve(ws)[run_only], "MW")
    return WindTurbine(turbine.name, turbine.rotor_diameter_m, turbine.hub_height_m, function)


def _site(setup: Setup) -> tuple[Any, dict[str, Any]]:
    """Return the site, and the wind conditions as arguments of a call of the model."""
    import xarray
    from py_wake.site import XRSite

    if setup.farm.site.field is not None:
        return _field_site(setup.farm.site.field.data, setup.conditions)
    conditions, settings = setup.conditions, setup.farm.site.settings()
    direction, speed = conditions.direction, conditions.speed
    if "weibull_k" in settings:
        names = {
            "Sector_frequency": "sector_frequency",
            "Weibull_A": "weibull_a_m_s",
            "Weibull_k": "weibull_k",
            "TI": "turbulence_intensity",
        }
        count = len(settings["weibull_k"])
        wind = xarray.Dataset(
            {theirs: ("wd", np.array(settings[ours])) for theirs, ours in names.items()},
            coords={"wd": np.arange(count) * (360.0 / count)},
        )
        return XRSite(wind, interp_method=settings["interpolation"]), {"wd": direction, "ws": speed[0]}
    count = len(direction)
    is_even = np.allclose(direction, np.arange(count) * (360.0 / count), rtol=0.0, atol=1e-9)
    increases = (np.diff(speed[0]) > 0.0).all()
    if is_even and count > 1 and increases and (speed == speed[0]).all():
        columns = {"P": conditions.weight, "TI": conditions.turbulence_intensity}
        wind = xarray.Dataset(
            {name: (("wd", "ws"), values) for name, values in columns.items()},
            coords={"wd": direction, "ws": speed[0]},
        )
        return XRSite(wind, interp_method="nearest"), {"wd": direction, "ws": speed[0]}
    flow_cases = {
        "wd": np.broadcast_to(direction[:, None], speed.shape).ravel(),
        "ws": speed.ravel(),
        "time": np.arange(speed.size),
    }
    return _flow_case_site(conditions.weight.ravel(), conditions.turbulence_intensity.ravel()), flow_cases


def _field_site(data: FieldData, conditions: Conditions) -> tuple[Any, dict[str, Any]]:
    """Return the site of wind that varies, and the wind conditions as arguments of a call of the model."""
    from py_wake.site import XRSite
    from py_wake.site.distance import StraightDistance

    if data.distances != "straight":
        raise InputError(f"distances are {data.distances!r}, which PyWake computes in another way; expected 'straight'")
    if "density" in data.values:
        raise InputError("PyWake takes the air density as an argument of each call; leave it out of the site")
    found = dataset_of(data)
    if not all(np.allclose(np.diff(axis, 2), 0.0, atol=1e-6) for axis in (data.x, data.y)):
        found = found.drop_vars("Elevation", errors="ignore")  # PyWake needs equal steps for it
    weight, intensity = conditions.weight[:, 0], found.get("TI_15")
    if not data.has_bins:
        found = found.drop_vars([name for name in ("wd", "WD", "ws") if name in found and "time" in found[name].dims])
        found["P"] = 1.0  # each step gets its weight below
    if intensity is not None:
        found = found.rename(TI_15="TI")

    grid = {"x": data.x, "y": data.y} if data.extrapolate else {}
    limits = {name: (axis[0], axis[-1]) for name, axis in grid.items() if len(axis) > 1}

    class LocalSite(XRSite):  # type: ignore[misc]
        """Bins of local speeds and turbulence at 15 m/s, as in PyWake's `WaspGridSite`; weights of time steps.

        Outside the grid, the wind at its border applies if the field says so.
        """

        use_WS_bins = data.local_bins  # noqa: N815

        def _local_wind(self, localWind: Any, ws_bins: Any = None) -> Any:  # noqa: N803
            places = {axis: localWind.coords[axis] for axis in limits if axis in localWind.coords}
            localWind.coords.update({axis: np.clip(at, *limits[axis]) for axis, at in places.items()})
            wind = super()._local_wind(localWind, ws_bins)
            wind.coords.update(places)
            if "time" in wind:
                wind["P_ilk"] = weight[None, :, None]
            if intensity is not None:
                factor = 0.75 + 3.8 / wind.ws
                wind["TI_ilk"] = wind["TI_ilk"] * (factor[None, :, None] if "time" in wind else factor)
            return wind

    method = {"x": "linear", "y": "linear", "h": "linear", "time": "linear", "ws": "linear", "wd": data.interpolation}
    site = LocalSite(found, interp_method=method, shear=_shear(data), distance=StraightDistance())
    if data.has_bins:
        return site, {"wd": data.directions, "ws": data.speeds}
    speeds = data.speeds if len(data.speeds) else conditions.speed[:, 0]
    return site, {"wd": data.directions, "ws": speeds, "time": np.arange(len(data.directions))}


def _shear(data: FieldData) -> Any:
    from py_wake.site.shear import LogShear, PowerShear

    if data.shear is None:
        return None
    values = data.shear.values if len(data.shear.values) > 1 else data.shear.values[0]
    if data.shear.kind == "power":
        return PowerShear(data.shear.reference_height_m, values)
    return LogShear(data.shear.reference_height_m, values)


def _flow_case_site(weight: Any, turbulence_intensity: Any) -> Any:
    """Return a site for a list of conditions, with the weight and turbulence intensity of each.

    In a time series of PyWake, each step has the same weight, and an argument `TI` with as many values as there are
    turbines is taken for one value per turbine.
    """
    from py_wake.site import UniformSite

    class FlowCases(UniformSite):  # type: ignore[misc]
        def _local_wind(self, localWind: Any, ws_bins: Any = None) -> Any:  # noqa: N803
            wind = super()._local_wind(localWind, ws_bins)
            if "time" in wind and len(wind.time) == len(weight):
                wind["P_ilk"] = weight[None, :, None]
                wind["TI_ilk"] = turbulence_intensity[None, :, None]
            return wind

    return FlowCases([1.0], ti=0.1)


def _model(setup: Setup, site: Any, turbines: Any) -> Any:
    from py_wake.deficit_models.gaussian import BastankhahGaussianDeficit, IEA37SimpleBastankhahGaussianDeficit
    from py_wake.deficit_models.no_wake import NoWakeDeficit
    from py_wake.deficit_models.utils import ct2a_madsen, ct2a_mom1d
    from py_wake.literature.noj import Jensen_1983
    from py_wake.literature.turbopark import Nygaard_2022
    from py_wake.superposition_models import LinearSum, SquaredSum
    from py_wake.wind_farm_models.engineering_models import PropagateDownwind

    options = setup.wake_settings
    name = options["name"]
    if name == "nygaard_2022":
        farm = Nygaard_2022(site, turbines)
        deficit = farm.wake_deficitModel
        deficit.A, deficit.cTI = options["expansion"], [options["ambient_turbulence"], options["added_turbulence"]]
        deficit._ceps, deficit._ctlim = options["initial_width"], options["thrust_limit"]
        return farm
    if name == "jensen":
        return Jensen_1983(site, turbines, k=options["expansion"])
    if name == "iea37_gaussian":
        return PropagateDownwind(site, turbines, IEA37SimpleBastankhahGaussianDeficit(), SquaredSum())
    if name == "no_wake":
        return PropagateDownwind(site, turbines, NoWakeDeficit(), SquaredSum())
    if name != "bastankhah_gaussian":
        raise InputError(f"PyWake has no wake model {name}; expected one of {', '.join(known_wake_models())}")
    deficit = BastankhahGaussianDeficit(
        ct2a=ct2a_madsen if options["induction"] == "madsen" else ct2a_mom1d,
        k=options["expansion"],
        ceps=options["initial_width"],
        ctlim=options["thrust_limit"],
        use_effective_ws=options["reference_speed"] == "effective",
    )
    return PropagateDownwind(
        site, turbines, deficit, SquaredSum() if options["superposition"] == "squared" else LinearSum()
    )
