"""Compare one climate as Weibull sectors, as a table of bins, as exact conditions, and in PyWake.

    python benchmarks/wind_tables.py

The climate is that of the built-in campaign: 12 sectors, and speeds from 3 to 25 m/s. The table has the probability of
each sector and speed. The last lines optimise a layout on each wind and evaluate it on the Weibull climate.
"""

import numpy as np
import xarray
from py_wake.literature.turbopark import Nygaard_2022
from py_wake.site import XRSite
from py_wake.wind_turbines import WindTurbine
from py_wake.wind_turbines.power_ct_functions import PowerCtTabular

from leeward.campaign import builtin_campaign
from leeward.layout import Area, LayoutProblem, optimise
from leeward.wind import Site, Turbine, WindFarm

SPEEDS = np.arange(3.0, 26.0)
EDGES = np.r_[SPEEDS - 0.5, 25.5]
TURBINE = Turbine.generic(15, 240, 150)
TURBULENCE = 0.06


def climates() -> dict[str, Site]:
    """Return the same climate in three forms."""
    figures = builtin_campaign().physics.site.settings()
    names = ("sector_frequency", "weibull_a_m_s", "weibull_k")
    frequency, scale, shape = (np.array(figures[name])[:, None] for name in names)
    probability = frequency * np.diff(1.0 - np.exp(-((EDGES / scale) ** shape)), axis=1)
    sectors = np.arange(len(frequency)) * 360.0 / len(frequency)
    return {
        "Weibull sectors": Site.from_weibull(*(figures[name] for name in names), TURBULENCE),
        "table, bins": Site.from_table(sectors, SPEEDS, probability, TURBULENCE),
        "table, exact": Site.from_table(sectors, SPEEDS, probability, TURBULENCE, kind="exact"),
    }


def pywake(site: Site, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return AEP (GWh) and wake loss of PyWake, for the table on 360 directions."""
    figures = site.settings()
    data = xarray.Dataset(
        {"P": (("wd", "ws"), np.array(figures["probability"])), "TI": TURBULENCE},
        coords={"wd": figures["wind_directions_deg"], "ws": figures["wind_speeds_m_s"]},
    )
    knots = TURBINE.curve.ends[:-1]
    power, thrust = TURBINE.curve(knots)
    turbine = WindTurbine("turbine", 240, 150, PowerCtTabular(knots, power, "MW", thrust))
    model = Nygaard_2022(XRSite(data, interp_method="nearest"), turbine)
    result = model(x, y, wd=np.arange(360), ws=SPEEDS)
    aep = float(result.aep().sum())
    return aep, 1.0 - aep / float(result.aep(with_wake_loss=False).sum())


def layouts() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return a regular grid along the axes of the sectors, one between them, and random positions."""
    east, north = (values.ravel() for values in np.meshgrid(np.arange(6) * 1200.0, np.arange(6) * 1200.0))
    angle = np.radians(15.0)
    turned = east * np.cos(angle) - north * np.sin(angle), east * np.sin(angle) + north * np.cos(angle)
    problem = LayoutProblem(WindFarm(climates()["Weibull sectors"], TURBINE), area(), 36, spacing_m=720)
    solution = optimise(problem, 0, recipe="random", effort="fast")
    return {"grid": (east, north), "grid, turned by 15°": turned, "random": (solution.x, solution.y)}


def area() -> Area:
    return Area.from_arrays([0, 9000, 9000, 0], [0, 0, 7000, 7000])


def main() -> None:
    sites = climates()
    true = sites["Weibull sectors"]
    print("| layout | wind | AEP, GWh | wake loss | difference |\n|---|---|---|---|---|")
    for layout, (x, y) in layouts().items():
        rows = {
            name: (farm.aep_gwh(x, y), farm.wake_loss(x, y))
            for name, site in sites.items()
            for farm in [WindFarm(site, TURBINE)]
        }
        rows["table in PyWake, 360 directions"] = pywake(sites["table, bins"], x, y)
        expected = rows["Weibull sectors"][0]
        for name, (aep, loss) in rows.items():
            print(f"| {layout} | {name} | {aep:.3f} | {loss:.2%} | {aep / expected - 1:+.1e} |")
    print("\n| optimised on | AEP there, GWh | wake loss there | AEP on the Weibull sectors, GWh |\n|---|---|---|---|")
    for name, site in sites.items():
        farm = WindFarm(site, TURBINE)
        solution = optimise(LayoutProblem(farm, area(), 36, spacing_m=720), 0, effort="fast")
        x, y = solution.x, solution.y
        in_truth = WindFarm(true, TURBINE).aep_gwh(x, y)
        print(f"| {name} | {farm.aep_gwh(x, y):.2f} | {farm.wake_loss(x, y):.2%} | {in_truth:.2f} |")


if __name__ == "__main__":
    main()
