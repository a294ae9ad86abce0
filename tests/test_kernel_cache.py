"""The disk cache of compiled kernels: shared, private to the user, and never stale. The tests use real processes."""

import contextlib
import hashlib
import json
import os
import pickle
import re
import shutil
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest

import leeward
import run_cases
from leeward.campaign import compute
from leeward.compiling import CompiledElsewhereError, compile_events, waits, without_waiting
from leeward.wind import cache as caching
from leeward.wind.kernels import compile as compiling
from run_cases import PATIENCE_S, until

SOURCE = Path(leeward.__file__).parent
OURS = f"of-user-{os.getuid()}"
SOMEBODY = 65534  # another user
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as two users")
FARM = """
from leeward.wind import Site, Turbine, WindFarm
site = Site.from_table([0.0, 90.0, 270.0], [8.0, 10.0], [[0.1, 0.2], [0.1, 0.2], [0.2, 0.2]], 0.1, kind="exact")
farm = WindFarm(site, Turbine.generic(15, 240, 150), {model!r})
print(repr(farm.aep_gwh([0.0, 900.0, 2000.0], [0.0, 30.0, -60.0])))
"""
# Numba compiles this kernel in some hundredths of a second, and those of a farm in ten seconds. All use the same cache.
KERNEL = """
from pathlib import Path
import leeward
from leeward.wind.kernels.compile import kernel

def half(number):
    return number / 2

halved = kernel(half, "tiny", Path(leeward.__file__))
"""
TINY = KERNEL + "print(halved(3.0))\n"
ANSWER = "1.5"
TABLE = """
import hashlib
from leeward.wind.overlap import overlap_table
print(hashlib.sha256(overlap_table().tobytes()).hexdigest())
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


def start(cache, program=TINY, source=None, **streams):
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
    """Return what the process printed on standard output and standard error."""
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return out.strip(), err


def kernels(cache):
    return sorted(cache.glob("*/kernels-*/*.kernel"))


def times(cache):
    return {path: path.stat().st_mtime_ns for path in kernels(cache)}


def copy_of_the_package(folder):
    shutil.copytree(SOURCE, folder / "leeward", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache folder with one compiled kernel. Without a terminal, compiling is not announced."""
    cache = tmp_path_factory.mktemp("warm") / "cache"
    assert finish(start(cache)) == (ANSWER, "")
    return cache


FORMULA = """
from leeward.wind.kernels.compile import formula

@formula
def share(number):
    return number / {divisor}
"""
LOOP = """
import formulas
from pathlib import Path
from leeward.wind.kernels.compile import kernel

def loop(number):
    return formulas.share(number)

print(kernel(loop, "share", Path(formulas.__file__))(12.0))
"""


@pytest.mark.slow
def test_an_edited_formula_gives_the_new_number(tmp_path):
    """Numba's own cache does not notice the edit: the formula and the loop are in different files."""
    cache, folder = tmp_path / "cache", tmp_path / "source"
    folder.mkdir()
    formulas = folder / "formulas.py"
    formulas.write_text(FORMULA.format(divisor=2))
    assert finish(start(cache, LOOP, folder))[0] == "6.0"
    before = times(cache)
    assert len(before) == 1
    assert finish(start(cache, LOOP, folder))[0] == "6.0"
    assert times(cache) == before  # the second process compiles nothing
    formulas.write_text(FORMULA.format(divisor=12))  # longer: byte code is checked by size and second
    assert finish(start(cache, LOOP, folder))[0] == "1.0"
    assert len(kernels(cache)) == 2


def test_an_edit_of_any_kernel_or_wake_model_changes_the_folder(tmp_path, monkeypatch):
    wind = copy_of_the_package(tmp_path / "src") / "leeward" / "wind"
    monkeypatch.setattr(compiling, "__file__", str(wind / "kernels" / "compile.py"))
    monkeypatch.setattr(compiling, "cache_folder", lambda: tmp_path)
    source = wind / "wake_models" / "jensen.py"
    folders = [compiling.kernel_folder(source)]
    assert compiling.kernel_folder(source) == folders[0]
    files = [*(wind / "kernels").glob("*.py"), *(wind / "wake_models").glob("*.py"), wind / "overlap.py"]
    assert len(files) > 10
    for path in files:
        path.write_text(path.read_text() + "# edited\n")
        folders.append(compiling.kernel_folder(source))
    assert len(set(folders)) == len(files) + 1


