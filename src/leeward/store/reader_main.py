"""The child process that reads untrusted files, run as `python -m leeward.store.reader_main`.

Damaged metadata can make libhdf5 crash, hang or use all memory, but only in this process. Requests are lines of JSON,
answers are frames. Each group is announced before it is read, so that the parent knows which group ended a child.
"""

import contextlib
import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from h5py import h5a, h5f, h5g, h5p

from leeward.carving import Pages, data_pieces, signature_place
from leeward.processes import exit_with_parent
from leeward.store.format.direct import sealed_result_at, sealed_results
from leeward.store.format.found import FoundFile
from leeward.store.format.groups import (
    FORMAT_VERSION,
    is_root_whole,
    open_group,
    read_attribute,
    read_group,
    what_is,
)
from leeward.store.format.keys import Key
from leeward.store.format.kind import AnyResult, Value
from leeward.store.format.kinds import KINDS, kind_name
from leeward.store.format.layout_result import Result
from leeward.store.format.verdicts import BadGroupError, Verdict, refuse
from leeward.store.isolated.frames import TOO_MUCH_MEMORY, Output
from leeward.store.isolated.hdf5_files import BadFileError, check_start, library_message, open_plain
from leeward.store.rescue import carve, foreign

# raised by libhdf5 and h5py on damaged files; any other error ends this process, and the parent gives the verdict
LIBRARY_ERRORS = (OSError, RuntimeError, KeyError, ValueError, TypeError, ArithmeticError)

_MOST_GROUPS = 10_000_000
_LONGEST_ROOT_TEXT = 64_000_000
_MOST_BAD_FILES = 500  # then a new child continues: libhdf5 may leak objects that it could not close
_CHUNK = 16_000_000
_HANDLES_HAVE_NAMES = os.path.exists("/proc/self/fd")
_ACCESS = h5p.create(h5p.FILE_ACCESS)
_ACCESS.set_fclose_degree(h5f.CLOSE_STRONG)
_MOST_HOLES = 1 << 30  # bytes; SHA-256 has to read holes as zeros


def main() -> None:
    parent, seconds, memory_mb = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    exit_with_parent(parent)
    _limit(memory_mb)
    requests = os.fdopen(os.dup(0), "rb")
    output = Output(os.dup(1), seconds)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)  # output that a library prints must not mix with answers
    output.announce({"kind": "hello"})
    bad = 0
    try:
        for line in requests:
            about = _read_file(json.loads(line), output)
            bad += about.bad > 0 or about.verdict is not Verdict.VALID
            is_last = bad >= _MOST_BAD_FILES or _is_bloated(memory_mb)
            output.announce({**_header(about), "kind": "file_read", "last": is_last}, about.attributes)
            if is_last:
                return
    except MemoryError:
        os._exit(TOO_MUCH_MEMORY)
    except BrokenPipeError:
        os._exit(1)  # the parent has ended, or has closed the pipe


def _limit(memory_mb: int) -> None:
    if os.name == "nt":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (memory_mb * 2**20,) * 2)


def _is_bloated(memory_mb: int) -> bool:
    """Return whether damaged files leaked so much memory that reading intact ones could fail."""
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[0])
    except FileNotFoundError:
        return False
    return pages * os.sysconf("SC_PAGE_SIZE") > memory_mb * 2**19


# --- one file --------------------------------------------------------------------------------------------------------


# the name of each group, and a function that returns its result and whether it has a seal
_Groups = Iterator[tuple[str, Callable[[], tuple[AnyResult, bool]]]]


def _read_file(request: dict[str, Any], output: Output) -> FoundFile:
    """Send the findings on the groups of a file, and return those on the file."""
    output.alive()
    about, unhashed = FoundFile(Path(request["path"]), -1, Verdict.VALID), ""
    try:
        with open_plain(request["path"]) as (handle, about.size):
            if request["sha256"]:
                about.sha256, unhashed = _sha256(handle, about.size, output)
            for number, (name, read) in enumerate(_groups(request, handle, about, output)):
                if number >= request["start"]:
                    output.announce({"kind": "group", "number": number, "name": name})
                    about.bad += not _send_findings(name, read, about.sealed, request["contents"], output)
    except BadFileError as error:
        about.verdict, about.reason, about.is_passing = error.verdict, str(error), error.is_passing
    except LIBRARY_ERRORS as error:
        about.verdict, about.reason = library_message(error)
    about.reason = "; ".join(filter(None, (about.reason, unhashed)))
    return about


def _header(about: FoundFile) -> dict[str, Any]:
    """Return the header of the last frame on a file: the findings that the parent does not have yet."""
    return {name: value for name, value in vars(about).items() if name not in ("path", "attributes", "valid", "bad")}


