"""Drawings as SVG text: no script, no font, no colour that a style sheet could not change."""

from leeward.pages.charts.curves import AEP, CAPACITY_FACTOR, Quantity, convergence, is_curve, rank_chart, strip_chart
from leeward.pages.charts.maps import farm_map, neighbours_near
from leeward.pages.charts.plan import layout_plan, loss_range, loss_scale, near_neighbours
from leeward.pages.charts.rose import rose_chart, rose_key
from leeward.pages.charts.shares import share_bar

__all__ = [
    "AEP",
    "CAPACITY_FACTOR",
    "Quantity",
    "convergence",
    "farm_map",
    "is_curve",
    "layout_plan",
    "loss_range",
    "loss_scale",
    "near_neighbours",
    "neighbours_near",
    "rank_chart",
    "rose_chart",
    "rose_key",
    "share_bar",
    "strip_chart",
]