@pytest.mark.slow
def test_a_second_process_compiles_no_farm_and_an_edited_wake_model_gives_the_new_number(tmp_path):
    cache, farm = tmp_path / "cache", FARM.format(model="jensen")
    number = finish(start(cache, farm))[0]
    before = times(cache)
    # only the kernels of this model that the question needs
    assert {path.name.rsplit("-", 1)[0] for path in before} == {"jensen-energy", "jensen-reaches"}
    copy = copy_of_the_package(tmp_path / "src")
    for source in (None, copy):
        assert finish(start(cache, farm, source))[0] == number
        assert times(cache) == before
    formula = copy / "leeward" / "wind" / "wake_models" / "_induction.py"
    text = formula.read_text()
    assert "0.2460 +" in text
    formula.write_text(text.replace("0.2460 +", "0.2000 +"))
    edited = finish(start(cache, farm, copy))[0]
    assert float(edited) > float(number) * 1.0001
    assert finish(start(cache, farm))[0] == number


@pytest.mark.slow
def test_loops_of_one_name_that_were_compiled_in_several_processes(tmp_path, monkeypatch):
    """The loops of the wake models are such: numba gives the first loop of every process the same number."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # it is a part of numba's names
    source = tmp_path / "numbers.py"
    source.touch()
    for numbers in ([1.0], [1.0, 2.0], [1.0, 2.0], [2.0, 1.0]):
        program = TWINS.format(source=str(source), numbers=numbers)
        assert finish(start(tmp_path / "cache", program))[0] == str([[number] * 2 for number in numbers])


def test_the_folder_is_the_users_own(warm):
    assert kernels(warm)
    folder = kernels(warm)[0].parent
    for private in (folder, folder.parent):
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
    for path in kernels(warm):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


# Each process leaves a file before it asks, and whoever compiles waits until all processes have asked.
TOGETHER = (
    KERNEL
    + """
import os, time
import leeward.wind.kernels.compile
import numba.core.compiler
folder = Path({folder!r})
original = numba.core.compiler.compile_extra

def compile_when_all_have_asked(*arguments, **options):
    (folder / f"compiled-{{os.getpid()}}").touch()
    while len(list(folder.glob("asked-*"))) < {count}:
        time.sleep(0.02)
    return original(*arguments, **options)

numba.core.compiler.compile_extra = compile_when_all_have_asked
leeward.wind.kernels.compile.WAIT_FOR_OTHERS_S = 1e9
(folder / f"asked-{{os.getpid()}}").touch()
print(halved(3.0))
"""
)


@pytest.mark.slow
def test_eight_processes_on_a_cold_cache(tmp_path):
    """One process compiles while the others wait for it."""
    cache, program = tmp_path / "cache", TOGETHER.format(folder=str(tmp_path), count=8)
    processes = [start(cache, program) for _ in range(8)]
    assert {finish(process)[0] for process in processes} == {ANSWER}
    assert len(list(tmp_path.glob("compiled-*"))) == 1
    assert len(kernels(cache)) == 1
    assert not [p for p in cache.rglob("*") if p.is_file() and p.suffix not in (".kernel", ".lock")]


STUCK = (
    KERNEL
    + """
import time
import numba.core.compiler

def never_done(*arguments, **options):
    Path({mark!r}).touch()
    while True:
        time.sleep(0.02)

numba.core.compiler.compile_extra = never_done
halved(3.0)
"""
)


# This process fails where it would have to wait for a lock.
WITHOUT_WAITING = (
    """
from leeward.compiling import without_waiting
context = without_waiting()
context.__enter__()
"""
    + TINY
)


def test_a_process_that_dies_while_compiling_holds_nobody_up(tmp_path):
    """Others wait for its lock while it lives, and not any more once it is dead."""
    cache, mark = tmp_path / "cache", tmp_path / "compiling"
    first = start(cache, STUCK.format(mark=str(mark)))
    try:
        until(lambda: first.poll() is not None or mark.exists(), "it compiles")
        _, err = start(cache, WITHOUT_WAITING).communicate(timeout=PATIENCE_S)
        assert "CompiledElsewhereError" in err
    finally:
        first.kill()
        first.communicate()
    assert finish(start(cache, WITHOUT_WAITING))[0] == ANSWER


@pytest.mark.slow
def test_a_call_that_failed_does_not_block_the_next(tmp_path):
    """An exception interrupts the first call while it compiles; the second call must find the lock free."""
    interrupted = WITHOUT_WAITING.replace(
        "print(halved(3.0))",
        """
