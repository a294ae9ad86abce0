"""The loop of the GPU over scenarios: the power of a target farm among neighbours that come and go.

An element is a row of the wind and a speed in a sample. One block of threads, a warp, computes an element, in the same
steps as `leeward.wind.kernels.cases`. First it finds the turbines that affect the target: it drops whole groups whose
circles are too far away, and then goes upstream from the target, wake by wake. It sorts these turbines, and computes
one after the other. The threads divide the wakes that reach a turbine, and add them up in a fixed order.

Indices are unsigned, as in `leeward.wind.gpu.kernels.element_of`.

Blocks take one element after the other and keep intermediate data in their own part of `Room`, which is small enough
to stay in the caches.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import cuda, types

from leeward.wind.gpu.case_data import THREADS
from leeward.wind.gpu.kernels import is_before, rotor_between
from leeward.wind.kernels.cases import AFFECTED, ALL, EXTERNAL, SHARED, TARGET
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.numerics import effective_speed, power_and_thrust
from leeward.wind.kernels.pairs import ground_at, reach_bin, row_of
from leeward.wind.kernels.rows import TupleRows

SUMS = 3 * THREADS  # numbers that the threads of a block share


class CaseKernels(NamedTuple):
    """The kernels of a wake model for scenarios; the functions below document their arguments."""

    cases: Any
    add_farm: Any


@formula
def circle_reaches(downwind, crosswind, radius, envelope, longest):
    """Return whether a wake from a circle may reach another, whose centre is so far downwind and crosswind, m.

    radius: the sum of both. envelope: see `cases`.
    """
    farthest = downwind + radius
    return farthest > 0.0 and abs(crosswind) < radius + envelope[np.uint32(reach_bin(farthest, longest))]


@formula
def wake_reaches(downwind, crosswind, kind, model):
    return crosswind * crosswind < model.reaches[kind, np.uint32(reach_bin(downwind, model.longest))]


@formula
def find_groups(samples, sample, wind, row, envelope, model, room):
    """Mark the groups that may affect the target, directly or through others. Return the number of groups."""
    block, thread, threads = np.uint32(cuda.blockIdx.x), cuda.threadIdx.x, cuda.blockDim.x
    begin = samples.begin[sample]
    groups = samples.begin[sample + 1] - begin
    cosine, sine = wind.cosine[row], wind.sine[row]
    for g in range(thread, groups, threads):
        x, y = samples.x[begin + g], samples.y[begin + g]
        room.group_along[block, g] = -cosine * x - sine * y
        room.group_across[block, g] = sine * x - cosine * y
        room.group_near[block, g] = 1 if g == 0 else 0
    cuda.syncthreads()
    is_growing = 1
    while is_growing:
        grows = 0
        for g in range(thread + 1, groups, threads):
            at = begin + g
            if room.group_near[block, g] == 0 and samples.first[at] <= row and row < samples.end[at]:
                along, across, radius = room.group_along[block, g], room.group_across[block, g], samples.radius[at]
                is_near = 0
                for h in range(groups):
                    if room.group_near[block, h]:
                        downwind = room.group_along[block, h] - along
                        crosswind = room.group_across[block, h] - across
                        both = samples.radius[begin + h] + radius
                        if circle_reaches(downwind, crosswind, both, envelope, model.longest):
                            is_near = 1
                if is_near:
                    room.group_near[block, g] = 1
                    grows = 1
        is_growing = cuda.syncthreads_or(grows)
    return groups


@formula
def add_member(catalogue, candidate, m, room):
    """Store a candidate as the member at position m; its coordinates stand there until the members are sorted."""
    block = np.uint32(cuda.blockIdx.x)
    room.found[block, candidate] = 1
    room.member[block, m] = candidate
    room.rank_along[block, m] = room.along[block, candidate]
    room.rank_across[block, m] = room.across[block, candidate]
    room.rank_kind[block, m] = catalogue.kind[room.place[block, candidate]]


@formula
def gather_candidates(catalogue, samples, sample, groups, wind, row, room):
    """Fill in the turbines of the marked groups, the target's first. Return their number."""
    block, thread, threads = np.uint32(cuda.blockIdx.x), cuda.threadIdx.x, cuda.blockDim.x
    cosine, sine = wind.cosine[row], wind.sine[row]
    count = 0
    for g in range(groups):
        if room.group_near[block, g]:
            at = samples.begin[sample] + g
            for k in range(thread, samples.count[at], threads):
                place, c = np.uint32(samples.place[at] + k), np.uint32(count + k)
                x, y = catalogue.x[place], catalogue.y[place]
                room.along[block, c] = -cosine * x - sine * y
                room.across[block, c] = sine * x - cosine * y
                room.place[block, c] = place
                room.found[block, c] = 0
                if g == 0:
                    add_member(catalogue, c, c, room)
            count += samples.count[at]
    cuda.syncthreads()
    return count


