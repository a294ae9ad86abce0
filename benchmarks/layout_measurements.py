"""What benchmarks/layout.py measures: the cases, and one function for each measurement, ours and TopFarm's."""

import json
import time
from pathlib import Path

import numpy as np

from wake import fastest, our_farm, peer_farm

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
REFERENCES = ("farm0_t5_s0", "farm3_t2_s0", "farm5_t5_s49", "farm9_t4_s24")
TOLERANCE_M = 1e-6
SPACING_M = 720.0  # of farm 0: three rotor diameters

# invented: no place on Earth; corners in metres
SHAPES = {
    "L": (25, "POLYGON ((0 0, 9000 0, 9000 3500, 3500 3500, 3500 9000, 0 9000, 0 0))"),
    "three regions": (
        40,
        "MULTIPOLYGON (((0 0, 8000 1000, 1500 7500, 0 0)), ((9500 500, 14500 0, 15500 4500, 10500 5500, 9500 500)),"
        " ((5000 8000, 9000 6500, 11500 8500, 10500 11500, 6500 12000, 5000 8000)))",
    ),
}
FIVE_REGIONS = (
    "MULTIPOLYGON (((0 0, 4420 -612, 5372 2856, 3536 4148, 748 3536, 0 0)),"
    " ((6120 340, 9860 0, 10540 3060, 7140 3740, 6120 340)),"
    " ((2040 5440, 5440 4828, 6664 6460, 5984 8500, 2924 8568, 2040 5440)),"
    " ((7480 4760, 11424 4148, 11900 6664, 8976 7752, 7480 4760)),"
    " ((8160 8704, 12104 7820, 12580 9860, 9656 11016, 8160 8704)))"
)


# cases


def corners(farm):
    """Corners of a built-in area, m, shape (corners, 2)."""
    from leeward.campaign import builtin

    path = Path(builtin.__file__).parent / "danish_energy_island" / "farms.geojson"
    features = json.loads(path.read_text(encoding="utf-8"))["features"]
    ring = next(f["geometry"]["coordinates"][0] for f in features if f["properties"]["farm_idx"] == farm)
    return np.array(ring[:-1])


def tender(farm, turbine, count, spacing):
    """A built-in area, and one of the built-in turbines."""
    from leeward.campaign import builtin
    from leeward.layout import Area, LayoutProblem
    from leeward.wind import WindFarm

    area = Area.from_arrays(*corners(farm).T)
    return LayoutProblem(WindFarm(builtin.site(), builtin.turbines()[turbine]), area, count, spacing_m=spacing)


def scaled(count):
    """Farm 0 with more turbines, its area larger about the centroid, so that the density stays."""
    import shapely

    from leeward.layout import Area, LayoutProblem

    ring = corners(0)
    centroid = np.array(shapely.Polygon(ring).centroid.coords[0])
    area = Area.from_arrays(*(centroid + np.sqrt(count / 66) * (ring - centroid)).T)
    return LayoutProblem(our_farm(), area, count, spacing_m=SPACING_M)


def iea37(count):
    """Case study 1 of IEA Wind Task 37."""
    from leeward.layout import Area, LayoutProblem
    from leeward.wind import Site, Turbine, WindFarm

    figures = iea37_figures()
    wind = figures["wind"]
    site = Site.from_table(wind["direction_deg"], wind["speed_m_s"], wind["probability"], wind["turbulence_intensity"])
    area = Area.circle(*figures["boundary_centre_m"], iea37_radius(count))
    farm = WindFarm(site, Turbine.iea37_3_35mw(), "iea37_gaussian")
    return LayoutProblem(farm, area, count, spacing_m=figures["min_spacing_m"])


def iea37_figures():
    import yaml

    return yaml.safe_load((DATA / "iea37-cs1.yaml").read_text(encoding="utf-8"))


def iea37_radius(count):
    return next(c["boundary_radius_m"] for c in iea37_figures()["cases"] if c["turbines"] == count)


def shape(name):
    """One of the invented areas with turbines of 10 MW, on the built-in site."""
    from leeward.campaign import builtin
    from leeward.layout import Area, LayoutProblem
    from leeward.wind import Turbine, WindFarm

    count, text = SHAPES[name]
    farm = WindFarm(builtin.site(), Turbine.iea37_10mw())
    return LayoutProblem(farm, Area.from_wkt(text), count, spacing_diameters=4.0)


def five_regions():
    """81 turbines of 10 MW in five invented regions, with the wind of IEA37 case study 3 in steps of one degree."""
    from leeward.layout import Area, LayoutProblem
    from leeward.wind import Site, Turbine, WindFarm

    figures = json.loads((DATA / "iea37-cs3.json").read_text(encoding="utf-8"))
    directions, known = np.arange(360.0), figures["direction_deg"]
    share = np.interp(directions, known, figures["direction_probability"], period=360.0)
    by_speed = [
        np.interp(directions, known, column, period=360.0)
        for column in np.transpose(figures["speed_probability_given_direction"])
    ]
    probability = (share / share.sum())[:, None] * np.transpose(by_speed)
    site = Site.from_table(directions, figures["speed_m_s"], probability, 0.075, kind="exact")
    farm = WindFarm(site, Turbine.iea37_10mw(), "iea37_gaussian")
    return LayoutProblem(farm, Area.from_wkt(FIVE_REGIONS), 81, spacing_m=figures["min_spacing_m"])


CASES = {f.__name__: f for f in (tender, scaled, iea37, shape, five_regions)}
FARM0 = ["tender", 0, 5, 66, SPACING_M]


# measurements


