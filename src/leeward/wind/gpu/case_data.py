"""Arguments of the GPU's kernels of scenarios: tuples of arrays. Importing this module does not import numba."""

from typing import NamedTuple

from leeward.wind.gpu.data import Values

THREADS = 32  # of a block that computes a row: one warp, in which the threads wait for each other at no cost


class Catalogue(NamedTuple):
    """The turbines of all layouts; shape (places,). x, y: m, relative to a point nearby; kind: type.

    ground: elevation of the terrain, m; empty if it does not count.
    """

    x: Values
    y: Values
    kind: Values
    ground: Values


class Samples(NamedTuple):
    """Scenarios to compute together. A sample has several groups of turbines; the first one is its target.

    begin: the first group of each sample and the end of the last, shape (samples + 1,). target: index of its target in
    `alone`, shape (samples,). The others: shape (groups,). place: the first turbine in the catalogue; count: of
    turbines; first, end: rows of the wind in which the group stands. x, y, radius: a circle around it, m.
    """

    begin: Values
    target: Values
    place: Values
    count: Values
    first: Values
    end: Values
    x: Values
    y: Values
    radius: Values


class Room(NamedTuple):
    """Memory of each block. Shape (blocks, groups) or (blocks, turbines); of `sources` (blocks, 2 x turbines, fields).

    group_along, group_across: downwind and crosswind coordinates of the centres, m; group_near: 1 if a group may affect
    the target. along, across, place: of all turbines in these groups, which are candidates; found: 1 if a candidate
    affects the target; member: those candidates. The rest is sorted downwind. number: of the candidate; rank_...: its
    coordinates, place in the catalogue and type; sort: the class of its wake, as in `leeward.wind.kernels.cases`;
    sources: in the external case, then those in the case `all`.
    """

    group_along: Values
    group_across: Values
    group_near: Values
    along: Values
    across: Values
    place: Values
    found: Values
    member: Values
    number: Values
    rank_along: Values
    rank_across: Values
    rank_place: Values
    rank_kind: Values
    sort: Values
    sources: Values
