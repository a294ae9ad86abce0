"""Worker files as other scripts leave them behind, and results of our own to compare them with."""

import dataclasses

import h5py
import numpy as np

from leeward.store.directory.owner import Owner
from leeward.store.format.groups import LIBVER, write_group, write_root
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import Result


def left_behind(target, end=".tmp"):
    """The name of a temporary file that a process of this machine was writing when it was killed."""
    dead = dataclasses.replace(Owner.myself(), process_start="0")
    return f".{target}.{dead.tag}.0123abcd{end}"


def layout_of(key, turbines=5):
    """Different for every key; far enough apart."""
    rng = np.random.default_rng([*key, turbines])
    return 1000.0 * rng.permutation(100)[: 2 * turbines].reshape(2, turbines) + rng.uniform(0, 100, (2, turbines))


def own_result(farm=0, type_=0, seed=0, *, turbines=5, aep=None, **details):
    key = Key(farm, type_, seed)
    energy = 100.0 + farm + type_ / 10 + seed / 1000 if aep is None else aep
    history = np.array([[0.0, 10.0], [energy - 1, energy]])
    details = {"wake_loss": 0.1, "host": "node", "aep_by_phase": np.array([energy]), **details}
    return Result(key, layout_of(key, turbines), energy, 240.0, "f" * 64, "steps", 10, details=details, history=history)


def write_own_file(path, results, **attributes):
    """As a merged file is, in a quick way."""
    with h5py.File(path, "w", libver=LIBVER) as file:
        write_root(file, attributes)
        for result in results:
            write_group(file, result)
    return path


def write_foreign_group(parent, key, *, layout=None, aep=100.0, turbines=5, **attributes):
    """As the script of the story writes one; `aep` None: none. An attribute None: left out."""
    group = parent.create_group(str(key))
    group["layout"] = layout_of(key, turbines) if layout is None else layout
    if aep is not None:
        group["aep"] = aep
    usual = {"farm_idx": key[0], "type_idx": key[1], "n_turbines": turbines, "diameter": 240.0, "ss_seed": key[2]}
    for name, value in {**usual, **attributes}.items():
        if value is not None:
            group.attrs[name] = value
    return group


def write_foreign_file(path, keys=(), *, folder=None, **options):
    """A worker file: `init`, and a group for each key."""
    with h5py.File(path, "w") as file:
        file["init"] = 1
        parent = file.create_group(folder) if folder else file
        for key in keys:
            write_foreign_group(parent, Key(*key), **options)
    return path


def write_crashed_folder(folder):
    """`layouts.h5_temp` as the crash left it; keys (0, 0, 0..8) are in it, (0, 0, 3) without its aep."""
    folder.mkdir(parents=True, exist_ok=True)
    write_foreign_file(folder / "worker_100.h5", [(0, 0, 0), (0, 0, 1)])
    (folder / "worker_101.h5").touch()
    write_foreign_file(folder / "worker_102.h5")
    write_foreign_file(folder / "worker_103.h5", [(0, 0, 2)], aep=-5300.1)
    write_foreign_file(folder / "worker_104.h5", [(0, 0, 3)], aep=None)
    write_foreign_file(folder / "worker_105.h5", [(0, 0, 4), (0, 0, 0)])
    write_foreign_file(folder / "worker_106.h5", [(0, 0, 5), (0, 0, 6)], folder="optimized_layouts")
    write_foreign_file(folder / "worker_107.h5", [(0, 0, 7)], aep=0.0)
    whole = write_foreign_file(folder / "worker_108.h5", [(0, 0, 8)]).read_bytes()
    (folder / "worker_108.h5").write_bytes(whole[: len(whole) // 2])
    return folder
