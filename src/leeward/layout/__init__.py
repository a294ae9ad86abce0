"""Layouts: areas, constraints, and the optimiser that puts turbines where they yield most."""

from leeward.layout.area import Area
from leeward.layout.optimise import Solution, StopReason, optimise
from leeward.layout.problem import LayoutProblem, Violation
from leeward.layout.recipes import Phase, Progress
from leeward.layout.smart_start import SmartStart

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
