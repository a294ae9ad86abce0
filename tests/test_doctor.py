"""`leeward doctor` in real processes, and what it says of GPUs: with a fake driver, and in the simulator."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import leeward
from leeward.wind.gpu import device
from run_cases import leeward as run

# A fake of NVIDIA's driver. The environment sets its answers; every call that needs a GPU fails.
DRIVER = r"""
#include <stdlib.h>
#include <string.h>
static int number(const char *name) { const char *text = getenv(name); return text ? atoi(text) : 0; }
int cuInit(unsigned flags) { return number("FAKE_INIT"); }
int cuDriverGetVersion(int *version) { *version = number("FAKE_CUDA"); return 0; }
int cuDeviceGetCount(int *count) { *count = number("FAKE_GPUS"); return 0; }
static int refuse(void) { return 999; }
int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, int *status)
{
    *found = !strcmp(name, "cuInit") ? (void *)cuInit : !strcmp(name, "cuDriverGetVersion") ? (void *)cuDriverGetVersion
        : !strcmp(name, "cuDeviceGetCount") ? (void *)cuDeviceGetCount
        : !strcmp(name, "cuGetProcAddress") ? (void *)cuGetProcAddress_v2 : (void *)refuse;
    if (status) *status = 0;
    return 0;
}
"""
REQUIRE = """
from leeward.errors import InputError
from leeward.wind.gpu import device
try:
    device.require()
except InputError as error:
    print(error)
else:
    print("usable")
"""
NOT_INSTALLED = "import sys; sys.modules['numba_cuda'] = None\n"
TOOLKIT = "from numba import cuda; cuda.is_available = lambda: True; cuda.runtime.get_version = lambda: ({}, 0)\n"
LOWEST = "from numba.cuda.cudadrv import nvrtc; nvrtc.get_lowest_supported_cc = lambda: (7, 5)\n"
OLD_GPU = "from types import SimpleNamespace as Of; cuda.gpus = [Of(name='Tesla V100', compute_capability=(7, 0))]\n"
NUMPY_2_5 = "import numpy as np; vars(np).pop('row_stack', None)\n"
NO_GPU = "no NVIDIA driver is installed; install one, or use a machine with an NVIDIA GPU"
NO_LIBRARIES = "the CUDA libraries that compile GPU kernels are not installed; pip install 'leeward[gpu]'"


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """Return the environment of a process with a driver. init: what it answers first; cuda: the newest it supports."""
    if sys.platform != "linux":
        pytest.skip("needs Linux: LD_LIBRARY_PATH")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(DRIVER)
    try:
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "driver.c"], check=True, timeout=60
        )
    except FileNotFoundError:
        pytest.skip("needs a C compiler")
    (folder / "libcuda.so").symlink_to("libcuda.so.1")

    def environment(init=0, cuda=13000, gpus=1):
        answers = {"FAKE_INIT": str(init), "FAKE_CUDA": str(cuda), "FAKE_GPUS": str(gpus)}
        return clean(LD_LIBRARY_PATH=str(folder), CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING="1", **answers)

    return environment


def clean(**more):
    """The environment without what changes the GPUs of a process."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "CUDA_"))}
    return ours | more


def python(program, environment):
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=600
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.strip()


# --- the GPU ---------------------------------------------------------------------------------------------------------


def test_importing_the_module_does_not_import_numba():
    assert python("import sys, leeward.wind.gpu.device; print('numba' in sys.modules)", clean()) == "False"


def test_the_kernels_come_from_numba_cuda():
    """Numba has an old `numba.cuda` of its own, which importing it for the CPU does not touch."""
    program = "import numba, sys; print('numba.cuda' in sys.modules); from numba import cuda; print(cuda.__file__)"
    loaded, place = python(program, clean()).split("\n")
    assert loaded == "False"
    assert "numba_cuda" in Path(place).parts


