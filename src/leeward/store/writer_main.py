"""The child process in which libhdf5 writes a merged file, `python -m leeward.store.writer_main PATH PARENT`.

libhdf5 may crash on a full disk: then this process does, and its parent gives a message. Results come in on the
standard input, a frame each: the length of a JSON header, the header, and the raw numbers that it announces. The last
frame has the attributes of the file itself. An answer in JSON goes to the standard output.
"""

import json
import math
import os
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import h5py
import numpy as np

from leeward.files import sync
from leeward.processes import end_with
from leeward.store.format.schema import LIBVER, Array, Result, Value, seal_of, write_root
from leeward.store.isolated.templates import GroupWriter

_LENGTH = struct.Struct("<I")


# --- frames ----------------------------------------------------------------------------------------------------------


def result_frame(result: Result, attributes: Mapping[str, Value]) -> bytes:
    """A result with its seal. attributes: those of the result, which are costly to compute twice."""
    datasets = result.datasets
    header = {"key": str(result.key), "seal": seal_of(attributes, datasets)}
    return _frame(header, attributes, datasets)


def root_frame(attributes: Mapping[str, Value]) -> bytes:
    """The attributes of the file itself: the last frame."""
    return _frame({}, attributes, {})


def _frame(header: dict[str, Any], attributes: Mapping[str, Value], datasets: Mapping[str, Array]) -> bytes:
    """Real numbers travel as their bytes, not as digits: the seal looks at each bit, also of what is not a number."""
    numbers = []
    plain: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, str | bool | int):
            plain[name] = value
        else:
            array = np.ascontiguousarray(value, dtype="<f8") if isinstance(value, np.ndarray) else np.float64(value)
            plain[name] = list(np.shape(array))
            numbers.append(array.tobytes())
    for array in datasets.values():
        numbers.append(array.tobytes())
    shapes = {name: array.shape for name, array in datasets.items()}
    text = json.dumps({**header, "attributes": plain, "datasets": shapes}).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *numbers])


def read_frame(stream: BinaryIO) -> tuple[dict[str, Any], dict[str, Value], dict[str, Array]]:
    """Header, attributes and datasets; an EOFError if the sender is gone."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    header = json.loads(_exactly(stream, length))
    attributes: dict[str, Value] = {}
    for name, value in header["attributes"].items():
        attributes[name] = value if not isinstance(value, list) else _numbers(stream, value)
    datasets = {name: np.asarray(_numbers(stream, shape)) for name, shape in header["datasets"].items()}
    return header, attributes, datasets


def _numbers(stream: BinaryIO, shape: list[int]) -> Any:
    array = np.frombuffer(_exactly(stream, 8 * math.prod(shape)), dtype="<f8").reshape(shape)
    return array if shape else float(array)


def _exactly(stream: BinaryIO, length: int) -> bytes:
    content = stream.read(length)
    if len(content) != length:
        raise EOFError("the sender is gone")
    return content


# --- the process -----------------------------------------------------------------------------------------------------


def write_file(path: Path, stream: BinaryIO) -> int:
    """All that comes in, on the disk when this returns: how many results."""
    file = h5py.File(path, "w", libver=LIBVER, locking=False)  # not closed after an error: libhdf5 might crash then
    groups = GroupWriter(file)
    count = 0
    while True:
        header, attributes, datasets = read_frame(stream)
        if "key" not in header:
            break
        groups.write(header["key"], attributes, datasets, header["seal"])
        count += 1
    write_root(file, attributes.items())
    file.flush()
    file.close()
    handle = os.open(path, os.O_RDWR)
    try:
        sync(handle)
    finally:
        os.close(handle)
    return count


def main() -> None:
    path, parent = Path(sys.argv[1]), int(sys.argv[2])
    end_with(parent)
    sys.unraisablehook = lambda found: _end(
        {"error": f"{found.exc_value}"}
    )  # what h5py meets as it lets go of a dataset
    try:
        count = write_file(path, sys.stdin.buffer)
    except EOFError:
        path.unlink(missing_ok=True)
        os._exit(1)
    except Exception as error:  # whatever libhdf5 makes of a failing disk: the parent raises it
        _end({"error": f"{type(error).__name__}: {error}"})
    _end({"count": count})


def _end(answer: dict[str, Any]) -> NoReturn:
    """At once: libhdf5 is not to touch the file again, least of all after an error."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0 if "count" in answer else 1)


if __name__ == "__main__":
    main()