def _sha256(handle: int, size: int, output: Output) -> tuple[str, str]:
    """Return the SHA-256 of a file, or "" and the reason."""
    holes = size - sum(end - start for start, end in data_pieces(handle))
    if holes > _MOST_HOLES:
        return "", f"no SHA-256: {holes} of its {size} bytes are holes"
    hashed = hashlib.sha256()
    os.lseek(handle, 0, os.SEEK_SET)
    while content := os.read(handle, _CHUNK):
        hashed.update(content)
        if len(content) == _CHUNK:
            output.alive()
    return hashed.hexdigest(), ""


def _groups(request: dict[str, Any], handle: int, about: FoundFile, output: Output) -> _Groups:
    """Yield all groups of a file that may be results."""
    if request["carve"]:
        yield from _carved_groups(request["path"], handle, about.size, output)
        return
    pages = Pages(handle) if check_start(handle, about.size) == 0 else None
    known = sealed_results(pages) if pages is not None and request["names"] is None else None
    if known is None:
        with _opened(request["path"], handle) as root:
            yield from _read_groups(root, pages, request, about, output)
        return
    about.sealed, about.attributes = True, known[0]
    for name, result in known[1].items():
        yield name, functools.partial(lambda found: (found, True), result)


@contextlib.contextmanager
def _opened(path: str, handle: int) -> Iterator[Any]:
    """Open a file with libhdf5, and yield the low-level identifier of its root group.

    If possible, open it through the handle, because that is the file that was checked.
    """
    same = f"/proc/self/fd/{handle}"
    file = h5f.open(os.fsencode(same if _HANDLES_HAVE_NAMES else path), h5f.ACC_RDONLY, _ACCESS)
    try:
        yield h5g.open(file, b"/")
    finally:
        with contextlib.suppress(*LIBRARY_ERRORS):  # everything was read, and any damage was reported
            file.close()


def _carved_groups(path: str, handle: int, size: int, output: Output) -> _Groups:
    """Yield all groups that look like a result, however damaged the file is."""
    pages = Pages(handle, signature_place(handle, size) or 0)
    for place in carve.find_results(pages, output.alive):
        yield place.name, functools.partial(carve.read, pages, place, size - pages.base, os.path.basename(path))


def _read_groups(root: Any, pages: Pages | None, request: dict[str, Any], about: FoundFile, output: Output) -> _Groups:
    """Yield all groups, read by libhdf5. pages: the bytes of the file, if they can be read without libhdf5."""
    about.sealed = h5a.exists(root, b"format_version")
    kind = _read_root(root, about) if about.sealed else Result
    names: list[str] | None = request["names"]
    ignored: list[str] = []
    if names is None:
        names, ignored = _names(root, about.sealed, output)
    for name in names:
        if about.sealed:
            yield name, functools.partial(_sealed, root, pages, name, kind, ignored)
        else:
            yield name, functools.partial(_unsealed, root, name, os.path.basename(request["path"]), ignored)
    if not about.sealed and request["names"] is None:  # last: a crash here loses no result
        output.announce({"kind": "alive"})
        ignored += _beyond_results(root)
    if ignored:
        about.reason = f"ignored in it: {', '.join(ignored[:5])}" + ", …" * (len(ignored) > 5)


def _beyond_results(root: Any) -> list[str]:
    try:
        return foreign.beyond_results(root)
    except (BadGroupError, *LIBRARY_ERRORS) as error:
        return [f"something that cannot be read ({error!s:.100})"]


def _read_root(root: Any, about: FoundFile) -> type[AnyResult]:
    """Read the attributes of the file itself, and return the kind of its results.

    Damage to the attributes does not make the results doubtful.
    """
    about.attributes, about.reason = _root_attributes(root)
    if not is_root_whole(about.attributes):
        about.verdict = Verdict.BAD_SEAL
        about.reason = about.reason or "the seal does not match the attributes of the file"
    about.attributes.pop("seal", None)
    kind = kind_name(about.attributes)
    if kind not in KINDS:
        reason = f"results of the kind {kind!r:.60}, but this leeward reads only {', '.join(KINDS)}; update leeward"
        raise BadFileError(Verdict.WRONG_STRUCTURE, reason)
    return KINDS[kind]