def test_the_simulator_is_a_gpu():
    program = "from leeward.wind.gpu.device import *; require(); print(is_simulated(), free_bytes(), *gpus())"
    said = python(program, clean(NUMBA_ENABLE_CUDASIM="1"))
    assert said.startswith(f"True {1 << 30} Gpu(name='simulator of numba-cuda', ")
    assert f"total_bytes={1 << 30}, free_bytes={1 << 30}" in said


def test_without_the_simulator_nothing_is_simulated():
    assert python("from leeward.wind.gpu.device import *; print(is_simulated())", clean()) == "False"


@pytest.mark.parametrize("before", ["", NUMPY_2_5])
def test_the_simulator_runs_a_kernel(before):
    """It does not need np.row_stack, which numpy 2.5 removed: so the tests run with every numpy."""
    program = """
import numpy as np
from numba import cuda
@cuda.jit
def double(values):
    values[cuda.grid(1)] *= 2
values = cuda.to_device(np.arange(4.0))
double[2, 2](values)
print(*values.copy_to_host())
"""
    assert python(before + program, clean(NUMBA_ENABLE_CUDASIM="1")) == "0.0 2.0 4.0 6.0"


@pytest.mark.parametrize("environment", [{}, {"NUMBA_ENABLE_CUDASIM": "1"}])
def test_numba_cuda_is_not_installed(environment):
    said = python(NOT_INSTALLED + REQUIRE, clean(**environment))
    assert said == "numba-cuda is not installed; pip install 'leeward[gpu]'"


def test_a_part_of_numba_cuda_is_missing():
    said = python("import sys; sys.modules['cuda.core'] = None\n" + REQUIRE, clean())
    assert said.startswith("numba-cuda cannot be imported (")
    assert said.endswith("); pip install 'leeward[gpu]'")


def test_there_is_no_driver():
    hidden = (
        "import ctypes\n"
        "load = ctypes.CDLL\n"
        "ctypes.CDLL = lambda name, *a, **b: load('none.so' if 'libcuda.so' in str(name) else name, *a, **b)\n"
    )
    said = python(hidden + REQUIRE, clean())
    assert said == NO_GPU


def test_the_gpu_is_disabled(driver):
    assert python(REQUIRE, driver() | {"NUMBA_DISABLE_CUDA": "1"}) == "the GPU is disabled; unset NUMBA_DISABLE_CUDA"


@pytest.mark.parametrize("answers", [{"init": 100}, {"gpus": 0}])
def test_the_driver_sees_no_gpu(driver, answers):
    said = python(REQUIRE, driver(**answers))
    assert said.startswith("this process sees no GPU; check `nvidia-smi` and CUDA_VISIBLE_DEVICES.")


def test_the_driver_does_not_work(driver):
    said = python(REQUIRE, driver(init=803))
    assert said.startswith("the NVIDIA driver does not work (")
    assert "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" in said
    assert said.endswith("update it, or restart the machine if it was just updated")


def test_the_cuda_libraries_are_missing(driver):
    hidden = (
        "from numba import cuda\n"
        "def missing(): raise RuntimeError('libnvrtc.so.13')\n"
        "cuda.runtime.get_version = missing\n"
    )
    assert python(hidden + REQUIRE, driver()) == NO_LIBRARIES
    assert python("from numba import cuda; cuda.is_available = lambda: False\n" + REQUIRE, driver()) == NO_LIBRARIES


@pytest.mark.parametrize(
    ("libraries", "cuda", "message"),
    [
        (12, 11040, "supports CUDA 11.4, but the installed libraries are of CUDA 12; update the driver"),
        (13, 11040, "supports CUDA 11.4, but the installed libraries are of CUDA 13; update the driver"),
        (
            13,
            12020,
            "supports CUDA 12.2, but the installed libraries are of CUDA 13; update the driver, or "
            "pip install 'numba-cuda[cu12]'",
        ),
    ],
)
def test_the_driver_is_too_old(driver, libraries, cuda, message):
    said = python(TOOLKIT.format(libraries) + REQUIRE, driver(cuda=cuda))
    assert said == f"the NVIDIA driver {message}"