import numba.core.compiler
original = numba.core.compiler.compile_extra

def interrupted(*arguments, **options):
    numba.core.compiler.compile_extra = original
    raise KeyboardInterrupt

numba.core.compiler.compile_extra = interrupted
try:
    halved(3.0)
    print("not interrupted")
except KeyboardInterrupt:
    print(halved(3.0))
""",
    )
    assert finish(start(tmp_path, interrupted))[0] == ANSWER


@pytest.mark.parametrize("damage", ["a bit is flipped", "empty"])
def test_a_damaged_file_is_made_again(tmp_path, warm, damage):
    cache = tmp_path / "cache"
    shutil.copytree(warm, cache)
    (path,) = kernels(cache)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(b"" if damage == "empty" else bytes(content))
    assert finish(start(cache))[0] == ANSWER
    assert kernels(cache) == [path]
    assert path.stat().st_size > 1000
    assert path.read_bytes() != bytes(content)


@pytest.mark.slow
def test_an_unusable_folder_is_reported_and_costs_no_result(tmp_path):
    occupied = tmp_path / "occupied"
    occupied.write_text("a file where the folder should be")
    number, err = finish(start(occupied))
    assert number == ANSWER
    assert "cannot use its cache folder" in err
    assert "LEEWARD_CACHE_DIR" in err


def folder_in(cache, monkeypatch):
    """Return what a process that starts now uses as its folder in this one."""
    monkeypatch.setenv("LEEWARD_CACHE_DIR", str(cache))
    return caching.cache_folder.__wrapped__()


@pytest.mark.slow
def test_a_folder_open_to_others_is_not_used(tmp_path):
    private = tmp_path / OURS
    private.mkdir(mode=0o777)
    private.chmod(0o777)
    number, err = finish(start(tmp_path))
    assert number == ANSWER
    assert err.count("is open to others: mode 777") == 1
    assert not list(private.iterdir())
    assert stat.S_IMODE(private.stat().st_mode) == 0o777


def test_a_link_is_not_used_as_the_folder(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (tmp_path / OURS).symlink_to(elsewhere)
    with pytest.warns(UserWarning, match=f"{OURS} is a link.*LEEWARD_CACHE_DIR"):
        assert folder_in(tmp_path, monkeypatch) is None


@as_root
def test_a_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    private = tmp_path / OURS
    private.mkdir(mode=0o700)
    os.chown(private, SOMEBODY, SOMEBODY)
    with pytest.warns(UserWarning, match=f"{OURS} belongs to user {SOMEBODY}, not to you.*LEEWARD_CACHE_DIR"):
        assert folder_in(tmp_path, monkeypatch) is None


@pytest.mark.parametrize("by_link", [False, True])
def test_a_folder_below_one_that_everybody_can_write_is_not_used(tmp_path, monkeypatch, by_link):
    """A link in a safe folder may lead through an unsafe one."""
    public = tmp_path / "public"
    (public / "mine").mkdir(parents=True)
    (tmp_path / "link").symlink_to("public/mine")
    cache = tmp_path / "link" if by_link else public / "mine"
    assert folder_in(cache, monkeypatch) == cache / OURS
    public.chmod(0o777)
    with pytest.warns(UserWarning, match="public, which everybody can write: mode 777.*LEEWARD_CACHE_DIR"):
        assert folder_in(cache, monkeypatch) is None
    public.chmod(0o1777)  # as /tmp: others cannot rename what is ours
    assert folder_in(cache, monkeypatch) == cache / OURS


def test_a_new_folder_is_safe_without_a_umask(tmp_path, monkeypatch):
    before = os.umask(0)
    try:
        assert folder_in(tmp_path / "cache", monkeypatch) == tmp_path / "cache" / OURS
    finally:
        os.umask(before)


def test_a_relative_name_of_the_folder_survives_a_change_of_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert folder_in("cache", monkeypatch) == tmp_path / "cache" / OURS


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0o775, 0o1777])
def test_a_shared_folder_stays_as_it_is(tmp_path, mode):
    """People name a scratch folder that others use too: leeward makes a private folder inside it."""
    tmp_path.chmod(mode)
    assert finish(start(tmp_path)) == (ANSWER, "")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode
    assert kernels(tmp_path)


class Trap:
    """An object whose pickle makes a file where it is read."""

    def __init__(self, mark):
        self._mark = mark

    def __reduce__(self):
        return (os.mkdir, (str(self._mark),))


def trap(mark):
    """Return the content of a kernel file that runs code."""
    content = pickle.dumps(Trap(mark))
    return content + hashlib.sha256(content).digest()


# The process has found its folder in order. It calls the kernel when it is told to.
WHEN_TOLD = KERNEL + "print('ready', flush=True)\ninput()\nprint(halved(3.0))\n"
# Another user, who can write the folder above, puts a folder of the same name there.
SWAP = """
import os, shutil
from pathlib import Path
os.chdir({shared!r})
kernel, content, folder, way = {kernel!r}, {content!r}, {ours!r}, {way!r}
os.setgroups([])
os.setgid({user})
os.setuid({user})
os.rename(folder, "away")
fake = Path(folder if way == "folder" else "fake")
(fake / kernel).parent.mkdir(parents=True)
(fake / kernel).write_bytes(content)
for path in [fake, (fake / kernel).parent]:
    path.chmod(0o755)
