"""Do the turbines fit into the area? A quick packing tells, before anything is optimised."""

from dataclasses import dataclass

import numpy as np

from leeward.layout import starts
from leeward.layout.problem import LayoutProblem


@dataclass(frozen=True)
class Room:
    """fits: a layout of all turbines exists. packed: how many turbines a quick packing placed if it does not."""

    fits: bool
    packed: int


def room_for(problem: LayoutProblem) -> Room:
    """Return whether all turbines fit, by the placements that the recipes themselves start with."""
    wanted = problem.n_turbines
    apart = float(problem.room.max())
    has_neighbours = len(problem.room) > wanted
    # In a packing to which no turbine can be added, discs of the spacing's radius cover the area.
    if not has_neighbours and wanted * np.pi * apart**2 <= problem.area.area_m2:
        return Room(True, wanted)
    packed = len(starts.densest_lattice(problem)[0])
    if packed >= wanted:
        return Room(True, wanted)
    nowhere = np.empty(0)
    x, y = problem.repaired(*starts.fill_at_random(problem, nowhere, nowhere, np.random.default_rng(0)))
    return Room(problem.violation(x, y).is_feasible, packed)
