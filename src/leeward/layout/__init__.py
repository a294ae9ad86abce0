"""Layouts: areas, constraints, and the optimiser."""

from leeward.lazy import lazy_names

__all__ = [
    "Area",
    "LayoutProblem",
    "Phase",
    "Progress",
    "SmartStart",
    "Solution",
    "StopReason",
    "Violation",
    "optimise",
]
__getattr__ = lazy_names(__name__, __file__)
