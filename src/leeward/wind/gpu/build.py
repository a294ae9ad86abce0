"""Compile the GPU's kernels of a wake model."""

from typing import TYPE_CHECKING, Any

import numba

from leeward.wind.gpu import device, field_kernels, gradient_kernels, kernels, map_kernels
from leeward.wind.gpu.single import in_single_precision
from leeward.wind.kernels.build import with_differences
from leeward.wind.kernels.compile import once
from leeward.wind.kernels.formulas import result_type
from leeward.wind.kernels.rows import tuple_rows

if TYPE_CHECKING:
    from leeward.wind.wake_models.base import WakeModel

MOST_REGISTERS = (
    128  # of a thread in single precision: with more, too few threads run at once to hide the latency of memory
)


@once
def device_kernels(model: "type[WakeModel]", single: bool) -> kernels.Device:
    """Return the kernels of a model, shared by all farms of the process; each is compiled on its first call.

    single: in single precision.
    """
    formulas = with_differences(model.formulas)
    source_rows = tuple_rows(result_type(formulas.source))
    number = numba.types.float32 if single else numba.types.float64
    loops = (
        kernels.make_arrange(number),
        kernels.make_forward(formulas, source_rows, number),
        kernels.make_finish(formulas, source_rows),
        gradient_kernels.make_backward(formulas, source_rows, number),
        map_kernels.make_worth(formulas, source_rows),
        map_kernels.make_points(formulas, source_rows, number),
        map_kernels.make_gains(formulas, source_rows),
    )
    every = (compiled(in_single_precision(loop) if single else loop, single) for loop in loops)
    sums = (kernels.add_groups, kernels.add_all)
    return kernels.Device(*every, *(compiled(loop, False) for loop in sums))


@once
def field_device_kernels() -> field_kernels.FieldDevice:
    """Return the kernels for wind that varies over the site; each is compiled on its first call."""
    return field_kernels.FieldDevice(
        *(compiled(getattr(field_kernels, name), False) for name in field_kernels.FieldDevice._fields)
    )


def compiled(function: Any, single: bool) -> Any:
    """Return a kernel to start on the GPU. single: in single precision."""
    from numba import cuda

    if device.is_simulated():
        return cuda.jit(function)
    return cuda.jit(function, max_registers=MOST_REGISTERS if single else None)
