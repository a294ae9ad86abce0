"""Find the GPUs of this machine, and say what is missing. Importing this module does not import numba."""

import ctypes
import importlib.util
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from leeward.errors import InputError

SIMULATED_BYTES = 1 << 30  # memory of the simulated GPU
INSTALL = "pip install 'leeward[gpu]'"
INSTALL_12 = "pip install 'numba-cuda[cu12]'"


@dataclass(frozen=True)
class Gpu:
    """A GPU. driver: version of the NVIDIA driver; cuda: newest CUDA that it supports; both "" if not known."""

    name: str
    compute_capability: tuple[int, int]
    total_bytes: int
    free_bytes: int
    driver: str
    cuda: str


def is_simulated() -> bool:
    """Return whether GPU kernels run in the simulator of numba-cuda (NUMBA_ENABLE_CUDASIM=1)."""
    import numba

    return bool(numba.config.ENABLE_CUDASIM)  # type: ignore[attr-defined]


def require() -> None:
    """Raise InputError, which says what is missing and what to do, if no GPU can be used. Accept the simulator."""
    cuda = _numba_cuda()
    if is_simulated():
        return
    _check_driver(cuda)
    _check_toolkit(cuda)
    if not hasattr(np, "row_stack"):  # numba-cuda registers it when it compiles the first kernel
        raise InputError(
            f"numba-cuda does not work with numpy {np.__version__}: it needs np.row_stack, which numpy 2.5 removed; "
            "pip install 'numpy<2.5'"
        )
    _check_gpu(cuda)


def gpus() -> list[Gpu]:
    """Return the GPUs that this process can use. Raise InputError like `require` if there are none."""
    require()
    from numba import cuda

    if is_simulated():
        return [Gpu("simulator of numba-cuda", (0, 0), SIMULATED_BYTES, SIMULATED_BYTES, "", "")]
    driver, newest = _driver_version(), "{}.{}".format(*_driver(cuda).get_version())
    found = []
    for device in cuda.gpus:
        with device:
            memory = cuda.current_context().get_memory_info()
        major, minor = device.compute_capability
        found.append(Gpu(str(device.name), (major, minor), int(memory.total), int(memory.free), driver, newest))
    return found


def free_bytes() -> int:
    """Return the free memory of the current GPU in bytes; 1 GiB in the simulator."""
    from numba import cuda

    return SIMULATED_BYTES if is_simulated() else int(cuda.current_context().get_memory_info().free)


def multiprocessors() -> int:
    """Return the number of multiprocessors of the current GPU; 1 in the simulator."""
    from numba import cuda

    return 1 if is_simulated() else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def _numba_cuda() -> Any:
    """Return the module numba.cuda of numba-cuda, or raise InputError."""
    if importlib.util.find_spec("numba_cuda") is None:  # the numba.cuda of numba itself is no longer maintained
        raise InputError(f"numba-cuda is not installed; {INSTALL}")
    try:
        from numba import cuda
    except ImportError as error:
        raise InputError(f"numba-cuda cannot be imported ({_line(error)}); {INSTALL}") from error
    return cuda


def _driver(cuda: ModuleType) -> Any:
    return cuda.cudadrv.driver.driver


def _check_driver(cuda: Any) -> None:
    """Raise InputError if there is no driver, or if it has no GPU."""
    try:
        number = _driver(cuda).get_device_count()
    except (
        ImportError,
        cuda.cudadrv.error.CudaDriverError,
    ) as error:  # numba-cuda's CudaSupportError is an ImportError
        raise InputError(_driver_problem(str(cuda.cuda_error() or error))) from error
    if number == 0:
        raise InputError(_driver_problem("NO_DEVICE"))


def _driver_problem(reason: str) -> str:
    """Return a message for the error of the driver."""
    if "NUMBA_DISABLE_CUDA" in reason:
        return "the GPU is disabled; unset NUMBA_DISABLE_CUDA"
    if "cannot be found" in reason:
        return "no NVIDIA driver is installed; install one, or use a machine with an NVIDIA GPU"
    if "NO_DEVICE" in reason:
        return (
            "this process sees no GPU; check `nvidia-smi` and CUDA_VISIBLE_DEVICES. A job of SLURM must ask for one, "
            "for example with --gres=gpu:1"
        )
    return (
        f"the NVIDIA driver does not work ({_line(reason)}); update it, or restart the machine if it was just updated"
    )


def _check_toolkit(cuda: Any) -> None:
    """Raise InputError if the CUDA libraries are missing, or too new for the driver."""
    try:
        toolkit = cuda.runtime.get_version()
        is_complete = cuda.is_available()
    except RuntimeError:  # cuda-pathfinder did not find NVRTC
        is_complete = False
    if not is_complete:
        raise InputError(f"the CUDA libraries that compile GPU kernels are not installed; {INSTALL}")
    supported = _driver(cuda).get_version()
    if supported[0] < toolkit[0]:
        raise InputError(
            f"the NVIDIA driver supports CUDA {supported[0]}.{supported[1]}, but the installed libraries are of CUDA "
            f"{toolkit[0]}; update the driver" + (f", or {INSTALL_12}" if supported[0] == 12 else "")
        )


def _check_gpu(cuda: Any) -> None:
    """Raise InputError if the GPU is too old, or if it rejects work."""
    try:
        gpu = cuda.gpus[0]
        has, needs = (tuple(each) for each in (gpu.compute_capability, cuda.cudadrv.nvrtc.get_lowest_supported_cc()))
        if has >= needs:
            cuda.current_context()
    except Exception as error:  # of numba-cuda or of cuda-core, which have no common base class
        raise InputError(
            f"the GPU cannot be used ({_line(error)}); see in `nvidia-smi` whether another process holds it, and "
            "whether it reports errors"
        ) from error
    if has < needs:
        toolkit = cuda.runtime.get_version()[0]
        raise InputError(
            f"{gpu.name} has compute capability {has[0]}.{has[1]}, but the libraries of CUDA {toolkit} need "
            f"{needs[0]}.{needs[1]} or newer; use a newer GPU" + ("" if toolkit == 12 else f", or {INSTALL_12}")
        )


def _driver_version() -> str:
    """Return the version of the NVIDIA driver, such as "580.95.05", or "" if the driver does not report it."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:  # some containers lack it
        return ""
    if library.nvmlInit_v2() != 0:
        return ""
    text = ctypes.create_string_buffer(96)
    code = library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(len(text)))
    library.nvmlShutdown()
    return text.value.decode() if code == 0 else ""


def _line(error: object) -> str:
    """Return the text of an error in one line."""
    return " ".join(str(error).split())
