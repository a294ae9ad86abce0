"""Compile the GPU's kernels of scenarios."""

from typing import TYPE_CHECKING

from leeward.wind.gpu import case_kernels as loops
from leeward.wind.gpu.build import compiled
from leeward.wind.kernels.compile import once
from leeward.wind.kernels.formulas import result_type
from leeward.wind.kernels.rows import tuple_rows

if TYPE_CHECKING:
    from leeward.wind.wake_models.base import WakeModel


@once
def case_kernels(model: "type[WakeModel]") -> loops.CaseKernels:
    """Return the kernels of a model, shared by all studies of the process; each is compiled on its first call."""
    source_rows = tuple_rows(result_type(model.formulas.source))
    cases = loops.make_cases(model.formulas, source_rows)
    return loops.CaseKernels(compiled(cases, False), compiled(loops.add_farm, False))