@pytest.mark.parametrize("libraries", [12, 13])
def test_libraries_as_old_as_the_driver_or_older_are_accepted(driver, libraries):
    said = python(TOOLKIT.format(libraries) + LOWEST + REQUIRE, driver())
    assert said.startswith("the GPU cannot be used (")  # the driver fails later
    assert "nvidia-smi" in said


def test_numpy_is_too_new(driver):
    said = python(NUMPY_2_5 + TOOLKIT.format(12) + REQUIRE, driver())
    assert said.startswith("numba-cuda does not work with numpy ")
    assert said.endswith("pip install 'numpy<2.5'")


def test_the_gpu_is_too_old(driver):
    said = python(TOOLKIT.format(13) + LOWEST + OLD_GPU + REQUIRE, driver())
    assert said == (
        "Tesla V100 has compute capability 7.0, but the libraries of CUDA 13 need 7.5 or newer; use a newer GPU, or "
        "pip install 'numba-cuda[cu12]'"
    )


# --- the command -----------------------------------------------------------------------------------------------------


def examined(folder, *, env=None, before="", code=0):
    """What the command says as JSON."""
    ended = run("doctor", "--json", cwd=folder, env=env or clean(), before=before)
    assert ended.returncode == code, ended.stderr
    assert ended.stderr.count("\n") == (code != 0), ended.stderr
    return json.loads(ended.stdout), ended.stderr


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("LEEWARD_CACHE_DIR", str(folder))
    return folder / f"of-user-{os.getuid()}"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "here"
    place.mkdir()
    return place


def test_a_person_reads_a_table(folder, cache):
    ended = run("doctor", cwd=folder, env=clean(NUMBA_ENABLE_CUDASIM="1"))
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    names = ["leeward", "Python", "packages", "cores", "memory", "GPU", "kernel cache", "", "folder", ""]
    column = lines[0].index(leeward.__version__)
    assert [line[:column].strip() for line in lines][: len(names)] == names
    said = dict(zip(names, (line[column:] for line in lines), strict=False))
    packages = [f"{name} {version(name)}" for name in ("numpy", "numba", "h5py", "numba-cuda")]
    assert said["packages"] == ", ".join(packages)
    assert said["GPU"] == "simulator of numba-cuda: 1.1 GB free of 1.1 GB"
    assert said["kernel cache"] == f"{cache}: 0 files, 0 B"
    assert lines[7][column:] == "writable"
    assert said["folder"].startswith(f"{folder}: ")
    assert said["folder"].endswith(" free")
    assert lines[9][column:] == "writable, locks work"
    assert list(folder.iterdir()) == list(cache.iterdir()) == []


def test_the_machine(folder, cache):
    found, _ = examined(folder)
    assert found["leeward"] == leeward.__version__
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["packages"]["numba"] == version("numba")
    assert 1 <= found["cores"]["usable"] <= found["cores"]["all"]
    assert 0 < found["memory"]["available_bytes"] <= found["memory"]["all_bytes"]


def test_only_usable_cores_count(folder, cache):
    found, _ = examined(folder, before="import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);")
    assert found["cores"] == {"usable": 1, "all": os.cpu_count()}


def test_why_there_is_no_gpu(folder, cache):
    before = "import sys; sys.modules['numba_cuda'] = None;"
    found, _ = examined(folder, before=before)
    assert found["gpus"] == []
    assert found["gpu_problem"] == "numba-cuda is not installed; pip install 'leeward[gpu]'"
    ended = run("doctor", cwd=folder, env=clean(), before=before)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "GPU           none: numba-cuda is not installed; pip install 'leeward[gpu]'\n" in ended.stdout


def test_it_works_if_numba_does_not(folder, cache):
    found, _ = examined(folder, before="import sys; sys.modules['numba'] = None;")
    assert "numba" in found["gpu_problem"]
    assert found["folder"]["locks_work"]


