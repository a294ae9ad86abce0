"""Figures of layouts and campaigns, with matplotlib: PNG, SVG or PDF.

The functions `plot_...` draw plain data on a given Axes. The functions `..._figure` return a whole figure, which
`save_figure` writes to a file. Importing this package loads matplotlib but selects no backend and changes no setting.
"""

from leeward.plots.best import FarmLayout, best_layouts_figure, plot_best_layouts
from leeward.plots.convergence import Convergence, convergence_figure, plot_convergence
from leeward.plots.distribution import AepCell, aep_distribution_figure, plot_aep_distribution
from leeward.plots.flow import flow_figure, flow_grid, plot_flow
from leeward.plots.layout import PlacedTurbines, layout_figure, plot_layout, save_layout_picture
from leeward.plots.resource import plot_resource, resource_figure
from leeward.plots.rose import plot_wind_rose, wind_rose_figure
from leeward.plots.style import check_picture_path, save_figure

__all__ = [
    "AepCell",
    "Convergence",
    "FarmLayout",
    "PlacedTurbines",
    "aep_distribution_figure",
    "best_layouts_figure",
    "check_picture_path",
    "convergence_figure",
    "flow_figure",
    "flow_grid",
    "layout_figure",
    "plot_aep_distribution",
    "plot_best_layouts",
    "plot_convergence",
    "plot_flow",
    "plot_layout",
    "plot_resource",
    "plot_wind_rose",
    "resource_figure",
    "save_figure",
    "save_layout_picture",
    "wind_rose_figure",
]
