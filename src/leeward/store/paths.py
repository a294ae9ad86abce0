"""The names of all files of a run. No other module defines file names."""

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from leeward.errors import InputError
from leeward.files import TEMPORARY, kind_of
from leeward.store.format.keys import Key

SILLY = ".nfs"  # prefix of a file that is removed on NFS while a process of the same machine has it open
INDEX = ".index"  # suffix of the index of a results file
CREDENTIALS = ".tls-"  # prefix of the folder with the TLS files of a cluster that a run starts
PROBE = ".probe-"  # prefix of the file that shows other machines whether they share the directory
PACK_SIZE = 1000  # results; packing takes about 2 ms per result, while the coordinator serves no workers
LONGEST_CAMPAIGN = 64_000_000  # bytes, as for the text in a merged file
_HEARTBEAT = re.compile(r".+-\d+-(?:inline|[0-9a-f]{8,32})\.json\Z")  # host, process, and a token
_BEING_WRITTEN = re.compile(r"\..+\.[0-9a-f]{8,32}\.tmp\Z|\.probe-[0-9a-f]{8}\.tmp\Z")


class RunPaths:
    """The paths of one run: `layouts.h5`, and `layouts.run/` beside it."""

    def __init__(self, output: Path) -> None:
        if output.suffix != ".h5":
            raise InputError(f"{output}: the output name must end in .h5, for example layouts.h5")
        self.output = output
        self.root = root = output.with_suffix(".run")
        self.campaign = root / "campaign.yaml"
        self.results = root / "results"
        self.packs = root / "packs"
        self.failures = root / "failures"
        self.workers = root / "workers"
        self.logs = root / "logs"
        self.quarantine = root / "quarantine"
        self.audit = root / "audit.jsonl"
        self.index = root / "index.jsonl"
        self.lock = root / "lock"

    @classmethod
    def of(cls, path: Path) -> "RunPaths":
        """Return the paths for a run directory, or for the output beside it."""
        return cls(path.with_suffix(".h5") if path.suffix == ".run" else path)

    def shard(self, key: Key) -> Path:
        """Return the path of a shard. Shards are spread over 256 folders, so that none grows huge."""
        folder = hashlib.sha256(str(key).encode()).hexdigest()[:2]
        return self.results / folder / f"{key}.h5"

    def failure(self, key: Key) -> Path:
        return self.failures / f"{key}.json"

    def folders(self) -> list[Path]:
        """Return all folders that a run needs."""
        return [self.results, self.failures, self.workers, self.logs, self.quarantine]

    def shards(self) -> Iterator[Path]:
        """Yield all files that may be shards, unchecked and unordered, without temporary files.

        Links are not followed. Anything else at the path of a folder of shards is yielded itself.
        """
        for folder in entries(self.results):
            if folder.is_dir(follow_symlinks=False):
                inside = entries(Path(folder.path))
                yield from (Path(entry.path) for entry in inside if not entry.name.endswith(TEMPORARY))
            elif not folder.name.startswith("."):
                yield Path(folder.path)

    def pack_files(self) -> list[Path]:
        """Return all files that may be packs, unchecked, oldest first, without indexes and temporary files."""
        names = (entry.name for entry in entries(self.packs))
        return [self.packs / name for name in sorted(names) if not (name.startswith(".") or name.endswith(INDEX))]

    def new_pack(self) -> Path:
        """Return a unique new name that sorts after all existing packs."""
        numbers = [int(path.name[5:11]) for path in self.pack_files() if path.name[5:11].isdecimal()]
        return self.packs / f"pack-{max(numbers, default=0) + 1:06}-{secrets.token_hex(4)}.h5"

    def files(self) -> Iterator[Path]:
        """Yield all files that may hold results. Packs come last, so that results packed meanwhile are not missed.

        A link or a file at the path of a whole folder is yielded itself, so that it gets a verdict.
        """
        yield from (place for place in (self.results, self.packs) if kind_of(place) not in ("", "folder"))
        yield from self.shards()
        yield from self.pack_files()

    def heartbeats(self) -> list[Path]:
        """Return the heartbeat files of workers: regular files with names as leeward writes them."""
        return _regular(entries(self.workers), _HEARTBEAT)

    def temporary_shards(self) -> list[Path]:
        """Return temporary files of shards, being written or left by killed processes."""
        folders = (Path(entry.path) for entry in entries(self.results) if entry.is_dir(follow_symlinks=False))
        return [path for folder in folders for path in _regular(entries(folder), _BEING_WRITTEN)]

    def temporaries(self) -> list[Path]:
        """Return all temporary files in the run directory, being written or left by killed processes."""
        inside = entries(self.root, may_be_link=True)
        for folder in (self.packs, *self.folders()):
            inside += entries(folder)
        return _regular(inside, _BEING_WRITTEN) + self.temporary_shards()

    def temporary_outputs(self) -> list[Path]:
        """Return the temporary files of the output and its index, beside the run directory."""
        beside = entries(self.output.parent, may_be_link=True)
        return _regular([entry for entry in beside if entry.name.startswith(f".{self.output.name}.")], _BEING_WRITTEN)

    def odd_places(self) -> Iterator[str]:
        """Yield a message for each link, pipe or device where a folder or file of the run belongs.

        The run directory itself may be a link. Inside it, links would make leeward read, change or remove files that
        are not its own.
        """
        places = [(folder, "folder") for folder in (*self.folders(), self.packs)]
        places += [(file, "file") for file in (self.campaign, self.audit, self.index, self.lock)]
        for path, expected in places:
            if (kind := kind_of(path)) not in ("", expected):
                yield _oddity(path, kind, expected)
        for entry in entries(self.results):
            if (kind := kind_of(Path(entry.path))) not in ("", "folder", "file"):
                yield _oddity(Path(entry.path), kind, "folder")

    def check_own_places(self) -> None:
        """Raise InputError for the first of `odd_places`, before anything in the run directory is changed."""
        for oddity in self.odd_places():
            raise InputError(oddity)


