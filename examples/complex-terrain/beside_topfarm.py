"""TopFarm's SmartStart on the problem of campaign.yaml, beside the layouts of leeward: one table of AEPs.

    leeward run campaign.yaml --seeds 10        in this folder; docs/complex-terrain.md says where its wind comes from
    python beside_topfarm.py

The farm, the turbine, the wind and the spacing are those of campaign.yaml, put together from PyWake's and TopFarm's own
classes: WaspGridSite with StraightDistance, GenericWindTurbine, Nygaard_2022. TopFarm's SmartStart gets the grid and
the share of random picks that leeward uses by default. PyWake and leeward evaluate every layout.

Needs topfarm (pip install 'topfarm>=2.7.1,<2.8'). Ten seeds take about four minutes.
"""

import argparse
import contextlib
import io
import time

import numpy as np
from py_wake.literature.turbopark import Nygaard_2022
from py_wake.site.distance import StraightDistance
from py_wake.site.wasp_grid_site import WaspGridSite
from py_wake.wind_turbines.generic_wind_turbines import GenericWindTurbine
from topfarm import TopFarmProblem
from topfarm.constraint_components.boundary import XYBoundaryConstraint
from topfarm.constraint_components.spacing import SpacingConstraint
from topfarm.cost_models.py_wake_wrapper import PyWakeAEPCostModelComponent
from topfarm.easy_drivers import EasyScipyOptimizeDriver

import leeward
from leeward.layout import optimise

GRID_SIZE, RANDOM_PCT = 18, 30  # leeward's defaults
RATED_POWER_KW, ROTOR_DIAMETER_M, HUB_HEIGHT_M = 2000, 80, 80


def smart_start(wind_farm, corners, count, spacing_m, seed):
    """Return the positions (m) that TopFarm's SmartStart finds."""
    cost = PyWakeAEPCostModelComponent(wind_farm, count)
    problem = TopFarmProblem(
        design_vars={"x": np.zeros(count), "y": np.zeros(count)},
        n_wt=count,
        cost_comp=cost,
        constraints=[XYBoundaryConstraint(corners, "polygon"), SpacingConstraint(spacing_m)],
        driver=EasyScipyOptimizeDriver(disp=False),  # not used
    )
    low, high = corners.min(axis=0), corners.max(axis=0)
    grid = np.meshgrid(np.linspace(low[0], high[0], GRID_SIZE), np.linspace(low[1], high[1], GRID_SIZE))
    with contextlib.redirect_stdout(io.StringIO()):  # it counts the points of the grid there
        problem.smart_start(*grid, cost.get_aep4smart_start(), random_pct=RANDOM_PCT, seed=seed, show_progress=False)
    return problem["x"].copy(), problem["y"].copy()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layouts", nargs="?", default="layouts.h5", help="what `leeward run` wrote")
    path = parser.parse_args().layouts

    campaign = leeward.load("campaign.yaml")
    problem = campaign.problem(0, 0)
    corners = np.array(problem.area.to_shapely().exterior.coords)[:-1]
    site = WaspGridSite.from_wasp_grd("ridge", speedup_using_pickle=False, distance=StraightDistance())
    turbine = GenericWindTurbine("G-2", ROTOR_DIAMETER_M, HUB_HEIGHT_M, RATED_POWER_KW)
    wind_farm = Nygaard_2022(site, turbine)

    def both(x, y):
        """Return the AEP of a layout (GWh) in PyWake and in leeward."""
        return float(wind_farm(x, y).aep().sum()), problem.farm.aep_gwh(x, y)

    print(f"{'':6}{'TopFarm SmartStart':^30}{'leeward SmartStart':^22}{'leeward run':^24}")
    print(f"{'seed':6}{'PyWake':>10}{'leeward':>10}{'s':>8}  {'m away':>12}{'s':>8}  {'PyWake':>12}{'leeward':>10}")
    rows = []
    with leeward.open_layouts(path) as layouts:
        results = sorted(layouts.results(), key=lambda result: result.key.seed)
    for result in results:
        seed, began = result.key.seed, time.perf_counter()
        x, y = smart_start(wind_farm, corners, problem.n_turbines, float(problem.min_distances_m[0]), seed)
        ended = time.perf_counter()
        ours = optimise(problem, seed, recipe="smart_start")
        away = max(np.abs(ours.x - x).max(), np.abs(ours.y - y).max())
        seconds = ended - began, time.perf_counter() - ended
        rows.append([*both(x, y), *both(result.x, result.y)])
        start, end = rows[-1][:2], rows[-1][2:]
        print(
            f"{seed:<6}{start[0]:10.4f}{start[1]:10.4f}{seconds[0]:8.1f}  {away:12.1e}{seconds[1]:8.2f}  "
            f"{end[0]:12.4f}{end[1]:10.4f}",
            flush=True,
        )
    table = np.array(rows)
    median = np.median(table, axis=0)
    print(f"median{median[0]:10.4f}{median[1]:10.4f}{'':32}{median[2]:12.4f}{median[3]:10.4f}   GWh")
    apart = np.abs(table[:, ::2] / table[:, 1::2] - 1).max()
    print(f"PyWake and leeward differ by at most {apart:.1e} (relative)")


if __name__ == "__main__":
    main()