if way == "link":
    os.symlink("fake", folder)
"""


@pytest.mark.slow
@as_root
@pytest.mark.parametrize("way", ["folder", pytest.param("link", marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", [pytest.param(0o770, marks=pytest.mark.slow), 0o777])
def test_a_folder_that_another_user_has_swapped_runs_no_code(tmp_path, warm, mode, way):
    """The swap comes after the first look at the folder, and before the kernel is read."""
    shared, mark = tmp_path / "shared", tmp_path / "code was run"
    shared.mkdir()
    os.chown(shared, 0, SOMEBODY)
    shared.chmod(mode)
    kernel = str(kernels(warm)[0].relative_to(warm / OURS))
    process = start(shared, WHEN_TOLD, stdin=subprocess.PIPE)
    try:
        assert process.stdout.readline() == "ready\n"
        (shared / OURS).mkdir(exist_ok=True)  # the unsafe one was not made
        swap = SWAP.format(shared=str(shared), kernel=kernel, content=trap(mark), ours=OURS, user=SOMEBODY, way=way)
        subprocess.run([sys.executable, "-c", swap], check=True, timeout=PATIENCE_S)
        assert (shared / OURS / kernel).read_bytes() == trap(mark)
        process.stdin.write("\n")
        number, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()
    assert not mark.exists()
    assert (process.returncode, number.strip()) == (0, ANSWER), err
    assert err.count("leeward: cannot use its cache folder") == 1
    assert (shared / OURS / kernel).read_bytes() == trap(mark)  # nothing was written there either


@pytest.mark.slow
def test_a_kernel_that_others_can_write_is_not_read(tmp_path, warm):
    """Where they could, a file by itself is reason enough; it is made again as it should be."""
    cache, mark = tmp_path / "cache", tmp_path / "code was run"
    shutil.copytree(warm, cache)
    (path,) = kernels(cache)
    path.write_bytes(trap(mark))
    path.chmod(0o666)
    number, err = finish(start(cache))
    assert number == ANSWER
    assert not mark.exists()
    assert err.count("is open to others: mode 666") == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert finish(start(cache)) == (ANSWER, "")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_regular_files_are_read(tmp_path, kind):
    path, target = tmp_path / "some.kernel", tmp_path / "target"
    caching.store(target, b"content")
    assert caching.fetch(target) == b"content"
    if kind == "link":
        path.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.warns(UserWarning, match="cannot use its cache folder"):
        assert caching.fetch(path) is None


def test_where_folders_cannot_be_opened_files_are_found_by_path(tmp_path, monkeypatch):
    """Windows is such a system."""
    monkeypatch.setattr(caching, "_FOLDERS_OPEN", False)
    path = tmp_path / "some.kernel"
    for content in (b"content", b"more content"):
        caching.store(path, content)
        assert caching.fetch(path) == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_is_mapped_and_read_only(tmp_path, monkeypatch):
    source = tmp_path / "source.py"
    source.touch()
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(caching, "cache_folder", lambda: folder)
    made = []

    def make():
        made.append(1)
        return np.arange(12.0)

    for _ in range(2):
        table = caching.cached_array("table", str(source), make)
        assert isinstance(table.base, np.memmap)
        assert not table.flags.writeable
        np.testing.assert_array_equal(table, np.arange(12.0))
    assert len(made) == 1
    folder.chmod(0o755)
    with pytest.warns(UserWarning, match="is open to others: mode 755"):
        table = caching.cached_array("table", str(source), make)
    np.testing.assert_array_equal(table, np.arange(12.0))


@pytest.mark.slow
def test_a_run_with_workers_warns_once(tmp_path):
    """The workers warn in their logs."""
    run_cases.make_campaign(tmp_path, seeds=2)
    (tmp_path / "cache").symlink_to("nowhere")
    variables = os.environ | {"LEEWARD_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "1"}
    done = run_cases.leeward("run", "campaign.yaml", "--workers", 2, cwd=tmp_path, env=variables)
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("cannot use its cache folder") == 1


# Four kernels, on file systems whose flock fails in four ways.
NO_LOCKING = (
    KERNEL
    + """