@formula
def find_members(catalogue, targets, candidates, model, room, counter):
    """Find the candidates whose wakes reach the target, directly or through others. Return their number with targets.

    Each wave goes through the members that the wave before has found. counter: an integer that the threads share.
    """
    block, thread, threads = np.uint32(cuda.blockIdx.x), cuda.threadIdx.x, cuda.blockDim.x
    if thread == 0:
        counter[0] = targets
    cuda.syncthreads()
    begin, end = 0, targets
    while begin < end:
        for candidate in range(thread, candidates, threads):
            c = np.uint32(candidate)
            if room.found[block, c] == 0:
                along, across = room.along[block, c], room.across[block, c]
                reaches = 0
                for other in range(begin, end):  # without branches, so that the memory can be read ahead
                    m = np.uint32(other)
                    downwind = room.rank_along[block, m] - along
                    crosswind = room.rank_across[block, m] - across
                    is_upstream = is_before(room.rank_along[block, m], room.member[block, m], along, c)
                    reaches |= is_upstream & wake_reaches(downwind, crosswind, room.rank_kind[block, m], model)
                if reaches:
                    add_member(catalogue, c, np.uint32(cuda.atomic.add(counter, 0, 1)), room)
        cuda.syncthreads()
        begin = end
        end = counter[0]
        cuda.syncthreads()
    return end


@formula
def sort_members(catalogue, members, room):
    """Sort the members downwind; the order in which they were found does not matter."""
    block, thread, threads = np.uint32(cuda.blockIdx.x), cuda.threadIdx.x, cuda.blockDim.x
    for m in range(thread, members, threads):
        c = room.member[block, np.uint32(m)]
        along, before = room.along[block, c], 0
        for other in range(members):
            j = room.member[block, np.uint32(other)]
            before += is_before(along, c, room.along[block, j], j)
        place, rank = room.place[block, c], np.uint32(before)
        room.number[block, rank] = c
        room.rank_along[block, rank] = along
        room.rank_across[block, rank] = room.across[block, c]
        room.rank_place[block, rank] = place
        room.rank_kind[block, rank] = catalogue.kind[place]
    cuda.syncthreads()


@formula
def add_threads(sums, first):
    """Fill sums[first] with the sum of an entry of each thread (their number is a power of 2), in a fixed order."""
    thread, half = cuda.threadIdx.x, cuda.blockDim.x // 2
    while half > 0:
        if thread < half:
            sums[first + thread] += sums[first + thread + half]
        cuda.syncthreads()
        half //= 2


def make_add_wakes(formulas: Any, source_rows: TupleRows) -> Any:
    wake_at, contribution, read = formulas.wake_at, formulas.contribution, source_rows.read_record

    @formula
    def add_wakes(catalogue, wind, row, lane, rank, kinds, model, room, sums):
        """Add the wakes that reach a rank: shared ones; others in the external case; and in the case `all`.

        Fill them in at positions 0, THREADS and 2 * THREADS of `sums`; return 1 if there are wakes that are not shared.
        """
        block, thread, threads = np.uint32(cuda.blockIdx.x), cuda.threadIdx.x, cuda.blockDim.x
        most, p = np.uint32(room.along.shape[1]), model.parameters
        along, across = room.rank_along[block, rank], room.rank_across[block, rank]
        place, kind = room.rank_place[block, rank], room.rank_kind[block, rank]
        height, ground, radius = kinds.hub_height[kind], ground_at(catalogue.ground, place), 0.5 * kinds.diameter[kind]
        shared, external, everything, others = 0.0, 0.0, 0.0, 0
        source, step, part = np.uint32(thread), np.uint32(threads), np.uint32(EXTERNAL)
        while source < rank:
            # go on to the next wake, so that threads evaluate theirs at the same time
            while source < rank and not wake_reaches(
                along - room.rank_along[block, source], across - room.rank_across[block, source], kind, model
            ):
                source = np.uint32(source + step)
            if source < rank:
                sort = room.sort[block, source]
                if sort == TARGET:
                    part = np.uint32(ALL)
                there, of = room.rank_place[block, source], room.rank_kind[block, source]
                rotor, _, _ = rotor_between(
                    along - room.rank_along[block, source],
                    across - room.rank_across[block, source],
                    height,
                    ground,
                    kinds.hub_height[of],
                    ground_at(catalogue.ground, there),
                    radius,
                )
                state = read(room.sources, block, np.uint32(part * most + source), 0)
                value = contribution(wake_at(rotor, state, p), p, model.table)
                if len(wind.scale):
                    value *= wind.scale[row_of(there, wind.scale), row, lane]
                if sort == SHARED:
                    shared += value
                elif part == EXTERNAL:
                    external += value
                else:
                    everything += value
                if sort != SHARED:
                    others = 1
                if sort == AFFECTED and part == EXTERNAL:
                    part = np.uint32(ALL)  # the same wake once more
                else:
                    source, part = np.uint32(source + step), np.uint32(EXTERNAL)
        sums[thread] = shared
        sums[THREADS + thread] = external
        sums[2 * THREADS + thread] = everything
        others = cuda.syncthreads_or(others)
        add_threads(sums, 0)
        if others:
            add_threads(sums, THREADS)
            add_threads(sums, 2 * THREADS)
        return others

    return add_wakes


