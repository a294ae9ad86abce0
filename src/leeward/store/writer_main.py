"""The child process in which libhdf5 writes a merged file, `python -m leeward.store.writer_main PATH PARENT`.

libhdf5 may crash on a full disk: then this process does, and its parent gives a message. Results come in on the
standard input, a frame each; the last frame has the attributes of the file itself. An answer in JSON goes to the
standard output.
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
