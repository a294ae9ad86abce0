from leeward.layout.area import Area as Area
from leeward.layout.driver import Solution as Solution, StopReason as StopReason, optimise as optimise
from leeward.layout.problem import LayoutProblem as LayoutProblem, Violation as Violation
from leeward.layout.search import Phase as Phase, Progress as Progress
from leeward.layout.smart_start import SmartStart as SmartStart
