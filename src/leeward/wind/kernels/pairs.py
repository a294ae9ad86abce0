"""Turbines in the coordinates of each wind direction, and pairs of turbines, one in the wake of the other."""

import math

import numpy as np

from leeward.wind.kernels.compile import allocating, formula
from leeward.wind.kernels.data import REACH_BINS, Batch, Lateral, Pairs, Place
from leeward.wind.kernels.formulas import Range

BINS, LAST_BIN = float(REACH_BINS), float(REACH_BINS - 1)
SAME_PLACE = 1e-10  # m: a point at most this far upstream of a turbine counts as in its plane, as in PyWake


@formula
def sort_along(values, order):
    """Sort `order`, indices into `values`, by value and then by index.

    Insertion sort is fast here: `order` starts sorted for a neighbouring wind direction, so few turbines move.
    """
    for i in range(1, len(order)):
        index = order[i]
        value = values[index]
        place = i
        while place > 0:
            before = order[place - 1]
            if values[before] < value or (values[before] == value and before < index):
                break
            order[place] = before
            place -= 1
        order[place] = index


@formula
def rotate(places, wind, g, along, across):
    """Fill in the downwind and crosswind coordinates (m) of all places in direction `g`."""
    cosine, sine = wind.cosine[g], wind.sine[g]
    for i in range(len(places.x)):
        along[i] = -cosine * places.x[i] - sine * places.y[i]
        across[i] = sine * places.x[i] - cosine * places.y[i]


@formula
def row_of(place, values):
    """Return the row of a place in values of shape (rows, ...), which have one row for all places or one for each."""
    return min(place, len(values) - 1)


@allocating
def by_rank(values, turbine, begin):
    """Return values of shape (rows, directions, lanes) from direction `begin` on, sorted by rank; one row stays one.

    turbine: the turbine of each rank, shape (directions, turbines). Result: shape (rows, elements).
    """
    directions, turbines = turbine.shape
    rows, lanes = values.shape[0], values.shape[2]
    elements = directions * lanes
    if rows <= 1:
        first = begin * lanes
        return values.reshape(values.size)[first : first + rows * elements].reshape((rows, elements))
    found = np.empty((turbines, elements))
    for g in range(directions):
        for rank in range(turbines):
            i = turbine[g, rank]
            for lane in range(lanes):
                found[rank, g * lanes + lane] = values[i, begin + g, lane]
    return found


@allocating
def arrange(places, wind, begin, end):
    """Return the turbines in the directions begin .. end, sorted downwind, with the wind conditions."""
    directions = end - begin
    turbines = len(places.x)
    shape = (directions, turbines)
    downwind, crosswind = np.empty(shape), np.empty(shape)
    turbine, kind = np.empty(shape, dtype=np.uint32), np.empty(shape, dtype=np.uint32)
    lateral = np.empty(shape, dtype=np.uint32)
    along, across = np.empty(turbines), np.empty(turbines)
    by_along = np.arange(turbines).astype(np.uint32)
    by_across = np.arange(turbines).astype(np.uint32)
    rank_of = np.empty(turbines, dtype=np.uint32)
    for g in range(directions):
        rotate(places, wind, begin + g, along, across)
        sort_along(along, by_along)
        sort_along(across, by_across)
        for rank in range(turbines):
            i = by_along[rank]
            rank_of[i] = rank
            downwind[g, rank] = along[i]
            crosswind[g, rank] = across[i]
            turbine[g, rank] = i
            kind[g, rank] = places.kind[i]
        for place in range(turbines):
            lateral[g, place] = rank_of[by_across[place]]
    return Batch(
        downwind,
        crosswind,
        turbine,
        kind,
        lateral,
        by_rank(wind.speed, turbine, begin),
        by_rank(wind.weight, turbine, begin),
        by_rank(wind.turbulence_intensity, turbine, begin),
        by_rank(wind.density, turbine, begin),
        by_rank(wind.scale, turbine, begin),
        wind.cosine[begin:end],
        wind.sine[begin:end],
        places.ground,
        places.stretch,
    )


@formula
def stretch_at(stretch, i, j):
    """Return the distance from place `i` to turbine `j` along the terrain, relative to the straight one."""
    return stretch[i, j] if len(stretch) else 1.0


@formula
def ground_at(ground, i):
    """Return the elevation of the terrain at the place with this index, m; 0 if it does not count."""
    return ground[i] if len(ground) else 0.0