def test_a_gpu_in_words():
    from leeward.cli import doctor

    gpu = device.Gpu("NVIDIA H200", (9, 0), 150_000_000_000, 149_000_000_000, "580.95.05", "13.0")
    assert doctor._gpu(vars(gpu)) == (
        "NVIDIA H200: 149.0 GB free of 150.0 GB, driver 580.95.05 (CUDA 13.0), compute capability 9.0"
    )


def test_the_cache_is_counted(folder, cache):
    (cache / "kernels-1").mkdir(parents=True)
    cache.chmod(0o700)
    for name in ("a.npy", "kernels-1/b.kernel"):
        (cache / name).write_bytes(bytes(50))
    found, _ = examined(folder)
    assert found["cache"] == {"path": str(cache), "files": 2, "bytes": 100, "problem": None}


def test_a_cache_that_others_can_write(folder, cache):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    found, _ = examined(folder)
    assert found["cache"]["path"] is None
    assert f"{cache} is open to others: mode 777" in found["cache"]["problem"]
    shown = run("doctor", cwd=folder, env=clean())
    assert shown.returncode == 0
    assert "kernel cache  none: cannot use its cache folder (" in shown.stdout


def test_a_cache_that_rejects_writes(folder, cache):
    """A full disk, as the command sees it."""
    before = (
        "import errno, leeward.wind.cache as c; c.write_all = lambda *a: (_ for _ in ()).throw(OSError(28, 'full'));"
    )
    found, _ = examined(folder, before=before)
    assert found["cache"]["path"] == str(cache)
    assert f"{cache}: full" in found["cache"]["problem"]
    assert list(cache.iterdir()) == []


def test_the_file_system(folder, cache):
    found, _ = examined(folder)
    place = os.statvfs(folder)
    kind = subprocess.run(["df", "--output=fstype", folder], capture_output=True, text=True).stdout.split()[-1]
    told = found["folder"]
    assert told["path"] == str(folder)
    assert told["file_system"] == kind
    assert told["free_bytes"] == pytest.approx(place.f_bavail * place.f_frsize, rel=0.1)
    assert (told["is_writable"], told["locks_work"], told["problem"]) == (True, True, None)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="needs a folder in memory: /dev/shm")
def test_a_folder_in_memory_is_noted(cache):
    found, _ = examined("/dev/shm")
    assert found["folder"]["file_system"] == "tmpfs"
    assert "is in memory" in found["folder"]["note"]


def test_a_folder_that_rejects_writes_is_exit_code_4(cache):
    """Nobody can write in /proc, not even root."""
    found, error = examined("/proc", code=4)
    assert (found["folder"]["is_writable"], found["folder"]["locks_work"]) == (False, False)
    assert error == f"leeward: {found['folder']['problem']}\n"
    assert error.startswith("leeward: /proc: cannot be written (")
    assert "NOT WRITABLE" in run("doctor", cwd="/proc", env=clean()).stdout


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("import os; os.link = os.replace;", "locks do not work on this file system"),
        ("import os; os.link = lambda *a: (_ for _ in ()).throw(OSError(5, 'failing'));", "failing"),
    ],
)
def test_a_folder_without_working_locks_is_exit_code_4(folder, cache, before, message):
    """First links that replace an existing file, so that two processes could hold one lock; then links that fail."""
    found, error = examined(folder, before=before, code=4)
    assert (found["folder"]["is_writable"], found["folder"]["locks_work"]) == (True, False)
    assert message in error
    assert list(folder.iterdir()) == []
    assert "LOCKS DO NOT WORK" in run("doctor", cwd=folder, env=clean(), before=before).stdout


def test_a_file_system_without_links_is_good_enough(folder, cache):
    found, _ = examined(folder, before="import os; os.link = lambda *a: (_ for _ in ()).throw(OSError(1, 'no links'));")
    assert found["folder"]["locks_work"]
