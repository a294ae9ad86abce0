"""The one module that knows the name of every file of a run."""

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from leeward.errors import InputError
from leeward.files import TEMPORARY, kind_of
from leeward.store.format.keys import Key

SILLY = ".nfs"  # how NFS names a file that is removed while a process of the same machine has it open
INDEX = ".index"  # how the name of a cache beside a file of results ends
CREDENTIALS = ".tls-"  # how the name of a folder begins with the TLS files of a cluster that is started for a run
PROBE = ".probe-"  # how the name of a file begins by which other machines find out whether they see the directory
PACK_SIZE = 1000  # results: while it packs, the coordinator hears no worker, for some 2 ms each
LONGEST_CAMPAIGN = 64_000_000  # bytes, as of the text in a merged file
_INSIDE = {
    **{folder: folder for folder in ("results", "packs", "failures", "workers", "logs", "quarantine")},
    **{"campaign": "campaign.yaml", "audit": "audit.jsonl", "index": "index.jsonl", "lock": "lock"},
}
_HEARTBEAT = re.compile(r".+-\d+-(?:inline|[0-9a-f]{8,32})\.json\Z")  # host, process, and a token
_BEING_WRITTEN = re.compile(r"\..+\.[0-9a-f]{8,32}\.tmp\Z|\.probe-[0-9a-f]{8}\.tmp\Z")


@dataclass(frozen=True)
class RunPaths:
    """Where everything of one run lies: `layouts.h5`, and `layouts.run/` beside it."""

    output: Path
    root: Path = field(init=False, repr=False, compare=False)
    campaign: Path = field(init=False, repr=False, compare=False)
    results: Path = field(init=False, repr=False, compare=False)
    packs: Path = field(init=False, repr=False, compare=False)
    failures: Path = field(init=False, repr=False, compare=False)
    workers: Path = field(init=False, repr=False, compare=False)
    logs: Path = field(init=False, repr=False, compare=False)
    quarantine: Path = field(init=False, repr=False, compare=False)
    audit: Path = field(init=False, repr=False, compare=False)
    index: Path = field(init=False, repr=False, compare=False)
    lock: Path = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.output.suffix != ".h5":
            raise InputError(f"{self.output}: the output name must end in .h5, for example layouts.h5")
        root = self.output.with_suffix(".run")
        object.__setattr__(self, "root", root)
        for place, name in _INSIDE.items():
            object.__setattr__(self, place, root / name)

    @classmethod
    def of(cls, path: Path) -> "RunPaths":
        """Of a run directory, or of the file beside it."""
        return cls(path.with_suffix(".h5") if path.suffix == ".run" else path)

    def shard(self, key: Key) -> Path:
        """Spread over 256 folders, so that none grows huge."""
        folder = hashlib.sha256(str(key).encode()).hexdigest()[:2]
        return self.results / folder / f"{key}.h5"

    def failure(self, key: Key) -> Path:
        return self.failures / f"{key}.json"

    def folders(self) -> list[Path]:
        """All that a run needs."""
        return [self.results, self.failures, self.workers, self.logs, self.quarantine]

    def shards(self) -> Iterator[Path]:
        """All files that may be shards, whatever is in them, in no order; what is being written is left out.

        No link is followed: what stands in the place of a folder of shards is itself one of these files.
        """
        for folder in entries(self.results):
            if folder.is_dir(follow_symlinks=False):
                inside = entries(Path(folder.path))
                yield from (Path(entry.path) for entry in inside if not entry.name.endswith(TEMPORARY))
            elif not folder.name.startswith("."):
                yield Path(folder.path)

    def pack_files(self) -> list[Path]:
        """All files that may be packs, whatever is in them, the oldest first; without caches and what is being made."""
        names = (entry.name for entry in entries(self.packs))
        return [self.packs / name for name in sorted(names) if not (name.startswith(".") or name.endswith(INDEX))]

    def new_pack(self) -> Path:
        """A name that comes after all that are there, and that nobody else takes at the same time."""
        numbers = [int(path.name[5:11]) for path in self.pack_files() if path.name[5:11].isdecimal()]
        return self.packs / f"pack-{max(numbers, default=0) + 1:06}-{secrets.token_hex(4)}.h5"

    def files(self) -> Iterator[Path]:
        """All that may hold results. Packs come last: what is packed while the shards are read is not missed so.

        A link or a file in the place of a whole folder is one of them: what it hides is not read, and not forgotten.
        """
        yield from (place for place in (self.results, self.packs) if kind_of(place) not in ("", "folder"))
        yield from self.shards()
        yield from self.pack_files()

    def heartbeats(self) -> list[Path]:
        """The heartbeats of workers: regular files with the names that leeward gives them."""
        return _regular(entries(self.workers), _HEARTBEAT)

    def temporary_shards(self) -> list[Path]:
        """Shards that are being written, or that a killed process has left behind."""
        folders = (Path(entry.path) for entry in entries(self.results) if entry.is_dir(follow_symlinks=False))
        return [path for folder in folders for path in _regular(entries(folder), _BEING_WRITTEN)]

    def temporaries(self) -> list[Path]:
        """All files that are being written in the run directory, or that killed processes have left behind."""
        inside = entries(self.root, may_be_link=True)
        for folder in (self.packs, *self.folders()):
            inside += entries(folder)
        return _regular(inside, _BEING_WRITTEN) + self.temporary_shards()

    def temporary_outputs(self) -> list[Path]:
        """The same of files beside the run directory: the output and its index."""
        beside = entries(self.output.parent, may_be_link=True)
        return _regular([entry for entry in beside if entry.name.startswith(f".{self.output.name}.")], _BEING_WRITTEN)

    def odd_places(self) -> Iterator[str]:
        """Say what stands in the place of a folder or a side file and is none: a link, a pipe, a device.

        The run directory itself may lie behind a link. Nothing in it may: leeward would read, change or remove files
        that are not its own.
        """
        places = [(folder, "folder") for folder in (*self.folders(), self.packs)]
        places += [(file, "file") for file in (self.campaign, self.audit, self.index, self.lock)]
        for path, expected in places:
            if (kind := kind_of(path)) not in ("", expected):
                yield _oddity(path, kind, expected)
        for entry in entries(self.results):
            if (kind := kind_of(Path(entry.path))) not in ("", "folder", "file"):
                yield _oddity(Path(entry.path), kind, "folder")

    def demand_own_places(self) -> None:
        """Raise InputError for the first odd place, before anything in the run directory is changed."""
        for oddity in self.odd_places():
            raise InputError(oddity)


