"""Write the merged file in a child process, verify it, and put it in place only if no result is lost."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from leeward.errors import InputError, LeewardError, StorageError
from leeward.files import NO_LINKS, drop_cache, kind_of, rename, storage_errors, sync_folder
from leeward.store.directory.audit import utc_now
from leeward.store.directory.index import IndexLines, write_output_index
from leeward.store.directory.results import BadFile
from leeward.store.directory.temporary import Temporary, remove_left_overs_of
from leeward.store.format.groups import root_attributes
from leeward.store.format.kind import AnyResult, Value, seal_of
from leeward.store.format.layout_result import SUCCESS
from leeward.store.isolated.frames import encode
from leeward.store.isolated.writer_process import STALL_SECONDS, WriterProcess
from leeward.store.merging.contents import (
    Contents,
    Pair,
    contents_of,
    demand,
    file_identity,
    keys_of,
    make_pair,
    uncovered,
)
from leeward.wording import listed

_MOST_NAMED = 10


class OutputHoldsMoreError(LeewardError):
    """An existing output holds results that its replacement lacks.

    bad_files: files of a run that were left out. They may be the files of these results.
    """

    def __init__(self, output: Path, keys: list[str]) -> None:
        self.output = output
        self.keys = keys
        self.bad_files: list[BadFile] = []
        super().__init__(
            f"{output} is not replaced: it holds {len(keys)} results that the new file would not have "
            f"({listed(keys, _MOST_NAMED)}); write to another file with -o, or include these results: add {output} to "
            f"the sources of the merge, or use 'leeward run --adopt {output}'"
        )


@dataclass
class Written:
    """The merged file on disk.

    pairs: key and digest of each result. moved: new path of a former output that is damaged or foreign. index: why the
    index could not be written, or "".
    """

    size: int = 0
    successful: int = 0
    pairs: set[Pair] = field(default_factory=set)
    moved: Path | None = None
    index: str = ""

    @property
    def count(self) -> int:
        return len(self.pairs)

    @property
    def no_aep(self) -> int:
        """The number of results whose status is not "success"."""
        return self.count - self.successful


def write_merged(
    output: Path,
    results: Iterable[AnyResult],
    attributes: Mapping[str, Value],
    *,
    known: Contents | None = None,
    expendable: Collection[Pair] = (),
    before: Callable[[Written], None] | None = None,
) -> Written:
    """Write `output` from these results, each key once, or raise and leave it unchanged.

    attributes: of the file; the number of results is added here. known: the contents of `output`, if they were just
    read. expendable: results of an existing output that need not be kept. before: called after the verification, right
    before the rename. After a StorageError the same call can be repeated.
    """
    output = Path(os.path.realpath(output))
    _demand_replaceable(output)
    written = Written()
    lines = IndexLines()
    with storage_errors(output, "cannot be written"):
        remove_left_overs_of(output)
        with Temporary(output) as temporary:
            _write(temporary.path, results, attributes, written, lines)
            drop_cache(temporary.handle)
            new = contents_of(temporary.path)
            demand(new, written.pairs)
            written.size = new.file.size
            if before is not None:
                before(written)
            written.moved = _make_way(output, new, known, set(expendable))
            temporary.put_in_place()
            sync_folder(output.parent)
    try:
        write_output_index(output, lines)
    except OSError as error:
        written.index = str(error)  # the index is only a cache
    return written


def _demand_replaceable(output: Path) -> None:
    with storage_errors(output, "cannot be examined"):
        kind = kind_of(output)
    if kind not in ("", "file"):
        raise InputError(f"{output} is a {kind}; name another output with -o")


def _write(
    path: Path, results: Iterable[AnyResult], attributes: Mapping[str, Value], written: Written, lines: IndexLines
) -> None:
    kind: dict[str, Value] = {}
    with WriterProcess(path, STALL_SECONDS) as process:
        for result in results:
            own_kind = root_attributes(result)
            if written.pairs and own_kind != kind:
                raise InputError(
                    f"{result.key} is of a different kind from the results before it; write each kind to its own file"
                )
            kind = own_kind
            parts, datasets = result.attributes, result.datasets
            sealed = {**parts, "seal": seal_of(parts, datasets)}
            process.send(encode({"key": str(result.key), "units": result.UNITS}, sealed, datasets))
            written.pairs.add(make_pair(result.key, str(parts["digest"])))
            written.successful += parts["status"] == SUCCESS
            lines.add(result.index_line())
        counts = {"total_configs": written.count, **attributes, "successful_configs": written.successful}
        process.send(encode({}, {"created": utc_now(), **counts, **kind}))
        count = process.finish()
    if count != lines.count or count != written.count:
        raise StorageError(f"{path}: {lines.count} results were sent, but {count} were written")


def _make_way(output: Path, new: Contents, known: Contents | None, expendable: set[Pair]) -> Path | None:
    """Raise OutputHoldsMoreError if a result would be lost. Return the new path of a damaged or foreign output."""
    now = file_identity(output)
    if now is None:
        return None
    old = known if known is not None and known.identity == now else contents_of(output)
    lost = uncovered(old, new) - expendable
    if lost:
        raise OutputHoldsMoreError(output, sorted(set(keys_of(lost))))
    if old.is_whole:
        return None
    return _keep(output, "damaged" if old.file.sealed or not old.file.is_valid else "foreign")


def _keep(output: Path, kind: str) -> Path:
    """Give the file a second name, so that an output exists at every moment."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number = 0
    while True:
        kept = output.with_name(f"{output.name}.{kind}-{stamp}" + (f"-{number}" if number else ""))
        number += 1
        try:
            os.link(output, kept)
        except FileExistsError:
            continue
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            if kept.exists():
                continue
            rename(output, kept)
        sync_folder(output.parent)
        return kept
