"""Turbines in the coordinates of each wind direction, sorted."""

import numpy as np

from leeward.wind.kernels.compile import allocating, formula
from leeward.wind.kernels.data import Batch


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
def turn(places, wind, g, along, across):
    """Fill in the downwind and crosswind coordinates (m) of all places in direction `g`."""
    cosine, sine = wind.cosine[g], wind.sine[g]
    for i in range(len(places.x)):
        along[i] = -cosine * places.x[i] - sine * places.y[i]
        across[i] = sine * places.x[i] - cosine * places.y[i]


@allocating
def arrange(places, wind, begin, end):
    """Return the turbines in the directions begin .. end, sorted downwind, with the wind conditions."""
    directions = end - begin
    turbines = len(places.x)
    lanes = wind.speed.shape[1]
    shape = (directions, turbines)
    downwind, crosswind = np.empty(shape), np.empty(shape)
    turbine, kind = np.empty(shape, dtype=np.uint32), np.empty(shape, dtype=np.uint32)
    lateral = np.empty(shape, dtype=np.uint32)
    along, across = np.empty(turbines), np.empty(turbines)
    by_along = np.arange(turbines).astype(np.uint32)
    by_across = np.arange(turbines).astype(np.uint32)
    rank_of = np.empty(turbines, dtype=np.uint32)
    for g in range(directions):
        turn(places, wind, begin + g, along, across)
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
        wind.speed[begin:end].reshape(directions * lanes),
        wind.weight[begin:end].reshape(directions * lanes),
        wind.turbulence_intensity[begin:end].reshape(directions * lanes),
        wind.cosine[begin:end],
        wind.sine[begin:end],
    )
