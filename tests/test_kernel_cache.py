"""Compiled kernels on disk: shared, private to the user, and never stale. Real processes throughout."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import leeward
from run_cases import until

SOURCE = Path(leeward.__file__).parent
FARM = """
from leeward.wind import Site, Turbine, WindFarm
site = Site.from_table([0.0, 90.0, 270.0], [8.0, 10.0], [[0.1, 0.2], [0.1, 0.2], [0.2, 0.2]], 0.1)
farm = WindFarm(site, Turbine.generic(15, 240, 150), {model!r})
print(repr(farm.aep([0.0, 900.0, 2000.0], [0.0, 30.0, -60.0])))
"""
# One kernel that is compiled in two seconds, where those of a farm take ten. All go through the same cache.
AREA = """
from leeward.layout import Area
print(repr(float(Area.from_arrays([0, 900, 0], [0, 0, 700]).signed_distance([130.0], [170.0])[0])))
"""
TABLE = """
import hashlib
from leeward.wind.wake_models import wake_model
print(hashlib.sha256(wake_model("nygaard_2022").table().tobytes()).hexdigest())
"""


TWINS = """
from pathlib import Path
import numpy as np
from leeward.wind.kernels.compile import kernel

def build(number):
    def loop(count):
        return np.full(count, number)
    return loop

loops = [kernel(build(number), f"number-{{number}}", Path({source!r})) for number in {numbers}]
print([loop(2).tolist() for loop in loops])
"""


def start(cache, program=AREA, source=None, **streams):
    variables = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    variables |= {"LEEWARD_CACHE_DIR": str(cache)}
    if source:
        variables["PYTHONPATH"] = str(source)
    return subprocess.Popen(
        [sys.executable, "-c", program],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        text=True,
        env=variables,
    )


def finish(process):
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out.strip(), err


def kernels(cache):
    return sorted(cache.glob("*/kernels-*/*.kernel"))


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache folder with a compiled kernel, and the number it gave. Nothing is said where nobody looks."""
    cache = tmp_path_factory.mktemp("warm") / "cache"
    number, err = finish(start(cache))
    assert err == ""
    return cache, number


def test_a_second_process_compiles_nothing_and_an_edited_formula_gives_the_new_number(tmp_path):
    """numba's own cache would not notice: the formula is in another file than the loop."""
    cache, farm = tmp_path / "cache", FARM.format(model="jensen")
    number = finish(start(cache, farm))[0]
    before = {path: path.stat().st_mtime_ns for path in kernels(cache)}
    # only what is needed
    assert {path.name.rsplit("-", 1)[0] for path in before} == {"jensen-energy", "jensen-reaches"}
    copy = tmp_path / "src"
    shutil.copytree(SOURCE, copy / "leeward", ignore=shutil.ignore_patterns("__pycache__"))
    for source in (None, copy):
        assert finish(start(cache, farm, source))[0] == number
        assert {path: path.stat().st_mtime_ns for path in kernels(cache)} == before
    formula = copy / "leeward" / "wind" / "wake_models" / "_induction.py"
    text = formula.read_text()
    assert "0.2460 +" in text
    formula.write_text(text.replace("0.2460 +", "0.2000 +"))
    edited = finish(start(cache, farm, copy))[0]
    assert float(edited) > float(number) * 1.0001
    assert finish(start(cache, farm))[0] == number


def test_loops_of_one_name_that_were_compiled_in_several_processes(tmp_path, monkeypatch):
    """As those of the wake models are: the first of each process gets the same number from numba."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # it has a part in numba's names
    source = tmp_path / "numbers.py"
    source.touch()
    for numbers in ([1.0], [1.0, 2.0], [1.0, 2.0], [2.0, 1.0]):
        program = TWINS.format(source=str(source), numbers=numbers)
        assert finish(start(tmp_path / "cache", program))[0] == str([[number] * 2 for number in numbers])


def test_the_folder_is_the_users_own(warm):
    cache, _ = warm
    assert kernels(cache)
    folder = kernels(cache)[0].parent
    for private in (folder, folder.parent):
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
    for path in kernels(cache):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_eight_processes_on_a_cold_cache(tmp_path, warm):
    cache = tmp_path / "cache"
    numbers = {finish(process)[0] for process in [start(cache) for _ in range(8)]}
    assert numbers == {warm[1]}
    assert len(kernels(cache)) == 1
    assert not [p for p in cache.rglob("*") if p.is_file() and p.suffix not in (".kernel", ".lock")]
    assert finish(start(cache))[0] == warm[1]


def test_a_process_that_dies_while_compiling_holds_nobody_up(tmp_path, warm):
    cache = tmp_path / "cache"
    first = start(cache)
    until(lambda: first.poll() is not None or _locks(cache), "it compiles")
    assert _locks(cache)
    first.kill()
    first.communicate()
    assert finish(start(cache))[0] == warm[1]


def _locks(cache):
    return list(cache.glob("*/kernels-*/*.lock"))


@pytest.mark.parametrize("damage", ["a bit is flipped", "empty"])
def test_a_damaged_file_is_made_again(tmp_path, warm, damage):
    cache = tmp_path / "cache"
    shutil.copytree(warm[0], cache)
    (path,) = kernels(cache)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(b"" if damage == "empty" else bytes(content))
    assert finish(start(cache))[0] == warm[1]
    assert kernels(cache) == [path]
    assert path.stat().st_size > 1000
    assert path.read_bytes() != bytes(content)


def test_a_folder_that_cannot_be_used_is_said_and_costs_no_result(tmp_path, warm):
    occupied = tmp_path / "occupied"
    occupied.write_text("a file where the folder should be")
    number, err = finish(start(occupied))
    assert number == warm[1]
    assert "cannot use its cache folder" in err
    assert "LEEWARD_CACHE_DIR" in err


def test_a_folder_open_to_others_is_not_used(tmp_path, warm):
    private = tmp_path / f"of-user-{os.getuid()}"
    private.mkdir(mode=0o777)
    private.chmod(0o777)
    number, err = finish(start(tmp_path))
    assert number == warm[1]
    assert "is open to others" in err
    assert not list(private.iterdir())
    assert stat.S_IMODE(private.stat().st_mode) == 0o777


def test_a_shared_folder_stays_as_it_is(tmp_path, warm):
    """People name a scratch folder that others use too: ours is a private one inside of it."""
    tmp_path.chmod(0o775)
    assert finish(start(tmp_path))[0] == warm[1]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o775
    assert kernels(tmp_path)


def test_a_disk_that_is_full_costs_no_result(tmp_path, warm):
    """A file system of 32 kB: the folder can be made, the kernel does not fit."""
    if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", tmp_path]).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        number, err = finish(start(tmp_path))
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
    assert number == warm[1]
    assert "it will be made again next time" in err


def test_a_call_that_failed_does_not_block_the_next(tmp_path):
    """Interrupted while compiling (here: by an exception in the middle of it), then called again."""
    program = """
