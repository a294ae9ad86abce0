"""Drawings as SVG text: no script, no font, no colour that a style sheet could not change."""

from leeward.pages.charts.axes import share_bar
from leeward.pages.charts.curves import convergence, rank_chart, strip_chart
from leeward.pages.charts.maps import farm_map, layout_plan, loss_scale, near_neighbours, neighbours_near
from leeward.pages.charts.rose import rose_chart, rose_key

__all__ = [
    "convergence",
    "farm_map",
    "layout_plan",
    "loss_scale",
    "near_neighbours",
    "neighbours_near",
    "rank_chart",
    "rose_chart",
    "rose_key",
    "share_bar",
    "strip_chart",
]
