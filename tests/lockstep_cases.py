"""A backend for tasks in lock step that calls the functions of `optimise`, one task after the other."""

from collections import Counter

import numpy as np

from leeward.layout import descent, smart_start
from leeward.layout.lockstep import Measured, Placed, Relocated, Repaired
from leeward.layout.objective import Objective
from leeward.layout.relocation import relocate


class Recording(Objective):
    """An objective that remembers the numbers of places it was asked about."""

    def __init__(self, problem):
        super().__init__(problem)
        self.places = []

    def map_work(self, places):
        self.places.append(places)
        return super().map_work(places)

    def gain(self, x, y, moved, at_x, at_y):
        self.places.append(len(at_x))
        return super().gain(x, y, moved, at_x, at_y)


class CpuBackend:
    """calls, computed: the calls and the requests of each kind."""

    def __init__(self):
        self.calls, self.computed = Counter(), Counter()
        self._objectives = {}

    def _objective(self, search):
        """Return an objective of the task's own, as the search counts the work itself."""
        if search.task not in self._objectives:
            self._objectives[search.task] = Recording(search.problem)
        objective = self._objectives[search.task]
        objective.places = []
        return objective

    def _each(self, name, batch, function):
        self.calls[name] += 1
        self.computed[name] += len(batch)
        answers = []
        for search, request in batch:
            try:
                answers.append(function(search, request, self._objective(search)))
            except Exception as error:
                answers.append(error)
        return answers

    def place(self, batch):
        def one(search, request, objective):
            steps = list(smart_start.place(search.problem, objective, request.options, request.seed))
            x, y = steps[-1] if steps else ([], [])
            return Placed(x, y, [places - standing for standing, places in enumerate(objective.places)])

        return self._each("place", batch, one)

    def relocate(self, batch):
        def one(search, request, objective):
            found = relocate(search.problem, objective, request.x, request.y, request.count, request.chance, search.rng)
            return Relocated(*found, objective.places)

        return self._each("relocate", batch, one)

    def repair(self, batch):
        def one(search, request, objective):
            x, y = search.problem.repaired(request.x, request.y)
            return Repaired(x, y, search.problem.violation(x, y).worst_m)

        return self._each("repair", batch, one)

    def estimate(self, batch):
        return self._each("estimate", batch, lambda search, request, o: [o.estimate(*xy) for xy in request.layouts])

    def judge(self, batch):
        return self._each("judge", batch, lambda search, request, o: o.judge(request.x, request.y)[1])

    def full(self, batch):
        nowhere = (float("nan"), float("nan"))
        return self._each("full", batch, lambda search, request, o: o.full(request.x, request.y, nowhere)[1])

    def measure(self, batch):
        """Return AEP and wake loss of the final layouts."""
        simulations = [search.problem.farm.simulate(request.x, request.y) for search, request in batch]
        return [Measured(each.total_aep_gwh, each.total_wake_loss) for each in simulations]

    def descend(self, batch):
        assert len({request.settings.judged for _, request in batch}) == 1

        def one(search, request, objective):
            state = request.state
            for _ in range(request.steps):
                state = descent.step(search.problem, objective, request.settings, state, search.rng)
                if not np.isfinite(state.aep_gwh):
                    break
            return state

        return self._each("descend", batch, one)
