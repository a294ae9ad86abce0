"""Compiled kernels on disk: shared, private to the user, and never stale. Real processes throughout."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import leeward

SOURCE = Path(leeward.__file__).parent
PROGRAM = """
import sys, time
from leeward.wind import Site, Turbine, WindFarm
site = Site.from_table([0.0, 90.0, 270.0], [8.0, 10.0], [[0.1, 0.2], [0.1, 0.2], [0.2, 0.2]], 0.1)
farm = WindFarm(site, Turbine.generic(15, 240, 150), {model!r})
print(repr(farm.aep([0.0, 900.0, 2000.0], [0.0, 30.0, -60.0])))
"""


def start(cache, model="jensen", source=None, **environment):
    variables = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    variables |= {"LEEWARD_CACHE_DIR": str(cache), **environment}
    if source:
        variables["PYTHONPATH"] = str(source)
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(model=model)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables,
    )


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip(), err


def kernels(cache):
    return sorted(cache.glob("kernels-*/*.kernel"))


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache folder with the kernels of one model, and the number they gave."""
    cache = tmp_path_factory.mktemp("warm") / "cache"
    return cache, finish(start(cache))[0]


def test_the_second_process_compiles_nothing(warm):
    cache, number = warm
    before = {path: path.stat().st_mtime_ns for path in kernels(cache)}
    assert before
    assert finish(start(cache))[0] == number
    assert {path: path.stat().st_mtime_ns for path in kernels(cache)} == before


def test_only_what_is_needed_was_compiled(warm):
    assert {path.name.rsplit("-", 1)[0] for path in kernels(warm[0])} == {"jensen-energy", "jensen-reaches"}


def test_the_folder_is_the_users_own(warm):
    cache, _ = warm
    for folder in (cache, kernels(cache)[0].parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in kernels(cache):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_eight_processes_on_a_cold_cache(tmp_path, warm):
    cache = tmp_path / "cache"
    numbers = {finish(process)[0] for process in [start(cache) for _ in range(8)]}
    assert numbers == {warm[1]}
    assert len(kernels(cache)) == 2
    assert not [p for p in cache.rglob("*") if p.is_file() and p.suffix not in (".kernel", ".lock")]
    assert finish(start(cache))[0] == warm[1]


def test_a_process_that_dies_while_compiling_holds_nobody_up(tmp_path, warm):
    cache = tmp_path / "cache"
    first = start(cache)
    while not list(cache.glob("kernels-*/*.lock")):
        assert first.poll() is None
    first.kill()
    first.communicate()
    assert finish(start(cache))[0] == warm[1]


def test_an_edited_formula_gives_the_new_number(tmp_path, warm):
    """numba's own cache would not notice: the formula is in another file than the loop."""
    cache, number = warm
    copy = tmp_path / "src"
    shutil.copytree(SOURCE, copy / "leeward", ignore=shutil.ignore_patterns("__pycache__"))
    assert finish(start(cache, source=copy))[0] == number
    formula = copy / "leeward" / "wind" / "wake_models" / "induction.py"
    text = formula.read_text()
    assert "0.2460 +" in text
    formula.write_text(text.replace("0.2460 +", "0.2000 +"))
    edited = finish(start(cache, source=copy))[0]
    assert float(edited) > float(number) * 1.0001
    assert finish(start(cache))[0] == number


def test_a_damaged_file_is_made_again(tmp_path, warm):
    cache = tmp_path / "cache"
    shutil.copytree(warm[0], cache)
    for path in kernels(cache):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(b"" if "reaches" in path.name else bytes(content))
    assert finish(start(cache))[0] == warm[1]
    assert len({path.name for path in kernels(cache) if path.stat().st_size > 1000}) == 2


def test_a_folder_that_cannot_be_used_is_said_and_costs_no_result(tmp_path, warm):
    occupied = tmp_path / "occupied"
    occupied.write_text("a file where the folder should be")
    number, err = finish(start(occupied))
    assert number == warm[1]
    assert "cannot use the cache folder" in err
    assert "LEEWARD_CACHE_DIR" in err


def test_somebody_elses_folder_is_not_used(tmp_path, warm):
    if os.getuid() != 0:
        pytest.skip("only root can give a folder to somebody else")
    cache = tmp_path / "cache"
    cache.mkdir()
    os.chown(cache, 12345, -1)
    number, err = finish(start(cache))
    assert number == warm[1]
    assert "belongs to user 12345" in err
    assert not list(cache.iterdir())


def test_compiling_is_said_on_a_terminal_only(tmp_path):
    assert finish(start(tmp_path / "quiet"))[1] == ""
    import pty

    main, worker = pty.openpty()
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(model="jensen")],
        stdout=subprocess.DEVNULL,
        stderr=worker,
        env=os.environ | {"LEEWARD_CACHE_DIR": str(tmp_path / "loud")},
        timeout=300,
    )
    os.close(worker)
    assert process.returncode == 0
    said = os.read(main, 10_000).decode()
    os.close(main)
    assert "leeward: compiling jensen-energy for this machine" in said


def test_the_table_is_kept_and_shared(tmp_path):
    cache = tmp_path / "cache"
    numbers = {finish(process)[0] for process in [start(cache, model="nygaard_2022") for _ in range(3)]}
    assert len(numbers) == 1
    assert len(list(cache.glob("overlap-*.npy"))) == 1
    assert len([p for p in cache.iterdir() if p.is_file()]) == 1