def optimised(case, seed, options, repeats=1):
    """Our optimiser on a case, [name, arguments ...]; the shortest of several whole calls of `optimise`."""
    from leeward.layout import LayoutProblem, optimise

    name, *arguments = case
    like = CASES[name](*arguments)
    optimise(
        LayoutProblem(like.farm, like.area, 6, spacing_m=like.min_distances_m[0]), 0, effort="fast"
    )  # loads, or compiles, all kernels
    seconds = []
    for _ in range(repeats):
        problem = CASES[name](*arguments)  # anew: what a problem keeps for later must not help the next call
        before = time.perf_counter()
        solution = optimise(problem, seed, **options)
        seconds.append(time.perf_counter() - before)
    return {
        "seconds": min(seconds),
        "aep_gwh": solution.aep_gwh,
        "wake_loss": solution.wake_loss,
        "steps": solution.steps,
        "phases": {phase.name: phase.aep_gwh for phase in solution.phases},
        "violation_m": problem.violation(solution.x, solution.y).worst_m,
        "x": solution.x.tolist(),
        "y": solution.y.tolist(),
    }


def our_step(steps):
    """Seconds a step of our stochastic descent, penalties included, from the SmartStart layout of farm 0."""
    from leeward.campaign import builtin
    from leeward.layout import descent
    from leeward.layout.objective import SAMPLE, Objective

    if SAMPLE != 100:
        raise SystemExit(f"a step of leeward takes {SAMPLE} conditions; this benchmark compares steps with 100")
    problem = CASES[FARM0[0]](*FARM0[1:])
    _, _, x, y = builtin.example_layout()
    objective, rng = Objective(problem), np.random.default_rng(0)
    settings = descent.Descent(steps, 0.06 * problem.mean_spacing_m)

    def descend():
        state = descent.start(problem, x, y)
        while not descent.done(settings, state):
            state = descent.step(problem, objective, settings, state, rng)

    descend()
    return {"seconds": fastest(descend, 10, seconds=10) / steps}


def peer_smart_start(count):
    """TopFarm's SmartStart on farm 0: its loop alone, without the set-up of a problem or the AEP at the end."""
    from topfarm.constraint_components.boundary import XYBoundaryConstraint
    from topfarm.cost_models.py_wake_wrapper import PyWakeAEPCostModelComponent
    from topfarm.utils import smart_start

    ring = corners(0)
    x, y = (c.ravel() for c in np.meshgrid(*(np.linspace(c.min(), c.max(), 18) for c in ring.T)))
    inside = XYBoundaryConstraint(ring, "polygon").get_comp(count).distances(x, y) >= 0
    x, y = x[inside], y[inside]
    yields = PyWakeAEPCostModelComponent(peer_farm(), count).get_aep4smart_start()

    def place(n):
        return smart_start(x, y, yields, n, SPACING_M, random_pct=30, seed=0, show_progress=False)

    place(2)  # what PyWake does only once
    before = time.perf_counter()
    placed = place(count)
    return {"seconds": time.perf_counter() - before, "x": list(map(float, placed[0])), "y": list(map(float, placed[1]))}


def peer_step(steps):
    """Seconds of the shortest step of TopFarm's stochastic descent on the same layout, set-up left out.

    100 conditions drawn from the site for the energy and another 100 for its gradient, as TopFarm's own example has it:
    its driver asks for both at every step.
    """
    from py_wake.utils.gradients import autograd
    from topfarm import TopFarmProblem
    from topfarm.constraint_components.boundary import XYBoundaryConstraint
    from topfarm.constraint_components.constraint_aggregation import DistanceConstraintAggregation
    from topfarm.cost_models.cost_model_wrappers import CostModelComponent
    from topfarm.easy_drivers import EasySGDDriver

    from leeward.campaign import builtin

    farm, ring = peer_farm(), corners(0)
    _, turbine, x, y = builtin.example_layout()
    wind, rng, seconds = builtin.figures("site.yaml"), np.random.default_rng(0), []

    def conditions():
        frequency, scale, k = (
            np.array(wind[key], dtype=float) for key in ("sector_frequency", "weibull_a_m_s", "weibull_k")
        )
        sector = rng.choice(len(frequency), 100, p=frequency / frequency.sum())
        width = 360.0 / len(frequency)
        direction = (sector * width + rng.uniform(-0.5 * width, 0.5 * width, 100)) % 360.0
        return {"wd": direction, "ws": scale[sector] * rng.weibull(k[sector]), "time": True}

    def energy(x, y, **_):
        return farm(x, y, **conditions()).aep().sum().item()

    def gradient(x, y, **_):
        return farm.aep_gradients(gradient_method=autograd, wrt_arg=["x", "y"], x=x, y=y, **conditions())

    class Timed(EasySGDDriver):
        def objective_callback(self, *arguments, **options):
            before = time.perf_counter()
            answer = super().objective_callback(*arguments, **options)
            seconds.append(time.perf_counter() - before)
            return answer

    problem = TopFarmProblem(
        design_vars={"x": x, "y": y},
        cost_comp=CostModelComponent(
            ["x", "y"], len(x), cost_function=energy, cost_gradient_function=gradient, maximize=True
        ),
        constraints=DistanceConstraintAggregation(
            XYBoundaryConstraint(ring, "polygon"), len(x), SPACING_M, farm.windTurbines
        ),
        driver=Timed(maxiter=steps, learning_rate=turbine.rotor_diameter_m / 5.0),
    )
    _, state, _ = problem.optimize()
    moved = np.hypot(state["x"] - x, state["y"] - y)
    if len(seconds) != steps or not moved.min() > 0.0:
        raise SystemExit(
            f"TopFarm took {len(seconds)} steps of {steps} and moved turbines by {moved.min():g} m or more"
        )
    return {"seconds": min(seconds)}


MEASUREMENTS = {f.__name__: f for f in (optimised, our_step, peer_smart_start, peer_step)}
