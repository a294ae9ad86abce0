"""Pairs of turbines, one in the wake of the other."""

import math

import numpy as np

from leeward.wind.kernels.compile import allocating, formula
from leeward.wind.kernels.data import REACH_BINS, Lateral, Pairs
from leeward.wind.kernels.formulas import Range

SAME_PLACE = 1e-10  # m: a point this little upstream of a turbine counts as in its plane, as in PyWake


@formula
def reach_bin(downwind, longest):
    """Return the bin of `Model.reaches` for this downwind distance."""
    return int(min(max(downwind * (REACH_BINS / longest), 0.0), REACH_BINS - 1.0))


@formula
def order_laterally(batch, widest, lateral):
    """Sort the turbines by crosswind, find for each the others less than `widest` away, and return their number."""
    directions, turbines = batch.downwind.shape
    count = 0
    for g in range(directions):
        for position in range(turbines):
            rank = batch.lateral[g, position]
            lateral.downwind[g, position] = batch.downwind[g, rank]
            lateral.crosswind[g, position] = batch.crosswind[g, rank]
            lateral.kind[g, position] = batch.kind[g, rank]
        begin = 0
        end = 0
        for position in range(turbines):
            target = lateral.crosswind[g, position]
            while begin < position and target - lateral.crosswind[g, begin] >= widest:
                begin += 1
            while end < turbines and lateral.crosswind[g, end] - target < widest:
                end += 1
            rank = batch.lateral[g, position]
            lateral.begin[g, rank] = begin
            lateral.end[g, rank] = end
            count += max(end - position - 1, 0)
    return count


@formula
def mark_pairs(batch, model, lateral, pairs):
    """Fill in the wakes that count, and their distances downwind and crosswind."""
    directions, turbines = batch.downwind.shape
    count = 0
    for rank in range(turbines):
        for g in range(directions):
            kind = batch.kind[g, rank]
            target_downwind = batch.downwind[g, rank]
            target_crosswind = batch.crosswind[g, rank]
            begin = count
            for position in range(lateral.begin[g, rank], lateral.end[g, rank]):
                downwind = target_downwind - lateral.downwind[g, position]
                crosswind = target_crosswind - lateral.crosswind[g, position]
                upstream = batch.lateral[g, position]
                reach = model.reaches[lateral.kind[g, position], kind, reach_bin(downwind, model.longest)]
                pairs.source[count] = upstream
                pairs.downwind[count] = downwind
                pairs.crosswind[count] = crosswind
                # no branch: the next pair overwrites one that does not count
                count += (upstream < rank) & (crosswind * crosswind < reach)
            for e in range(begin, count):
                pairs.direction[e] = g
        pairs.first[rank + 1] = count


@formula
def measure_pairs(batch, kinds, pairs):
    """Fill in the distances from the axes, and the radius of the target."""
    for rank in range(batch.downwind.shape[1]):
        for e in range(pairs.first[rank], pairs.first[rank + 1]):
            g = pairs.direction[e]
            kind = batch.kind[g, rank]
            height = kinds.hub_height[kind]
            source_height = kinds.hub_height[batch.kind[g, pairs.source[e]]]
            away = pairs.crosswind[e] * pairs.crosswind[e]
            pairs.distance[e] = math.sqrt(away + (height - source_height) ** 2)
            pairs.mirror_distance[e] = math.sqrt(away + (height + source_height) ** 2)
            pairs.radius[e] = 0.5 * kinds.diameter[kind]


@allocating
def room_for_pairs(turbines, room):
    return Pairs(
        np.zeros(turbines + 1, dtype=np.int64),
        np.zeros(room, dtype=np.uint32),
        np.empty(room, dtype=np.uint32),
        np.empty(room),
        np.empty(room),
        np.empty(room),
        np.empty(room),
        np.empty(room),
    )


@allocating
def find_pairs(batch, kinds, model):
    """Return the wakes that count."""
    directions, turbines = batch.downwind.shape
    lateral = Lateral(
        np.empty((directions, turbines)),
        np.empty((directions, turbines)),
        np.empty((directions, turbines), dtype=np.uint32),
        np.empty((directions, turbines), dtype=np.uint32),
        np.empty((directions, turbines), dtype=np.uint32),
    )
    room = order_laterally(batch, model.widest, lateral)
    pairs = room_for_pairs(turbines, room + 1)  # `mark_pairs` writes a pair before it knows whether it counts
    mark_pairs(batch, model, lateral, pairs)
    measure_pairs(batch, kinds, pairs)
    return pairs


@formula
def note_pair(downwind, crosswind, source_kind, kind, source, rotor, kinds, model, found, count):
    """Store a wake at position `count` if it reaches this far; return the new number of wakes.

    rotor: 1.0 to average over the rotor of the turbine there, 0.0 for the wind speed at its hub.
    """
    if abs(crosswind) >= model.widest:
        return count
    if crosswind * crosswind >= model.reaches[source_kind, kind, reach_bin(downwind, model.longest)]:
        return count
    above = kinds.hub_height[kind] - kinds.hub_height[source_kind]
    mirrored = kinds.hub_height[kind] + kinds.hub_height[source_kind]
    found.source[count] = source
    found.downwind[count] = downwind
    found.crosswind[count] = crosswind
    found.distance[count] = math.sqrt(crosswind * crosswind + above * above)
    found.mirror_distance[count] = math.sqrt(crosswind * crosswind + mirrored * mirrored)
    found.radius[count] = rotor * 0.5 * kinds.diameter[kind]
    return count + 1


@formula
def note_wakes(batch, g, ranks, place, by_turbine, kinds, model, found):
    """Store the wakes of the first `ranks` turbines of direction `g` that reach a place; return their number.

    place: a `Place`. by_turbine: True stores the source as the turbine's index, False as its rank.
    """
    count = 0
    for rank in range(ranks):
        source = batch.turbine[g, rank] if by_turbine else np.uint32(rank)
        count = note_pair(
            place.downwind - batch.downwind[g, rank],
            place.crosswind - batch.crosswind[g, rank],
            batch.kind[g, rank],
            place.kind,
            source,
            place.rotor,
            kinds,
            model,
            found,
            count,
        )
    return count


@formula
def ranks_upstream(batch, g, downwind):
    """Return the number of turbines upstream of a place, or in its plane."""
    ranks = 0
    while ranks < batch.downwind.shape[1] and downwind - batch.downwind[g, ranks] > -SAME_PLACE:
        ranks += 1
    return ranks


def make_reaches(reach):
    def reaches(kinds, parameters, radii, longest, turbulence_low, turbulence_high):
        """Return the squared crosswind reach (m^2) of wakes; shape (types, radii, REACH_BINS) over 0 .. longest m."""
        squares = np.empty((len(kinds.diameter), len(radii), REACH_BINS))
        for kind in range(len(kinds.diameter)):
            low, high, diameter = kinds.thrust_low[kind], kinds.thrust_high[kind], kinds.diameter[kind]
            for target in range(len(radii)):
                for i in range(REACH_BINS):
                    widest = 0.0
                    for end in (i, i + 1):
                        for turbulence in (turbulence_low, turbulence_high):
                            at = Range(end * longest / REACH_BINS, low, high, diameter, turbulence, radii[target])
                            widest = max(widest, reach(at, parameters))
                    squares[kind, target, i] = widest * widest
        return squares

    return reaches