import errno, fcntl, os

for number in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF):
    def flock(handle, operation):
        raise OSError(number, os.strerror(number))

    fcntl.flock = flock
    print(kernel(half, f"tiny-{number}", Path(leeward.__file__))(3.0))
"""
)


@pytest.mark.slow
def test_without_locking_every_process_compiles_for_itself(tmp_path):
    assert finish(start(tmp_path, NO_LOCKING)) == ("\n".join([ANSWER] * 4), "")
    assert len(kernels(tmp_path)) == 4


def test_a_lock_that_cannot_be_opened_costs_no_result(tmp_path, warm):
    cache = tmp_path / "cache"
    shutil.copytree(warm, cache)
    (path,) = kernels(cache)
    path.unlink()
    path.with_suffix(".lock").unlink()
    path.with_suffix(".lock").mkdir()
    assert finish(start(cache)) == (ANSWER, "")
    assert kernels(cache) == [path]


@pytest.mark.slow
def test_a_file_in_the_place_of_the_kernels_costs_no_result(tmp_path, warm):
    cache = tmp_path / "cache"
    folder = cache / kernels(warm)[0].parent.relative_to(warm)
    folder.parent.mkdir(mode=0o700, parents=True)
    folder.touch()
    number, err = finish(start(cache))
    assert number == ANSWER
    assert err.count("cannot use its cache folder") == 1


@pytest.mark.slow
def test_a_read_only_cache_is_read(tmp_path, warm):
    if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tmp_path]).returncode:
        pytest.skip("only root can mount a read-only file system")
    try:
        cache = tmp_path / "cache"
        shutil.copytree(warm, cache)
        subprocess.run(["mount", "-o", "remount,ro", tmp_path], check=True)
        assert finish(start(cache)) == (ANSWER, "")
        number, err = finish(start(cache, TINY.replace('"tiny"', '"another"')))
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
    assert number == ANSWER
    assert err.count("Read-only file system") == 1


def test_a_full_disk_costs_no_result(tmp_path):
    """On a file system of one page the folder can be made, but the kernel does not fit."""
    if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", tmp_path]).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        number, err = finish(start(tmp_path))
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
    assert number == ANSWER
    assert err.count("No space left on device") == 1


def on_a_terminal(start_with):
    """Return what a program writes to standard error where that is a terminal."""
    import pty

    main, worker = pty.openpty()
    process = start_with(worker)
    out, _ = process.communicate(timeout=PATIENCE_S)
    os.close(worker)
    assert (process.returncode, out.strip()) == (0, ANSWER)
    said = b""
    with contextlib.suppress(OSError):  # the other end is closed: there is nothing more
        while piece := os.read(main, 10_000):
            said += piece
    os.close(main)
    return said.decode()


def test_the_library_says_nothing_even_on_a_terminal(tmp_path):
    assert on_a_terminal(lambda stream: start(tmp_path, stderr=stream)) == ""


SHOWN = (
    """