@formula
def heights_of(place_kind, place_ground, source_kind, source_ground, kinds):
    """Return the height of a hub above another one and above the ground image of the other one, m."""
    height, source_height = kinds.hub_height[place_kind], kinds.hub_height[source_kind]
    rise = place_ground - source_ground
    return (height - source_height) + rise, (height + source_height) + rise


@formula
def reach_bin(downwind, longest):
    """Return the bin of `Model.reaches` for this downwind distance."""
    return int(min(max(downwind * (BINS / longest), 0.0), LAST_BIN))


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
def select_pairs(batch, model, lateral, pairs):
    """Fill in the wakes that count, with their downwind and crosswind distances."""
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
                if len(batch.stretch):
                    downwind *= batch.stretch[batch.turbine[g, rank], batch.turbine[g, upstream]]
                reach = model.reaches[lateral.kind[g, position], kind, reach_bin(downwind, model.longest)]
                pairs.source[count] = upstream
                pairs.downwind[count] = downwind
                pairs.crosswind[count] = crosswind
                # no branch: the next pair overwrites this one if it does not count
                count += (upstream < rank) & (crosswind * crosswind < reach)
            for e in range(begin, count):
                pairs.direction[e] = g
        pairs.first[rank + 1] = count


@formula
def heights_of_pair(batch, kinds, g, rank, source):
    """Return `heights_of` the turbine of a rank and its source, also a rank."""
    here, there = ground_at(batch.ground, batch.turbine[g, rank]), ground_at(batch.ground, batch.turbine[g, source])
    return heights_of(batch.kind[g, rank], here, batch.kind[g, source], there, kinds)


@formula
def measure_pairs(batch, kinds, pairs):
    """Fill in the distances from the axes, and the radius of the target."""
    for rank in range(batch.downwind.shape[1]):
        for e in range(pairs.first[rank], pairs.first[rank + 1]):
            g = pairs.direction[e]
            kind = batch.kind[g, rank]
            above, above_image = heights_of_pair(batch, kinds, g, rank, pairs.source[e])
            away = pairs.crosswind[e] * pairs.crosswind[e]
            pairs.distance[e] = math.sqrt(away + above**2)
            pairs.mirror_distance[e] = math.sqrt(away + above_image**2)
            pairs.radius[e] = 0.5 * kinds.diameter[kind]


@allocating
def new_pairs(turbines, room):
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
    pairs = new_pairs(turbines, room + 1)  # `select_pairs` writes a pair before it tests whether it counts
    select_pairs(batch, model, lateral, pairs)
    measure_pairs(batch, kinds, pairs)
    return pairs


@formula
def place_of(batch, g, rank):
    """Return the place of a turbine."""
    ground = ground_at(batch.ground, batch.turbine[g, rank])
    return Place(batch.downwind[g, rank], batch.crosswind[g, rank], batch.kind[g, rank], 1.0, ground)


@formula
def store_wake(turbine, place, source, stretch, kinds, model, found, count):
    """Store the wake of a turbine at position `count` if it reaches a place; return the new number of wakes.

    turbine, place: a `Place` each. source: the index to store. stretch: the factor of the downwind distance.
    """
    downwind, crosswind = (place.downwind - turbine.downwind) * stretch, place.crosswind - turbine.crosswind
    if abs(crosswind) >= model.widest:
        return count
    if crosswind * crosswind >= model.reaches[turbine.kind, place.kind, reach_bin(downwind, model.longest)]:
        return count
    above, above_image = heights_of(place.kind, place.ground, turbine.kind, turbine.ground, kinds)
    found.source[count] = source
    found.downwind[count] = downwind
    found.crosswind[count] = crosswind
    found.distance[count] = math.sqrt(crosswind * crosswind + above * above)
    found.mirror_distance[count] = math.sqrt(crosswind * crosswind + above_image * above_image)
    found.radius[count] = place.rotor * 0.5 * kinds.diameter[place.kind]
    return count + 1


@formula
def store_wakes(batch, g, ranks, place, stretch, i, by_turbine, kinds, model, found):
    """Store the wakes of the first `ranks` turbines of direction `g` that reach a place; return their number.

    place: a `Place`, the one with the index `i` in `stretch`. by_turbine: True stores the source as the turbine's
    index, False as its rank.
    """
    count = 0
    for rank in range(ranks):
        source = batch.turbine[g, rank] if by_turbine else np.uint32(rank)
        factor = stretch_at(stretch, i, batch.turbine[g, rank])
        count = store_wake(place_of(batch, g, rank), place, source, factor, kinds, model, found, count)
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