def entries(folder: Path, *, may_be_link: bool = False) -> "list[os.DirEntry[str]]":
    """Return the entries of a folder; nothing if it is missing, a link or a file.

    may_be_link: accept a link to a folder, as for the run directory itself and its parents.
    """
    if not (folder.is_dir() if may_be_link else kind_of(folder) == "folder"):
        return []
    try:
        with os.scandir(folder) as found:
            return [entry for entry in found if not entry.name.startswith(SILLY)]
    except FileNotFoundError:  # it was just removed
        return []


def _regular(inside: "list[os.DirEntry[str]]", pattern: re.Pattern[str]) -> list[Path]:
    named = (entry for entry in inside if pattern.match(entry.name))
    return [Path(entry.path) for entry in named if entry.is_file(follow_symlinks=False)]


def _oddity(path: Path, kind: str, expected: str) -> str:
    target = f" to {os.readlink(path)}" if kind == "link" else ""
    return (
        f"{path}: is a {kind}{target}; expected a {expected}; leeward does not follow links inside a run directory. "
        f"Put the {expected} there, or remove the {kind}"
    )


def is_pack(path: Path) -> bool:
    """Return whether a path is that of a pack."""
    return path.parent.name == "packs" and path.parent.parent.suffix == ".run"


def is_shard(path: Path) -> bool:
    """Return whether a path is that of a shard."""
    results = path.parent.parent
    return results.name == "results" and results.parent.suffix == ".run"


def is_run(path: Path) -> bool:
    """Return whether a folder is a run directory."""
    if path.suffix != ".run" or not path.is_dir():
        return False
    run = RunPaths.of(path)
    return any(map(os.path.lexists, (run.results, run.packs, run.campaign)))
