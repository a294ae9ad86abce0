"""The one module that knows the name of every file of a run."""

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from leeward.errors import InputError
from leeward.files import TEMPORARY
from leeward.store.keys import Key

INDEX = ".index"  # how the name of a cache beside a file of results ends


@dataclass(frozen=True)
class RunPaths:
    """Where everything of one run lies: `layouts.h5`, and `layouts.run/` beside it."""

    output: Path

    def __post_init__(self) -> None:
        if self.output.suffix != ".h5":
            raise InputError(f"{self.output}: the output has to end in .h5, for example layouts.h5")

    @classmethod
    def of(cls, path: Path) -> "RunPaths":
        """Of a run directory, or of the file beside it."""
        return cls(path.with_suffix(".h5") if path.suffix == ".run" else path)

    @property
    def root(self) -> Path:
        return self.output.with_suffix(".run")

    @property
    def campaign(self) -> Path:
        return self.root / "campaign.yaml"

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def packs(self) -> Path:
        return self.root / "packs"

    @property
    def failures(self) -> Path:
        return self.root / "failures"

    @property
    def workers(self) -> Path:
        return self.root / "workers"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def quarantine(self) -> Path:
        return self.root / "quarantine"

    @property
    def audit(self) -> Path:
        return self.root / "audit.jsonl"

    @property
    def index(self) -> Path:
        return self.root / "index.jsonl"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

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
        """All files that may be shards, whatever is in them, in no order; what is being written is left out."""
        if not self.results.is_dir():
            return
        for folder in self.results.iterdir():
            if folder.is_dir():
                yield from (path for path in folder.iterdir() if not path.name.endswith(TEMPORARY))

    def pack_files(self) -> list[Path]:
        """All files that may be packs, whatever is in them, the oldest first; without caches and what is being made."""
        if not self.packs.is_dir():
            return []
        names = (path.name for path in self.packs.iterdir())
        return [self.packs / name for name in sorted(names) if not (name.startswith(".") or name.endswith(INDEX))]

    def new_pack(self) -> Path:
        """A name that comes after all that are there, and that nobody else takes at the same time."""
        numbers = [int(path.name[5:11]) for path in self.pack_files() if path.name[5:11].isdecimal()]
        return self.packs / f"pack-{max(numbers, default=0) + 1:06}-{secrets.token_hex(4)}.h5"

    def files(self) -> Iterator[Path]:
        """All that may hold results. Packs come last: what is packed while the shards are read is not missed so."""
        yield from self.shards()
        yield from self.pack_files()


def is_pack(path: Path) -> bool:
    """By its place."""
    return path.parent.name == "packs" and path.parent.parent.suffix == ".run"


def is_shard(path: Path) -> bool:
    """By its place."""
    results = path.parent.parent
    return results.name == "results" and results.parent.suffix == ".run"


def key_of_shard(path: Path) -> Key:
    """The key that the name of a shard tells; an InputError if it tells none."""
    return Key.parse(path.name.removesuffix(".h5"))
