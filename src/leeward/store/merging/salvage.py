"""Replace the damaged sources of a merge by the results recovered from them."""

import contextlib
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import h5py

from leeward.errors import StorageError
from leeward.events import OnProgress
from leeward.store.directory.temporary import Workspace
from leeward.store.format.found import FoundFile
from leeward.store.format.groups import LIBVER, root_attributes, write_group, write_root
from leeward.store.isolated.reader import read_files
from leeward.store.merging.merge_report import BadResult, Salvaged
from leeward.store.rescue.recovery import Recoverer, Recovery


@dataclass
class Sources:
    """The files to merge, in order. salvaged: by copy, the recovery that made it."""

    places: list[str] = field(default_factory=list)
    salvaged: dict[str, Salvaged] = field(default_factory=dict)


@contextlib.contextmanager
def salvaged_sources(places: Sequence[str], output: Path, processes: int, on_progress: OnProgress) -> Iterator[Sources]:
    """Yield the sources, with a copy of the recovered results in place of each one that is or may be damaged.

    The copies lie in a folder beside the output until the context ends. A file without seals may be damaged unseen: it
    is read twice, by libhdf5 and byte by byte.
    """
    sources = Sources()
    sound = set(_sound(places, processes, on_progress))
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(Workspace(output))
        except OSError as error:
            raise StorageError(f"{output.parent}: temporary copies cannot be made there ({error})") from error
        with Recoverer(folder) as recoverer:
            for number, place in enumerate(places):
                on_progress("salvaging", number, len(places))
                if place in sound:
                    sources.places.append(place)
                    continue
                recovery = recoverer.recover(Path(place))
                copy = folder / f"{number}.h5"
                _write(recovery, copy)
                sources.places.append(str(copy))
                sources.salvaged[str(copy)] = _summary(recovery)
        yield sources


def _sound(places: Iterable[str], processes: int, on_progress: OnProgress) -> Iterator[str]:
    """Yield the files whose seals prove them intact."""
    places = list(places)
    done = 0
    for found in read_files(map(Path, places), processes=processes):
        if isinstance(found, FoundFile):
            done += 1
            on_progress("checking", done, len(places))
            if found.is_valid and found.sealed:
                yield str(found.path)


def _write(recovery: Recovery, copy: Path) -> None:
    """Write the results to a file made in memory: libhdf5 may crash on a full disk."""
    image = io.BytesIO()
    with h5py.File(image, "w", libver=LIBVER) as file:
        attributes = {name: value for name, value in recovery.attributes.items() if name != "format_version"}
        results = [found.result for found in recovery.results if found.result is not None]
        write_root(file, {**attributes, **(root_attributes(results[0]) if results else {})})
        for result in results:
            write_group(file, result)
    try:
        copy.write_bytes(image.getvalue())
    except OSError as error:
        reason = f"{copy.parent}: results recovered from {recovery.path} cannot be written there ({error})"
        raise StorageError(reason) from error


def _summary(recovery: Recovery) -> Salvaged:
    return Salvaged(
        place=str(recovery.path),
        size=recovery.size,
        verdict=recovery.verdict,
        reason=recovery.reason,
        sha256=bytes.fromhex(recovery.sha256),
        verified=recovery.verified,
        plausible=recovery.plausible,
        lost=tuple(BadResult(found.name, found.verdict, found.reason) for found in recovery.lost),
        tried=tuple(recovery.tried.items()),
        notes=tuple(recovery.notes),
    )
