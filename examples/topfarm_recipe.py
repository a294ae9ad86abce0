"""Bring your own optimiser: TopFarm's SmartStart and its stochastic gradient descent, run by leeward.

A recipe is any function (problem, seed) -> (x, y). leeward hands it the problem, checks that every turbine is inside
and far enough from the others, works out the AEP, and treats the answer like that of its own recipes:

    leeward.layout.optimise(problem, seed, recipe="topfarm_recipe:optimise")
    leeward optimise --recipe topfarm_recipe:optimise        (in this folder)

What this one supports: one turbine type, no neighbours, an area of one polygon without holes, the wake model
nygaard_2022 as it is by default, and a site with the same wind speeds in all directions and one turbulence intensity,
as the built-in one. It says so if it gets anything else.

Needs topfarm (pip install 'topfarm>=2.7.1,<2.8'). Run as a script, it puts six turbines into a small area, with TopFarm
and with leeward's own recipe.
"""

import argparse
import time

import numpy as np
import xarray
from py_wake.literature.turbopark import Nygaard_2022
from py_wake.site import XRSite
from py_wake.utils.gradients import autograd
from py_wake.wind_turbines import WindTurbine
from py_wake.wind_turbines.power_ct_functions import PowerCtTabular
from topfarm import TopFarmProblem
from topfarm.constraint_components.boundary import XYBoundaryConstraint
from topfarm.constraint_components.constraint_aggregation import DistanceConstraintAggregation
from topfarm.cost_models.cost_model_wrappers import AEPCostModelComponent
from topfarm.cost_models.py_wake_wrapper import PyWakeAEPCostModelComponent
from topfarm.easy_drivers import EasySGDDriver

from leeward import layout
from leeward.campaign import builtin
from leeward.errors import InputError
from leeward.layout import Area, LayoutProblem
from leeward.wind import Turbine, WindFarm
from leeward.wind.wake_models import wake_model

STEPS = 2000  # of the descent
CONDITIONS = 100  # drawn at random for each step
FIRST_STEP_DIAMETERS = 0.2  # how far a turbine moves in the first step; 0.02 m in the last
GRID_SIZE = 18
RANDOM_PCT = 30
SMART_START_SPEEDS = (6, 8, 10, 12, 14)  # m/s, TopFarm's default


def optimise(problem, seed, steps=STEPS):
    """The layout, x and y in metres, that TopFarm finds."""
    check(problem)
    turbine = problem.turbines[0]
    wakes = Nygaard_2022(peer_site(problem.farm.site), peer_turbine(turbine))
    corners = np.array(problem.area.to_shapely().exterior.coords)[:-1]
    origin = corners.mean(axis=0)  # TopFarm squares distances: small coordinates keep their digits
    count, apart = problem.n_turbines, float(problem.min_distances_m[0])

    boundary = XYBoundaryConstraint(corners - origin, "polygon")
    tf = TopFarmProblem(
        design_vars={"x": np.zeros(count), "y": np.zeros(count)},
        n_wt=count,
        cost_comp=sampled_energy(wakes, problem.farm.site.conditions, count, np.random.default_rng(seed)),
        constraints=DistanceConstraintAggregation(boundary, count, apart, wakes.windTurbines),
        driver=EasySGDDriver(
            maxiter=steps,
            learning_rate=FIRST_STEP_DIAMETERS * turbine.rotor_diameter_m,
            gamma_min_factor=0.02,
            speedupSGD=True,
            sgd_thresh=0.05,
        ),
    )
    low, high = (corners - origin).min(axis=0), (corners - origin).max(axis=0)
    east, north = np.meshgrid(np.linspace(low[0], high[0], GRID_SIZE), np.linspace(low[1], high[1], GRID_SIZE))
    # with the constraints in one component, TopFarm no longer leaves out the points outside by itself
    inside = problem.area.contains(east.ravel() + origin[0], north.ravel() + origin[1])
    east, north = east.ravel()[inside], north.ravel()[inside]
    coarse = Nygaard_2022(peer_site(problem.farm.site.coarser(360, SMART_START_SPEEDS)), wakes.windTurbines)
    energy = PyWakeAEPCostModelComponent(coarse, count).get_aep4smart_start(ws=SMART_START_SPEEDS)
    tf.smart_start(east, north, energy, min_space=apart, random_pct=RANDOM_PCT, seed=seed, show_progress=False)
    _, state, _ = tf.optimize()
    # In TopFarm's descent the constraints are a penalty, so that it may end a little outside or too close.
    # leeward takes feasible layouts only: push the turbines back, as little as can be.
    return problem.repaired(state["x"] + origin[0], state["y"] + origin[1])