def _root_attributes(root: Any) -> tuple[dict[str, Value], str]:
    """Return the readable attributes, and a note on the others."""
    version = read_attribute(root, b"format_version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        reason = f"format_version is {version!r:.60}, but this leeward reads up to {FORMAT_VERSION}; update leeward"
        raise BadFileError(Verdict.WRONG_STRUCTURE, reason)
    names: list[bytes] = []
    h5a.iterate(root, names.append)
    attributes: dict[str, Value] = {}
    notes = []
    for name in names:
        text = name.decode("utf-8", "backslashreplace")
        try:
            attributes[text] = read_attribute(root, name, _LONGEST_ROOT_TEXT)
            if text == "campaign":
                _try_yaml(str(attributes[text]))
        except (BadGroupError, *LIBRARY_ERRORS) as error:
            notes.append(f"the attribute {text:.60} of the file cannot be used ({error!s:.200})")
    return attributes, "; ".join(notes[:3])


def _try_yaml(text: str) -> None:
    """Parse a text with libyaml. The parent parses it next, and must not crash: a crash ends only this process."""
    import yaml

    from leeward.parsing import check_yaml

    with contextlib.suppress(yaml.YAMLError):  # the parent reports it
        check_yaml(text)


def _names(root: Any, is_sealed: bool, output: Output) -> tuple[list[str], list[str]]:
    """Return the names that may be results, and the other names."""
    found = _listed(root)
    output.alive()
    if is_sealed:
        return found, []
    names = [name for name in found if Result.is_key(name)]
    ignored = [name for name in found if not Result.is_key(name) and name not in (foreign.INIT, foreign.FOLDER)]
    if foreign.FOLDER in found:
        try:
            inner = _listed(open_group(root, foreign.FOLDER))
        except BadGroupError:
            return [*names, foreign.FOLDER], ignored  # it is then reported as a bad result
        names += [f"{foreign.FOLDER}/{name}" for name in inner if Result.is_key(name)]
        ignored += [f"{foreign.FOLDER}/{name}" for name in inner if not Result.is_key(name)]
    return names, ignored


def _listed(group: Any) -> list[str]:
    count = group.get_num_objs()
    if count > _MOST_GROUPS:
        raise BadFileError(Verdict.WRONG_STRUCTURE, f"it has {count} entries; expected at most {_MOST_GROUPS}")
    names: list[str] = []
    group.links.iterate(lambda name: names.append(name.decode("utf-8", "backslashreplace")))
    return names


# --- one group -------------------------------------------------------------------------------------------------------


def _send_findings(
    name: str, read: Callable[[], tuple[AnyResult, bool]], is_sealed: bool, contents: bool, output: Output
) -> bool:
    """Send the findings on a group, with its arrays if requested and valid. Return whether it is valid."""
    verdict, reason = Verdict.VALID, ""
    kind, attributes, datasets = Result.KIND, {}, {}
    try:
        result, is_sealed = read()
        kind, attributes, datasets = result.KIND, result.attributes, result.datasets
        doubt = result.doubt()
        if doubt is not None:
            raise BadGroupError(Verdict.IMPLAUSIBLE, doubt)
    except BadGroupError as error:
        verdict, reason = error.verdict, str(error)
    except LIBRARY_ERRORS as error:
        verdict, reason = Verdict.UNREADABLE, library_message(error)[1]
    is_valid = verdict is Verdict.VALID
    if not (contents and is_valid):
        datasets = {name: array for name, array in datasets.items() if array.ndim == 0}
    header = {"kind": "result", "name": name, "verdict": verdict, "reason": reason, "sealed": is_sealed, "of": kind}
    output.add(header, attributes, datasets)
    return is_valid


def _sealed(
    root: Any, pages: Pages | None, name: str, kind: type[AnyResult], ignored: list[str]
) -> tuple[AnyResult, bool]:
    """Return a result in a file made by leeward: read directly, or by libhdf5."""
    if not kind.is_key(name):
        refuse(f"{what_is(root, name)[0]} whose name is not a key; expected one like {kind.EXAMPLE}")
    group = open_group(root, name)
    if pages is not None:
        result = sealed_result_at(pages, root.links.get_info(name.encode()).u, name, kind)
        if result is not None:
            return result, True
    return _read_sealed(group, name, kind, ignored), True


def _read_sealed(group: Any, name: str, kind: type[AnyResult], ignored: list[str]) -> AnyResult:
    """Return a result read by libhdf5. Attributes that no seal covers are added to `ignored`."""
    result = read_group(group, name, kind)
    ignored += [
        f"{text} in {name}"
        for one in result.datasets
        for text in foreign.attributes_of(group, one, kind.UNITS.get(one))
    ]
    return result


def _unsealed(root: Any, name: str, file_name: str, ignored: list[str]) -> tuple[AnyResult, bool]:
    """Return a layout in a file of other origin. The seal of a group that was copied from leeward must be intact."""
    folder, _, plain_name = name.rpartition("/")
    if folder not in ("", foreign.FOLDER) or not Result.is_key(plain_name):
        refuse(f"{what_is(root, name)[0]} whose name is not a key; expected one like {Result.EXAMPLE}")
    group = open_group(open_group(root, folder) if folder else root, plain_name)
    if h5a.exists(group, b"seal"):
        return _read_sealed(group, plain_name, Result, ignored), True
    return foreign.read_group(group, Key.parse(plain_name), file_name), False


if __name__ == "__main__":
    main()