def make_compute_rank(formulas: Any, source_rows: TupleRows) -> Any:
    source, write = formulas.source, source_rows.write_record

    @formula
    def compute_rank(wind, row, lane, rank, others, targets, sample, kinds, model, room, sums, power):
        """Compute the state of a rank from the sums; one thread for each case. Store the power of a target turbine."""
        block, case = np.uint32(cuda.blockIdx.x), np.uint32(cuda.threadIdx.x)
        number, place, kind = room.number[block, rank], room.rank_place[block, rank], room.rank_kind[block, rank]
        is_target = number < targets
        sort = TARGET if is_target else (AFFECTED if others else SHARED)
        if case == EXTERNAL or (case == ALL and sort != SHARED):
            total = sums[0]
            if others:
                total += sums[(1 + case) * THREADS]
            if len(wind.scale):
                total /= wind.scale[row_of(place, wind.scale), row, lane]
            free = wind.speed[row_of(place, wind.speed), row, lane]
            speed = effective_speed(free, total, model.squared)
            made, thrust = power_and_thrust(speed, kind, kinds.curves)
            if len(wind.density):
                density = wind.density[row_of(place, wind.density), row, lane]
                made, thrust = made * density, thrust * density
            if is_target:
                power[sample, case, number, np.uint32(row * np.uint32(wind.speed.shape[2]) + lane)] = made
            if not is_target or case == ALL:  # in the external case, the target has no thrust
                turbulence = wind.turbulence_intensity[row_of(place, wind.turbulence_intensity), row, lane]
                state = source(thrust, speed / free, kinds.diameter[kind], turbulence, model.parameters)
                write(room.sources, block, np.uint32(case * np.uint32(room.along.shape[1]) + rank), 0, state)
            if case == EXTERNAL:
                room.sort[block, rank] = sort
        cuda.syncthreads()

    return compute_rank


def make_cases(formulas: Any, source_rows: TupleRows) -> Any:
    add_wakes = make_add_wakes(formulas, source_rows)
    compute_rank = make_compute_rank(formulas, source_rows)

    def cases(catalogue, wind, samples, kinds, model, envelope, alone, queue, room, power):
        """Fill in the power (MW) of the target turbines of each sample, shape (samples, 2, turbines, elements).

        The cases are the external one and `all`. envelope: the largest crosswind reach (m) of any wake up to the end of
        each bin of the downwind distance. alone: the same of each target without neighbours, for elements in which no
        neighbour reaches the target; or no targets, to compute all elements. queue: the next element of all, 0 at the
        start; a block takes one after the other, since they differ in work. A block of up to THREADS threads, a power
        of 2, for each row of `room`.
        """
        counter = cuda.shared.array(2, types.int32)
        sums = cuda.shared.array(SUMS, types.float64)
        lanes = wind.speed.shape[2]
        elements = len(wind.cosine) * lanes
        tasks = len(samples.target) * elements
        while True:
            if cuda.threadIdx.x == 0:
                counter[1] = cuda.atomic.add(queue, 0, 1)
            cuda.syncthreads()
            task = counter[1]
            if task >= tasks:
                break
            sample, element = np.uint32(task // elements), np.uint32(task % elements)
            row, lane = np.uint32(element // np.uint32(lanes)), np.uint32(element % np.uint32(lanes))
            targets = samples.count[samples.begin[sample]]
            groups = find_groups(samples, sample, wind, row, envelope, model, room)
            candidates = gather_candidates(catalogue, samples, sample, groups, wind, row, room)
            members = find_members(catalogue, targets, candidates, model, room, counter)
            if members == targets and len(alone):
                for i in range(cuda.threadIdx.x, targets, cuda.blockDim.x):
                    for case in range(2):
                        power[sample, case, i, element] = alone[samples.target[sample], case, i, element]
            else:
                sort_members(catalogue, members, room)
                for number in range(members):
                    rank = np.uint32(number)
                    others = add_wakes(catalogue, wind, row, lane, rank, kinds, model, room, sums)
                    compute_rank(wind, row, lane, rank, others, targets, sample, kinds, model, room, sums, power)
            cuda.syncthreads()  # before the room and the counter are used again

    return cases


def add_farm(power, samples, wind, farm):
    """Fill in the power (MW) of the target, shape (samples, parts, elements), from that of its turbines.

    The parts are the cases of `power`; if there are four, then come the same with the weight of each element at each
    turbine. A thread for each element of farm.
    """
    at = cuda.grid(1)
    elements, parts = farm.shape[2], farm.shape[1]
    sample, part, element = at // (parts * elements), (at // elements) % parts, at % elements
    if sample < len(samples.target):
        group = samples.begin[sample]
        first, lanes = samples.place[group], wind.speed.shape[2]
        row, lane = element // lanes, element % lanes
        total = 0.0
        for i in range(samples.count[group]):
            value = power[sample, part % 2, i, element]
            if part >= 2:
                value *= wind.weight[row_of(first + i, wind.weight), row, lane]
            total += value
        farm[sample, part, element] = total