from leeward.cli.progress import compiling_shown
from leeward.cli.output import printable_streams
"""
    + KERNEL
    + "with printable_streams(), compiling_shown():\n    print(halved(3.0))\n"
)


def test_commands_say_that_they_compile(tmp_path):
    """With the elapsed time: on a terminal in one line, elsewhere in two with time stamps."""
    said = on_a_terminal(lambda stream: start(tmp_path / "terminal", SHOWN, stderr=stream))
    assert "compiling the wake engine (once on this machine) ... 0 s" in said
    assert re.search(r"\r\x1b\[Kcompiled the wake engine \(once on this machine\) in \d+ s\r\n$", said)
    assert said.count("\n") == 1
    _, said = finish(start(tmp_path / "log", SHOWN))
    first, last = (line.split(" ", 2)[2] for line in said.splitlines())  # after date and time
    assert first == "compiling the wake engine (once on this machine)"
    assert re.fullmatch(r"compiled the wake engine \(once on this machine\) in \d+ s", last)


def test_compiling_is_told_once_and_without_a_cache_too():
    events = []

    def half(number):
        return number / 2

    with compile_events(lambda event, **facts: events.append(event)):
        if not numba.config.DISABLE_JIT:
            loop = compiling.kernel(half, "tiny", None)
            assert (loop(3.0), loop(3)) == (1.5, 1.5)  # two kernels: of a float, and of an int
            assert events == ["compiling"]
    assert events == ([] if numba.config.DISABLE_JIT else ["compiling", "compiled"])


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="is about compiled code")
def test_a_piece_is_compiled_once_for_constants_and_variables():
    @compiling.formula
    def tripled(number):
        return 3 * number

    def loop(number):
        first = 0
        for _ in range(2):
            first += tripled(first) + tripled(1) + tripled(number)
        return first

    assert compiling.kernel(loop, "tiny", None)(5) == loop(5)
    assert len(tripled.overloads) == 1
    (piece,) = tripled.overloads.values()
    assert piece.library.get_pointer_to_function(piece.fndesc.llvm_func_name) == 0  # no machine code
    assert tripled(0.5) == 1.5  # from Python it is a function as any other


def test_a_kernel_that_another_process_compiles_need_not_be_waited_for(tmp_path):
    tmp_path.chmod(0o700)
    one, other = (compiling.KernelCache(tmp_path, "tiny") for _ in range(2))
    path = tmp_path / "tiny.kernel"
    one._lock(path)
    with without_waiting(), pytest.raises(CompiledElsewhereError):
        other._lock(path)
    one.release()
    with without_waiting():
        other._lock(path)
    assert list(other._locks) == [path]
    other.release()


def test_workers_compile_first_what_nobody_else_compiles():
    """Here another process compiles the first kernel until the third was asked for."""
    asked = []

    def question(name):
        def ask():
            asked.append(name)
            if name == "first" and not waits() and "third" not in asked:
                raise CompiledElsewhereError

        return ask

    compute._make_calls([question(name) for name in ("first", "second", "third")])
    assert asked == ["first", "second", "third", "first"]
    asked.clear()
    compute._make_calls([question("first")])  # all are being compiled: it waits
    assert asked == ["first", "first"]


WARMED = """
from leeward.campaign import load
from leeward.campaign.compute import warm_up
from leeward.store.format.keys import Key
campaign = load({path!r})
warm_up(campaign)
from leeward.compiling import on_compile
compiled = []
with on_compile(compiled.append):
    campaign.optimise(Key(0, 0, 0))