import numba.core.compiler, time
from leeward.layout import Area
area = Area.from_arrays([0, 900, 0], [0, 0, 700])
original = numba.core.compiler.compile_extra
def interrupted(*arguments, **options):
    numba.core.compiler.compile_extra = original
    raise KeyboardInterrupt
numba.core.compiler.compile_extra = interrupted
try:
    area.signed_distance([130.0], [170.0])
    print("not interrupted")
except KeyboardInterrupt:
    pass
before = time.monotonic()
area.signed_distance([130.0], [170.0])
print(time.monotonic() - before < 120)
"""
    variables = os.environ | {"LEEWARD_CACHE_DIR": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=250, env=variables)
    assert result.stdout.strip() == "True", result.stderr


def test_compiling_is_said_on_a_terminal(tmp_path):
    """And nowhere else: see `warm`."""
    import pty

    main, worker = pty.openpty()
    process = start(tmp_path, stderr=worker)
    process.communicate(timeout=600)
    os.close(worker)
    assert process.returncode == 0
    said = b""
    with contextlib.suppress(OSError):  # there is nothing more: the other end is closed
        while piece := os.read(main, 10_000):
            said += piece
    os.close(main)
    assert "leeward: compiling area-signed_distances for this machine" in said.decode()


def test_the_table_is_kept_shared_and_checked(tmp_path):
    cache = tmp_path / "cache"
    tables = {finish(process)[0] for process in [start(cache, TABLE) for _ in range(3)]}
    assert len(tables) == 1
    (table,) = cache.glob("*/overlap-*.npy")
    assert len([p for p in table.parent.iterdir() if p.is_file()]) == 1
    whole = table.read_bytes()
    for damaged in (whole[:1000], b"", whole[:200_000] + bytes(200_000) + whole[400_000:]):
        table.write_bytes(damaged)
        assert {finish(start(cache, TABLE))[0]} == tables
        assert table.read_bytes() == whole


MODEL = """
from dataclasses import dataclass
from typing import ClassVar
from leeward.wind.kernels.compile import formula
from leeward.wind.wake_models.base import Formulas, WakeModel
from leeward.wind.wake_models.iea37_gaussian import source, source_slopes, view, view_partials, look_partials, reach

@formula
def look(v, p, table):
    return p[0] * v[0]

@dataclass(frozen=True)
class TopHat(WakeModel):
    share: float = 0.5
    name: ClassVar[str] = "top_hat"
    formulas: ClassVar[Formulas] = Formulas(source, source_slopes, view, look, view_partials, look_partials, reach)
    def parameters(self):
        return (float(self.share),)
"""


def test_a_new_model_is_one_file(tmp_path):
    """Dropped into the folder it is known by its name; in a file of one's own, or typed, it is given as an object."""
    (tmp_path / "own.py").write_text(MODEL)
    question = FARM.replace("{model!r}", "TopHat()")
    variables = os.environ | {"LEEWARD_CACHE_DIR": str(tmp_path / "own")}
    variables["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(SOURCE.parent)])
    own, typed = (
        subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, timeout=600, env=variables)
        for text in (f"from own import TopHat\n{question}", MODEL + question)
    )
    assert float(own.stdout) > 0, own.stderr
    assert typed.stdout == own.stdout, typed.stderr
    (tmp_path / "own.py").unlink()
    copy = tmp_path / "src"
    shutil.copytree(SOURCE, copy / "leeward", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "leeward" / "wind" / "wake_models" / "top_hat.py").write_text(MODEL)
    # as plain Python, which is to say: to the last bit or two
    variables |= {"PYTHONPATH": str(copy), "NUMBA_DISABLE_JIT": "1"}
    named = subprocess.run(
        [sys.executable, "-"], input=FARM.format(model="top_hat"), capture_output=True, text=True, env=variables
    )
    assert named.returncode == 0, named.stderr
    assert float(named.stdout) == pytest.approx(float(own.stdout), rel=1e-14)
