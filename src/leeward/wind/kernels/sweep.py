"""The loops: from positions to effective wind speeds and energy.

A batch is a number of wind directions, each with one or more wind speeds (*lanes*). The loops visit turbines by rank
downwind, from the most upstream one on, in all directions at once. The wakes that count (*pairs*) are found first and
sorted by the rank of the turbine they reach. The inputs of a few pairs are gathered side by side, an *element* for each
pair and lane; `wake_at` runs over the elements in a vector loop, `contribution` in a scalar one. With several lanes,
one pair is gathered at a time; with one lane, many.

A function `make_...` returns a loop for one set of formulas, because compiled functions are slow when passed as
arguments. Only functions marked as allocating create arrays: numba counts references to arrays in any other function
that might create one, and that costs more than the arithmetic. The rows of scratch arrays have a constant length, so
that the compiler can tell that they do not overlap.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from leeward.wind.kernels.compile import allocating, allocating_inline, formula
from leeward.wind.kernels.data import ELEMENTS, Scratch, Solved, State
from leeward.wind.kernels.formulas import Formulas, Rotor, result_type
from leeward.wind.kernels.numerics import effective_speed, power_and_thrust
from leeward.wind.kernels.pairs import arrange, find_pairs, row_of
from leeward.wind.kernels.rows import TupleRows, tuple_rows

ROTOR_ROWS = tuple_rows(Rotor)
SOURCE = ROTOR_ROWS.size  # the first row of the sources in `Scratch.gathered`
read_rotor, write_rotor = ROTOR_ROWS.read, ROTOR_ROWS.write


class Sweep(NamedTuple):
    """The functions that the kernels of one set of formulas share; see `make_...`."""

    source: Callable[..., Any]
    source_rows: TupleRows
    gather: Callable[..., Any]
    add_wakes: Callable[..., Any]
    compute_rank: Callable[..., Any]
    new_scratch: Callable[..., Any]
    solve: Callable[..., Any]


def make_sweep(formulas: Formulas) -> Sweep:
    """Return the shared functions for these formulas."""
    source_rows = tuple_rows(result_type(formulas.source))
    wake_rows = tuple_rows(result_type(formulas.wake_at))
    gather = make_gather(source_rows)
    add_wakes = make_add_wakes(formulas, source_rows, wake_rows, gather)
    compute_rank = make_compute_rank(formulas, source_rows)
    new_scratch = make_new_scratch(source_rows.size, wake_rows.size)
    solve = make_solve(source_rows.size, new_scratch, add_wakes, compute_rank)
    return Sweep(formulas.source, source_rows, gather, add_wakes, compute_rank, new_scratch, solve)


@allocating
def new_state(batch, rows):
    """Allocate the results of each turbine, direction and lane."""
    turbines = batch.downwind.shape[1]
    elements = batch.speed.shape[1]
    shape = (turbines, elements)
    return State(
        np.zeros(shape), np.empty(shape), np.empty(shape), np.empty(shape), np.empty((turbines, rows, elements))
    )


@formula
def lanes_of(batch):
    return batch.speed.shape[1] // len(batch.cosine)


@formula
def by_turbine(batch, by_rank, values):
    """Reorder values of shape (turbines, elements) from ranks to turbines."""
    directions, turbines = batch.downwind.shape
    lanes = lanes_of(batch)
    for rank in range(turbines):
        for g in range(directions):
            i = batch.turbine[g, rank]
            for k in range(g * lanes, (g + 1) * lanes):
                values[i, k] = by_rank[rank, k]


@formula
def add_power(batch, state, mean_power):
    """Add the weighted power of each turbine to `mean_power`."""
    directions, turbines = batch.downwind.shape
    lanes = lanes_of(batch)
    for rank in range(turbines):
        for g in range(directions):
            total = 0.0
            weight = batch.weight[row_of(rank, batch.weight)]
            for k in range(g * lanes, (g + 1) * lanes):
                total += weight[k] * state.power[rank, k]
            mean_power[batch.turbine[g, rank]] += total


@formula
def gather_rotors(pairs, begin, end, lanes, gathered):
    """Gather the rotors of the pairs begin .. end, which are one pair if there are several lanes."""
    if lanes == 1:
        for e in range(begin, end):
            rotor = Rotor(pairs.downwind[e], pairs.distance[e], pairs.mirror_distance[e], pairs.radius[e])
            write_rotor(gathered, 0, e - begin, rotor)
    else:
        rotor = Rotor(pairs.downwind[begin], pairs.distance[begin], pairs.mirror_distance[begin], pairs.radius[begin])
        for k in range(lanes):
            write_rotor(gathered, 0, k, rotor)


def make_gather(source_rows):
    read_source, write_source = source_rows.read, source_rows.write

    @formula
    def gather(pairs, begin, end, lanes, sources, row, gathered, into):
        """Gather the sources of the pairs begin .. end from `row` on; one pair if there are several lanes.

        into: the first row of `gathered` to fill.
        """
        if lanes == 1:
            for e in range(begin, end):
                source = read_source(sources[pairs.source[e]], row, pairs.direction[e])
                write_source(gathered, into, e - begin, source)
        else:
            of_turbine = sources[pairs.source[begin]]
            at = np.uint64(pairs.direction[begin]) * np.uint64(lanes)  # unsigned, as Indices are
            for k in range(lanes):
                write_source(gathered, into, k, read_source(of_turbine, row, at + np.uint64(k)))

    return gather


def make_add_wakes(formulas, source_rows, wake_rows, gather):
    wake_at, contribution = formulas.wake_at, formulas.contribution
    read_source, read_wake, write_wake = source_rows.read, wake_rows.read, wake_rows.write

    @formula
    def add_wakes(pairs, begin, end, lanes, sources, scale, totals, model, scratch):
        """Add the contributions of the pairs begin .. end to `totals` (elements,).

        scale: of each source, shape (sources, elements): its contributions are multiplied by it, if there are rows.
        """
        p = model.parameters
        gathered, wakes = scratch.gathered, scratch.wakes
        step = ELEMENTS if lanes == 1 else 1
        for start in range(begin, end, step):
            stop = min(start + step, end)
            gather_rotors(pairs, start, stop, lanes, gathered)
            gather(pairs, start, stop, lanes, sources, 0, gathered, SOURCE)
            for k in range((stop - start) * lanes):
                write_wake(wakes, 0, k, wake_at(read_rotor(gathered, 0, k), read_source(gathered, SOURCE, k), p))
            for e in range(start, stop):
                at = np.uint64(pairs.direction[e]) * np.uint64(lanes)
                first = np.uint64(e - start) * np.uint64(lanes)
                if len(scale):
                    of_source = scale[pairs.source[e]]
                    for lane in range(lanes):
                        wake = read_wake(wakes, 0, first + np.uint64(lane))
                        value = contribution(wake, p, model.table)
                        totals[at + np.uint64(lane)] += value * of_source[at + np.uint64(lane)]
                else:
                    for lane in range(lanes):
                        wake = read_wake(wakes, 0, first + np.uint64(lane))
                        totals[at + np.uint64(lane)] += contribution(wake, p, model.table)

    return add_wakes


@formula
def divide_by_scale(totals, scale, row):
    """Make totals (elements,) relative to the free speed at their place again, see `Wind`. row: of the place."""
    if len(scale):
        here = scale[row_of(row, scale)]
        for k in range(len(totals)):
            totals[k] /= here[k]


def make_compute_rank(formulas, source_rows):
    source, write_source = formulas.source, source_rows.write

    @formula
    def compute_rank(batch, kinds, model, rank, state, diameters):
        """Compute speed, power, thrust and source of all turbines of this rank from their totals.

        diameters: scratch array for one row of elements.
        """
        lanes = lanes_of(batch)
        elements = batch.speed.shape[1]
        free = batch.speed[row_of(rank, batch.speed)]
        turbulence_intensity = batch.turbulence_intensity[row_of(rank, batch.turbulence_intensity)]
        for k in range(elements):
            state.speeds[rank, k] = effective_speed(free[k], state.totals[rank, k], model.squared)
        for g in range(len(batch.cosine)):
            kind = batch.kind[g, rank]
            for k in range(g * lanes, (g + 1) * lanes):
                diameters[k] = kinds.diameter[kind]
                speed = state.speeds[rank, k]
                state.power[rank, k], state.thrust[rank, k] = power_and_thrust(speed, kind, kinds.curves)
        if len(batch.density):
            density = batch.density[row_of(rank, batch.density)]
            for k in range(elements):
                state.power[rank, k] *= density[k]
                state.thrust[rank, k] *= density[k]
        sources = state.sources[rank]
        for k in range(elements):
            made = source(
                state.thrust[rank, k],
                state.speeds[rank, k] / free[k],
                diameters[k],
                turbulence_intensity[k],
                model.parameters,
            )
            write_source(sources, 0, k, made)

    return compute_rank


def make_new_scratch(source_count, wake_count):
    @allocating_inline
    def new_scratch():
        return Scratch(
            np.empty((SOURCE + source_count, ELEMENTS)), np.empty((wake_count, ELEMENTS)), np.empty(ELEMENTS)
        )

    return new_scratch


def make_solve(source_count, new_scratch, add_wakes, compute_rank):
    @allocating_inline
    def solve(places, wind, begin, end, kinds, model):
        """Compute all turbines in the directions begin .. end, from the most upstream ones on."""
        batch = arrange(places, wind, begin, end)
        pairs = find_pairs(batch, kinds, model)
        state = new_state(batch, source_count)
        scratch = new_scratch()
        lanes = lanes_of(batch)
        for rank in range(batch.downwind.shape[1]):
            first, last = pairs.first[rank], pairs.first[rank + 1]
            add_wakes(pairs, first, last, lanes, state.sources, batch.scale, state.totals[rank], model, scratch)
            divide_by_scale(state.totals[rank], batch.scale, rank)
            compute_rank(batch, kinds, model, rank, state, scratch.spare)
        return Solved(batch, pairs, state, scratch)

    return solve


def make_energy(sweep: Sweep):
    solve = sweep.solve

    def energy(places, wind, begin, end, kinds, model, mean_power, speeds):
        """Add the weighted power (MW) of each turbine in the directions begin .. end to `mean_power` (turbines,).

        Fill `speeds` (m/s), shape (turbines, elements), unless it is empty.
        """
        solved = solve(places, wind, begin, end, kinds, model)
        add_power(solved.batch, solved.state, mean_power)
        if speeds.size:
            by_turbine(solved.batch, solved.state.speeds, speeds)

    return energy
