"""The child process in which libhdf5 writes a merged file, `python -m leeward.store.writer_main PARENT PATH`.

libhdf5 may crash on a full disk: then only this process ends, and its parent reports it. Standard input has one frame
per result, then a frame with the attributes of the file. The answer goes to standard output as JSON.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import h5py

from leeward.files import sync
from leeward.processes import end_with
from leeward.store.format.groups import LIBVER, write_root
from leeward.store.isolated.frames import read_frame
from leeward.store.isolated.templates import GroupWriter


def write_file(path: Path, stream: BinaryIO) -> int:
    """Write all frames durably, and return the number of results."""
    file = h5py.File(path, "w", libver=LIBVER, locking=False)  # not closed after an error: libhdf5 might crash
    groups = GroupWriter(file)
    count = 0
    while True:
        header, attributes, datasets = read_frame(stream)
        if "key" not in header:
            break
        groups.write(header["key"], attributes, datasets)
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
    end_with(parent)
    sys.unraisablehook = lambda found: _end({"error": f"{found.exc_value}"})  # h5py may fail as it closes a dataset
    try:
        count = write_file(path, sys.stdin.buffer)
    except EOFError:
        path.unlink(missing_ok=True)
        os._exit(1)
    except Exception as error:  # any error of libhdf5 on a failing disk: the parent raises it
        _end({"error": f"{type(error).__name__}: {error}"})
    _end({"count": count})


def _end(answer: dict[str, Any]) -> NoReturn:
    """Send the answer and exit at once: libhdf5 must not touch the file again, above all after an error."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0 if "count" in answer else 1)


if __name__ == "__main__":
    main()
