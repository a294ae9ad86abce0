"""The child process in which libhdf5 writes a merged file, `python -m leeward.store.writer_main PARENT PATH`.

libhdf5 may crash on a full disk: then only this process ends, and its parent reports it. Standard input has one frame
per result, then a frame with the attributes of the file. The answer goes to standard output as JSON.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5o, h5s

from leeward.files import sync
from leeward.processes import exit_with_parent
from leeward.store.format.groups import LIBVER, attribute_form, attribute_names, write_parts, write_root
from leeward.store.format.kind import Array, Value
from leeward.store.isolated.frames import read_frame

_MOST_TEMPLATES = 100
_MOST_SHAPES = 10_000  # that are counted; results of rare shapes are written directly
_WORTH = 3  # results of a shape before it gets a template


def write_file(path: Path, stream: BinaryIO) -> int:
    """Write all frames durably, and return the number of results."""
    file = h5py.File(path, "w", libver=LIBVER, locking=False)  # not closed after an error: libhdf5 might crash
    groups = GroupWriter(file)
    count = 0
    while True:
        header, attributes, datasets = read_frame(stream)
        if "key" not in header:
            break
        groups.write(header["key"], attributes, datasets, header["units"])
        count += 1
    write_root(file, attributes)
    file.flush()
    file.close()
    handle = os.open(path, os.O_RDWR)
    try:
        sync(handle)
    finally:
        os.close(handle)
    return count


def main() -> None:
    parent, path = int(sys.argv[1]), Path(sys.argv[2])
    exit_with_parent(parent)
    sys.unraisablehook = lambda found: _end({"error": f"{found.exc_value}"})  # h5py may fail as it closes a dataset
    try:
        count = write_file(path, sys.stdin.buffer)
    except EOFError:
        path.unlink(missing_ok=True)
        os._exit(1)
    except Exception as error:  # libhdf5 may raise any error on a failing disk; the parent reports it
        _end({"error": f"{type(error).__name__}: {error}"})
    _end({"count": count})


def _end(answer: dict[str, Any]) -> NoReturn:
    """Send the answer and exit at once: libhdf5 must not touch the file again, above all after an error."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0 if "count" in answer else 1)


class GroupWriter:
    """Writes results as groups of a file.

    Many results differ from an earlier one only in values, not in names and sizes. The first results of a shape are
    written directly. For later ones, a group in memory gets the new values and is copied as a whole. This takes 0.1 ms
    instead of 0.3 ms per result, and makes the file a tenth smaller.
    """

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        self._memory = h5py.File("templates", "w", libver=LIBVER, driver="core", backing_store=False)
        self._seen: Counter[Any] = Counter()
        self._templates: dict[Any, _Template] = {}

    def write(
        self, name: str, attributes: Mapping[str, Value], datasets: Mapping[str, Array], units: Mapping[str, str]
    ) -> None:
        """Write a group. attributes: with the seal. units: of the datasets, the same for all results of a file."""
        shape = tuple((key, _size(value)) for key, value in (*attributes.items(), *datasets.items()))
        template = self._templates.get(shape)
        if template is None and self._is_worth(shape):
            place = f"template{len(self._templates)}"
            write_parts(self._memory, place, attributes, datasets, units)
            template = self._templates[shape] = _Template(self._memory, place)
        if template is None:
            write_parts(self._file, name, attributes, datasets, units)
        else:
            template.copy(self._file, name, attributes, datasets)

    def _is_worth(self, shape: Any) -> bool:
        if len(self._templates) >= _MOST_TEMPLATES or len(self._seen) >= _MOST_SHAPES:
            return False
        self._seen[shape] += 1
        return self._seen[shape] > _WORTH


class _Template:
    """A group in memory, with its attributes and datasets held open."""

    def __init__(self, memory: h5py.File, place: str) -> None:
        self._memory = memory.id
        self._place = place.encode()
        group = h5g.open(memory.id, self._place)
        self._attributes = {name.decode(): h5a.open(group, name) for name in attribute_names(group)}
        self._datasets = {name.decode(): h5d.open(group, name) for name in group}
        self._values: dict[str, Value] = {}

    def copy(self, file: h5py.File, name: str, attributes: Mapping[str, Value], datasets: Mapping[str, Array]) -> None:
        for key, value in attributes.items():
            if isinstance(value, str) and self._values.get(key) == value:
                continue  # many texts are the same in all results
            kind, _, data = attribute_form(value)
            self._attributes[key].write(data, mtype=kind)
        self._values = dict(attributes)
        for key, array in datasets.items():
            self._datasets[key].write(h5s.ALL, h5s.ALL, array)
        h5o.copy(self._memory, self._place, file.id, name.encode())


def _size(value: Value) -> Any:
    """Return what two values must share to fit an attribute of the same form."""
    if isinstance(value, str):
        return len(value.encode())
    return value.shape if isinstance(value, np.ndarray) else type(value)


if __name__ == "__main__":
    main()