print(len(compiled))
"""


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["smart_start", "smart_start+refine", "random+refine", "random"])
def test_tasks_compile_nothing_after_the_warm_up(tmp_path, recipe):
    path = run_cases.make_campaign(tmp_path, optimiser={"recipe": recipe, "effort": "normal"})
    assert finish(start(tmp_path / "cache", WARMED.format(path=str(path))))[0] == "0"
    names = {path.name.rsplit("-", 1)[0].removeprefix("nygaard_2022-") for path in kernels(tmp_path / "cache")}
    needed = {"reaches", "energy", "layout-violations", "layout-repair", "area-signed_distances"}
    if recipe.endswith("+refine"):
        needed |= {"gradient", "marginal", "gains", "layout-descend", "layout-widest_lattice"}
    assert names == needed | ({"points"} if recipe.startswith("smart_start") else set())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "inline"])
def test_a_run_on_an_empty_cache_says_that_it_compiles(tmp_path, engine, monkeypatch):
    monkeypatch.setenv("LEEWARD_CACHE_DIR", str(tmp_path / "cache"))
    run_cases.make_campaign(tmp_path, seeds=3)
    done = run_cases.leeward("run", "campaign.yaml", "--engine", engine, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event.get("event") for event in events]
    assert (kinds.count("compiling"), kinds.count("compiled")) == (1, 1)
    first = min(kinds.index("compiled"), kinds.index("done"))  # a worker may be done while another still compiles
    assert kinds.index("began") < kinds.index("compiling") < first
    assert events[kinds.index("compiled")]["seconds"] > 0.0
    again = run_cases.leeward("run", "campaign.yaml", "--engine", engine, "--seeds", 4, cwd=tmp_path)
    assert "compil" not in again.stderr


@pytest.mark.slow
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
from leeward.wind.wake_models.iea37_gaussian import source, wake_at, reach

@formula
def contribution(wake, p, table):
    return p[0] * wake.strength

@dataclass(frozen=True)
class TopHat(WakeModel):
    share: float = 0.5
    name: ClassVar[str] = "top_hat"
    formulas: ClassVar[Formulas] = Formulas(source, wake_at, contribution, reach)
    def parameters(self):
        return (float(self.share),)
"""


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_new_model_is_one_file(tmp_path, compiled):
    """In the table of the wake models it has a name; from a custom file it is `module:Name`, or an object."""
    (tmp_path / "own.py").write_text(MODEL)
    question = FARM.replace("{model!r}", "TopHat()")
    plain = os.environ | {"LEEWARD_CACHE_DIR": str(tmp_path / "own"), "NUMBA_DISABLE_JIT": "1"}
    variables = plain | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(SOURCE.parent)])}
    if compiled:
        del variables["NUMBA_DISABLE_JIT"]
    programs = (f"from own import TopHat\n{question}", MODEL + question, FARM.format(model="own:TopHat"))
    own, *others = (answer(text, variables) for text in programs)
    assert float(own) > 0
    assert others == [own, own]
    (tmp_path / "own.py").unlink()
    copy = copy_of_the_package(tmp_path / "src")
    folder = copy / "leeward" / "wind" / "wake_models"
    (folder / "top_hat.py").write_text(MODEL)
    table = (folder / "__init__.py").read_text()
    (folder / "__init__.py").write_text(table.replace("CLASSES = {", 'CLASSES = {"top_hat": "TopHat", '))
    # plain Python and compiled code agree but for the last bit or two
    named = answer(FARM.format(model="top_hat"), plain | {"PYTHONPATH": str(copy)})
    assert float(named) == pytest.approx(float(own), rel=1e-14)


def test_threads_that_ask_at_once_share_one_result():
    """Two sets of kernels of one model would be compiled twice."""
    made = []

    @compiling.once
    def make(name):
        made.append(name)
        time.sleep(0.05)
        return object()

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(make, ["one", "one", "two", "one"] * 2))
    assert sorted(made) == ["one", "two"]
    assert len({id(each) for each in results}) == 2


@pytest.mark.slow
def test_an_edited_custom_model_gives_the_new_number(tmp_path):
    (tmp_path / "own.py").write_text(MODEL)
    question, variables = FARM.format(model="own:TopHat"), dict(os.environ)
    variables.pop("NUMBA_DISABLE_JIT", None)
    variables |= {"LEEWARD_CACHE_DIR": str(tmp_path / "cache")}
    variables |= {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(SOURCE.parent)])}
    before = answer(question, variables)
    known = times(tmp_path / "cache")
    assert answer(question, variables) == before
    assert times(tmp_path / "cache") == known
    (tmp_path / "own.py").write_text(MODEL.replace("p[0] * wake", "0.1 * p[0] * wake"))
    assert float(answer(question, variables)) > float(before)


def answer(program, variables):
    """Type the program into Python and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-"], input=program, capture_output=True, text=True, timeout=PATIENCE_S, env=variables
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