def entries(folder: Path, *, may_be_link: bool = False) -> "list[os.DirEntry[str]]":
    """Return what is in a folder; nothing if it is not there, or if a link or a file stands in its place.

    may_be_link: a link to the folder is as good, which it is for the run directory itself and what is above it.
    """
    if not (folder.is_dir() if may_be_link else kind_of(folder) == "folder"):
        return []
    try:
        with os.scandir(folder) as found:
            return [entry for entry in found if not entry.name.startswith(SILLY)]
    except FileNotFoundError:  # somebody has just removed it
        return []


def _regular(inside: "list[os.DirEntry[str]]", pattern: re.Pattern[str]) -> list[Path]:
    """Return those that are regular files and whose names match."""
    named = (entry for entry in inside if pattern.match(entry.name))
    return [Path(entry.path) for entry in named if entry.is_file(follow_symlinks=False)]


def _oddity(path: Path, kind: str, expected: str) -> str:
    target = f" to {os.readlink(path)}" if kind == "link" else ""
    return (
        f"{path}: is a {kind}{target}; expected a {expected}, as leeward follows no links inside a run directory. "
        f"Put the {expected} there, or remove the {kind}"
    )


def is_pack(path: Path) -> bool:
    """By its place."""
    return path.parent.name == "packs" and path.parent.parent.suffix == ".run"


def is_shard(path: Path) -> bool:
    """By its place."""
    results = path.parent.parent
    return results.name == "results" and results.parent.suffix == ".run"


def is_run(path: Path) -> bool:
    """Whether a folder is a run directory."""
    if path.suffix != ".run" or not path.is_dir():
        return False
    run = RunPaths.of(path)
    return any(map(os.path.lexists, (run.results, run.packs, run.campaign)))
