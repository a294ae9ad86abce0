"""Replace the damaged sources of a merge by the results recovered from them."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from leeward.errors import StorageError
from leeward.events import OnProgress
from leeward.files import storage_errors
from leeward.store.directory.shards import file_bytes
from leeward.store.directory.temporary import workspace
from leeward.store.format.found import FoundFile
from leeward.store.isolated.reader import read_files
from leeward.store.rescue.recovery import Recoverer, Recovery


@contextlib.contextmanager
def salvaged_sources(
    places: Sequence[str], output: Path, processes: int, on_progress: OnProgress
) -> Iterator[tuple[list[str], dict[str, Recovery]]]:
    """Yield the sources, and replace each one that is or may be damaged by a copy of its recovered results.

    Also yield the recovery of each copy. The copies are in a folder beside the output until the context ends. Damage to
    a file without seals may go unnoticed, so such a file is read twice: by libhdf5, and by searching its bytes.
    """
    sources: list[str] = []
    salvaged: dict[str, Recovery] = {}
    sound = set(_sound(places, processes, on_progress))
    with contextlib.ExitStack() as stack:
        with storage_errors(output.parent, "temporary copies cannot be made there"):
            folder = stack.enter_context(workspace(output))
        with Recoverer(folder) as recoverer:
            for number, place in enumerate(places):
                on_progress("salvaging", number, len(places))
                if place in sound:
                    sources.append(place)
                    continue
                recovery = recoverer.recover(Path(place))
                copy = folder / f"{number}.h5"
                _write(recovery, copy)
                sources.append(str(copy))
                salvaged[str(copy)] = recovery
                recovery.file, recovery.results = replace(recovery.file, attributes={}), []  # to save memory
        yield sources, salvaged


def _sound(places: Sequence[str], processes: int, on_progress: OnProgress) -> Iterator[str]:
    """Yield the files whose seals prove that they are intact."""
    done = 0
    for found in read_files(map(Path, places), processes=processes):
        if isinstance(found, FoundFile):
            done += 1
            on_progress("checking", done, len(places))
            if found.is_valid and found.sealed:
                yield str(found.path)


def _write(recovery: Recovery, copy: Path) -> None:
    attributes = {name: value for name, value in recovery.file.attributes.items() if name != "format_version"}
    results = [found.result for found in recovery.results if found.result is not None]
    try:
        copy.write_bytes(file_bytes(results, attributes))
    except OSError as error:
        reason = f"{copy.parent}: results recovered from {recovery.file.path} cannot be written there ({error})"
        raise StorageError(reason) from error