def sampled_energy(wakes, conditions, count, rng):
    """AEP (GWh) and its gradient from a few wind conditions, new ones for each step."""
    share = conditions.weight.ravel() / conditions.weight.sum()
    direction, speed = (c.ravel() for c in np.broadcast_arrays(conditions.direction[:, None], conditions.speed))

    def draw():
        chosen = rng.choice(len(share), CONDITIONS, p=share)
        return {"wd": direction[chosen], "ws": speed[chosen], "time": True}

    def aep(x, y):
        return float(wakes(x, y, **draw()).aep().sum()) * conditions.weight.sum()

    def slopes(x, y):
        by_x, by_y = wakes.aep_gradients(autograd, ["x", "y"], x=x, y=y, **draw())
        return [np.atleast_2d(by_x) * conditions.weight.sum(), np.atleast_2d(by_y) * conditions.weight.sum()]

    return AEPCostModelComponent(["x", "y"], count, aep, slopes)


def peer_site(site):
    """A leeward site for PyWake: how often each direction and speed occurs."""
    conditions = site.conditions
    table = xarray.Dataset(
        {"P": (("wd", "ws"), conditions.weight), "TI": float(conditions.turbulence_intensity.flat[0])},
        coords={"wd": conditions.direction, "ws": conditions.speed[0]},
    )
    return XRSite(table, interp_method="nearest")


def peer_turbine(turbine):
    """A leeward turbine for PyWake, from the knots of its curves."""
    knots = turbine.curve.ends[:-1]
    power, thrust = turbine.curve(knots)
    curves = PowerCtTabular(knots, power, "MW", thrust)
    return WindTurbine(turbine.name, turbine.rotor_diameter_m, turbine.hub_height_m, curves)


def check(problem):
    """Refuse what is not supported."""
    shape, conditions = problem.area.to_shapely(), problem.farm.site.conditions
    for wrong, what in (
        (not problem.one_type, "turbines of several types"),
        (problem.farm.neighbours is not None, "neighbours"),
        (shape.geom_type != "Polygon" or len(shape.interiors) > 0, "an area that is not one polygon without holes"),
        (problem.farm.wake_model != wake_model("nygaard_2022"), f"the wake model {problem.farm.wake_model}"),
        (np.ptp(conditions.speed, axis=0).any(), "a site with other speeds in each direction"),
        (np.ptp(conditions.turbulence_intensity) > 1e-9, "a site with several turbulence intensities"),
    ):
        if wrong:
            raise InputError(f"the recipe topfarm_recipe cannot do {what}; see the top of the file for what it can")


def main():
    parser = argparse.ArgumentParser(description="A small farm, by TopFarm and by leeward.")
    parser.add_argument("--turbines", type=int, default=6)
    parser.add_argument("--steps", type=int, default=150, help="of TopFarm's descent")
    arguments = parser.parse_args()
    farm = WindFarm(builtin.site(), Turbine.generic(rated_power_mw=15, rotor_diameter_m=240, hub_height_m=150))
    area = Area.from_arrays([0, 3500, 4200, 600], [0, -500, 3100, 3600])
    problem = LayoutProblem(farm, area, arguments.turbines, spacing_diameters=3)
    for name, recipe in (
        ("TopFarm", lambda problem, seed: optimise(problem, seed, arguments.steps)),
        ("leeward", "smart_start+refine"),
    ):
        began = time.perf_counter()
        solution = layout.optimise(problem, seed=0, recipe=recipe, effort="fast")
        seconds = time.perf_counter() - began
        print(
            f"{name}: AEP {solution.aep_gwh:8.3f} GWh, wake loss {solution.wake_loss:6.2%}, "
            f"closest {solution.min_spacing_m:7.1f} m, {seconds:6.1f} s"
        )


if __name__ == "__main__":
    main()
