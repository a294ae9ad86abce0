"""The child that opens files which nobody trusts, run as `python -m leeward.store.reader_main`.

libhdf5 can crash, hang or ask for all memory there is when it meets damaged metadata; here it takes only this process
along. Requests come as lines of JSON; answers are a fixed prefix, a header in JSON, and the numbers as they lie in
memory. Each group is announced before it is touched, so that the parent knows which one a silent child has died of.
"""

import contextlib
import hashlib
import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5l, h5p

from leeward.processes import end_with
from leeward.store.format.direct import Pages, checksums, sealed_result_at, sealed_results
from leeward.store.format.keys import Key, is_key
from leeward.store.format.schema import (
    FORMAT_VERSION,
    BadGroupError,
    Result,
    Value,
    is_root_whole,
    kind_behind,
    plausible,
    read_attribute,
    read_group,
)
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.hdf5_files import (
    BadFileError,
    check_start,
    data_pieces,
    library_message,
    open_plain,
    signature_place,
)
from leeward.store.rescue import foreign
from leeward.store.rescue.carve import Place, find, read

PREFIX = struct.Struct("<4sIQ")  # the mark, the length of the header, the length of the numbers
MARK = b"lwd1"
TOO_MUCH_MEMORY = 90  # exit code

# what libhdf5 and h5py raise on damaged files; anything else ends this process, which is a verdict too
LIBRARY_ERRORS = (OSError, RuntimeError, KeyError, ValueError, TypeError, ArithmeticError)

_MOST_GROUPS = 10_000_000
_LONGEST_ROOT_TEXT = 64_000_000
_MOST_BAD_FILES = 500  # then a fresh child goes on: libhdf5 may leak what it could not close
_CHUNK = 16_000_000
_MOST_HOLES = 1 << 30  # bytes; SHA-256 has to go through the zeros that holes stand for


class Output:
    """Answers on their way to the parent; they leave together, before anything is touched that may crash."""

    def __init__(self, handle: int, seconds: float) -> None:
        self._handle = handle
        self._seconds = seconds
        self._pending: list[bytes] = []

    def add(self, header: dict[str, Any], numbers: bytes = b"") -> None:
        text = json.dumps(header).encode()
        self._pending.append(PREFIX.pack(MARK, len(text), len(numbers)) + text + numbers)

    def announce(self, **header: Any) -> None:
        """Say what comes next, and send all."""
        self.add(header)
        left = memoryview(b"".join(self._pending))
        self._pending.clear()
        while left:
            left = left[os.write(self._handle, left) :]
        if self._seconds and hasattr(signal, "setitimer"):  # what spins here for ever, its parent gone, ends by itself
            signal.setitimer(signal.ITIMER_PROF, 2 * self._seconds + 10)


def main() -> None:
    parent, seconds, memory_mb = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    end_with(parent)
    _limit(memory_mb)
    requests = os.fdopen(os.dup(0), "rb")
    output = Output(os.dup(1), seconds)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)  # what a library may print is no answer
    output.announce(kind="hello")
    bad = 0
    try:
        for line in requests:
            about = _read_file(json.loads(line), output)
            bad += about["bad"] > 0 or about["verdict"] is not Verdict.VALID
            is_last = bad >= _MOST_BAD_FILES or _is_bloated(memory_mb)
            output.announce(kind="file_read", last=is_last, **about)
            if is_last:
                return
    except MemoryError:
        os._exit(TOO_MUCH_MEMORY)
    except BrokenPipeError:
        os._exit(1)  # the parent has what it wanted


def _limit(memory_mb: int) -> None:
    if os.name == "nt":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (memory_mb * 2**20,) * 2)


def _is_bloated(memory_mb: int) -> bool:
    """Whether what damaged files left behind could make sound ones fail for want of memory."""
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[0])
    except FileNotFoundError:
        return False
    return pages * os.sysconf("SC_PAGE_SIZE") > memory_mb * 2**19


# --- one file --------------------------------------------------------------------------------------------------------


def _read_file(request: dict[str, Any], output: Output) -> dict[str, Any]:
    """Answer one request but for what is returned: what there is to say about the file as a whole."""
    output.announce(kind="file")
    about: dict[str, Any] = {"size": -1, "sha256": "", "sealed": False, "attributes": {}, "reason": "", "bad": 0}
    about["verdict"], about["is_passing"], unhashed = Verdict.VALID, False, ""
    try:
        with open_plain(request["path"]) as (handle, size):
            about["size"] = size
            if request["sha256"]:
                about["sha256"], unhashed = _sha256(handle, size, output)
            with _groups(request, handle, size, about, output) as groups:
                for found, numbers in groups:
                    about["bad"] += found["verdict"] is not Verdict.VALID
                    output.add({"kind": "result", **found}, numbers)
    except BadFileError as error:
        about["verdict"], about["reason"], about["is_passing"] = error.verdict, str(error), error.is_passing
    except LIBRARY_ERRORS as error:
        about["verdict"], about["reason"] = library_message(error)
    about["reason"] = "; ".join(filter(None, (about["reason"], unhashed)))
    return about


_Groups = Iterator[tuple[dict[str, Any], bytes]]


@contextlib.contextmanager
def _groups(
    request: dict[str, Any], handle: int, size: int, about: dict[str, Any], output: Output
) -> Iterator[_Groups]:
    """What is said of each group, and its numbers."""
    if request["carve"]:
        yield _carve_groups(request, handle, size, output)
        return
    with _opened(request, handle, check_start(handle, size)) as file:
        yield _read_groups(file, request, about, output)


def _sha256(handle: int, size: int, output: Output) -> tuple[str, str]:
    """Return that of the file's bytes, and why there is none."""
    holes = size - sum(end - start for start, end in data_pieces(handle))
    if holes > _MOST_HOLES:
        return "", f"no SHA-256: {holes} of its {size} bytes are holes"
    hashed = hashlib.sha256()
    os.lseek(handle, 0, os.SEEK_SET)
    while content := os.read(handle, _CHUNK):
        hashed.update(content)
        if len(content) == _CHUNK:
            output.announce(kind="alive")
    return hashed.hexdigest(), ""


@dataclass(frozen=True)
class _File:
    """root: the low-level identifier of its root group. pages: its bytes, where they can be read without libhdf5.

    known: attributes and results of a small file that was read to its end without libhdf5; there is no root then.
    """

    root: Any
    pages: Pages | None
    known: tuple[dict[str, Value], dict[str, Result]] | None = None


@contextlib.contextmanager
def _opened(request: dict[str, Any], handle: int, place: int) -> Iterator[_File]:
    """The file, for libhdf5 by way of the open handle where that can be, so that it is the one that was looked at."""
    pages = Pages(handle) if place == 0 and checksums() else None
    known = sealed_results(pages) if pages is not None and request["names"] is None else None
    if known is not None and known[0].get("format_version") == FORMAT_VERSION and all(map(is_key, known[1])):
        yield _File(None, pages, known)
        return
    same = f"/proc/self/fd/{handle}"
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    path = same if os.path.exists(same) else request["path"]
    file = h5f.open(os.fsencode(path), h5f.ACC_RDONLY, access)
    try:
        yield _File(h5g.open(file, b"/"), pages)
    finally:
        with contextlib.suppress(*LIBRARY_ERRORS):  # all was read; the damage, if any, has been reported
            file.close()


def _carve_groups(request: dict[str, Any], handle: int, size: int, output: Output) -> _Groups:
    """Whatever of a file looks like a result, however damaged the file is."""
    base = signature_place(handle, size) or 0
    pages = Pages(handle, base)
    file_name = os.path.basename(request["path"])
    for number, place in enumerate(find(pages, handle, base, lambda: output.announce(kind="alive"))):
        if number < request["start"]:
            continue
        output.announce(kind="group", number=number, name=place.name)

        def carved(found: dict[str, Any], place: Place = place) -> Result:
            result, found["sealed"] = read(pages, place, size - base, file_name)
            return result

        yield _judged(place.name, False, carved, request["contents"])


def _read_groups(file: _File, request: dict[str, Any], about: dict[str, Any], output: Output) -> _Groups:
    """All groups of a file that may be results, from the given number on."""
    ignored: list[str] = []
    if file.known is not None:
        about["sealed"], names = True, list(file.known[1])
        _take_attributes(about, file.known[0])
    else:
        about["sealed"] = h5a.exists(file.root, b"format_version")
        if about["sealed"]:
            attributes, about["reason"] = _root_attributes(file.root)
            _take_attributes(about, attributes)
        names = request["names"]
        if names is None:
            names, ignored = _names(file.root, about["sealed"], output)
    file_name = os.path.basename(request["path"])
    for number, name in enumerate(names):
        if number < request["start"]:
            continue
        output.announce(kind="group", number=number, name=name)

        def of_group(found: dict[str, Any], name: str = name) -> Result:
            is_sealed = about["sealed"]
            return _sealed(file, name, found) if is_sealed else _unsealed(file.root, name, file_name, found)

        found, numbers = _judged(name, about["sealed"], of_group, request["contents"])
        ignored += found.pop("ignored", ())
        yield found, numbers
    if not about["sealed"] and request["names"] is None:  # last: whatever happens here, all results are told
        output.announce(kind="alive")
        ignored += _beyond_results(file.root)
    if ignored:
        about["reason"] = f"ignored in it: {', '.join(ignored[:5])}" + ", …" * (len(ignored) > 5)


def _beyond_results(root: Any) -> list[str]:
    try:
        return foreign.beyond_results(root)
    except (BadGroupError, *LIBRARY_ERRORS) as error:
        return [f"something that cannot be read ({error!s:.100})"]


def _take_attributes(about: dict[str, Any], attributes: dict[str, Value]) -> None:
    """Those of the file itself. Damage to them is damage to the file, and no reason to doubt its results."""
    if not is_root_whole(attributes):
        about["verdict"] = Verdict.BAD_SEAL
        about["reason"] = about["reason"] or "the seal does not fit the attributes of the file itself"
    about["attributes"] = {name: _plain(value) for name, value in attributes.items() if name != "seal"}


def _root_attributes(root: Any) -> tuple[dict[str, Value], str]:
    """Those that can be read, and a note on those that cannot."""
    version = read_attribute(root, b"format_version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        reason = f"format_version {version!r:.60}; this leeward reads up to {FORMAT_VERSION}: update leeward"
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
    """Let libyaml read a text. Should it crash, this process ends, and not the parent, which parses the text next."""
    import yaml

    from leeward.parsing import check_yaml

    with contextlib.suppress(yaml.YAMLError):  # the parent finds the same, and says so
        check_yaml(text)


def _names(root: Any, is_sealed: bool, output: Output) -> tuple[list[str], list[str]]:
    """The names of all that may be a result, and those of what is none."""
    found = _listed(root)
    output.announce(kind="alive")
    if is_sealed:
        return found, []
    names = [name for name in found if is_key(name)]
    ignored = [name for name in found if not is_key(name) and name not in (foreign.INIT, foreign.FOLDER)]
    if foreign.FOLDER in found:
        try:
            inner = _listed(_open_group(root, foreign.FOLDER))
        except BadGroupError:
            return [*names, foreign.FOLDER], ignored  # which is judged as a result, and found to be none
        names += [f"{foreign.FOLDER}/{name}" for name in inner if is_key(name)]
        ignored += [f"{foreign.FOLDER}/{name}" for name in inner if not is_key(name)]
    return names, ignored


def _listed(group: Any) -> list[str]:
    count = group.get_num_objs()
    if count > _MOST_GROUPS:
        raise BadFileError(Verdict.WRONG_STRUCTURE, f"{count} entries, more than {_MOST_GROUPS}")
    names: list[str] = []
    group.links.iterate(lambda name: names.append(name.decode("utf-8", "backslashreplace")))
    return names


# --- one group -------------------------------------------------------------------------------------------------------


def _judged(
    name: str, is_sealed: bool, of_group: Callable[[dict[str, Any]], Result], contents: bool
) -> tuple[dict[str, Any], bytes]:
    """What is said of one group, and its numbers if they are asked for and valid."""
    found: dict[str, Any] = {"name": name, "verdict": Verdict.VALID, "reason": "", "sealed": is_sealed}
    try:
        result = of_group(found)
        _describe(found, result)
        reason = plausible(result)
        if reason is not None:
            raise BadGroupError(Verdict.IMPLAUSIBLE, reason)
    except BadGroupError as error:
        found["verdict"], found["reason"] = error.verdict, str(error)
        return found, b""
    except LIBRARY_ERRORS as error:
        found["verdict"], found["reason"] = Verdict.UNREADABLE, library_message(error)[1]
        return found, b""
    return found, _numbers(found, result) if contents else b""


def _sealed(file: _File, name: str, found: dict[str, Any]) -> Result:
    """A result in a file of leeward's own making: the quick way, or by libhdf5."""
    if file.known is not None:
        return file.known[1][name]
    if not is_key(name):
        _wrong(f"{_what_is(file.root, name)} whose name is no key; expected one like farm0_t5_s3")
    if file.pages is not None and file.root.links.exists(name.encode()):
        link = file.root.links.get_info(name.encode())
        result = sealed_result_at(file.pages, link.u, name) if link.type == h5l.TYPE_HARD else None
        if result is not None:
            return result
    return _read_sealed(_open_group(file.root, name), name, found)


def _read_sealed(group: Any, name: str, found: dict[str, Any]) -> Result:
    """By libhdf5; what was put there beside the result is told, as no seal covers it."""
    result = read_group(group, name)
    found["ignored"] = [f"{text} in {name}" for one in result.datasets for text in foreign.attributes_of(group, one)]
    return result


def _unsealed(root: Any, name: str, file_name: str, found: dict[str, Any]) -> Result:
    """A result in a file of other origin; a group that has a seal, copied from elsewhere, is held to it."""
    folder, _, plain_name = name.rpartition("/")
    if folder not in ("", foreign.FOLDER) or not is_key(plain_name):
        _wrong(f"{_what_is(root, name)} whose name is no key; expected one like farm0_t5_s3")
    group = _open_group(_open_group(root, folder) if folder else root, plain_name)
    found["sealed"] = h5a.exists(group, b"seal")
    if found["sealed"]:
        return _read_sealed(group, plain_name, found)
    return foreign.read_group(group, Key.parse(plain_name), file_name)


def _open_group(parent: Any, name: str) -> Any:
    what = _what_is(parent, name)
    if what != "a group":
        _wrong(f"{what}; expected a group")
    return h5g.open(parent, name.encode())


def _what_is(parent: Any, name: str) -> str:
    """Told without following a link."""
    if not parent.links.exists(name.encode()):
        return "nothing of this name"
    kind = parent.links.get_info(name.encode()).type
    if kind != h5l.TYPE_HARD:
        return {h5l.TYPE_SOFT: "a soft link", h5l.TYPE_EXTERNAL: "a link to another file"}.get(kind, "an unknown link")
    return {h5g.GroupID: "a group", h5d.DatasetID: "a dataset"}.get(
        kind_behind(parent, name), "neither group nor dataset"
    )


def _wrong(reason: str) -> NoReturn:
    raise BadGroupError(Verdict.WRONG_STRUCTURE, reason)


def _describe(found: dict[str, Any], result: Result) -> None:
    found |= {
        "digest": result.digest,
        "status": result.status,
        "origin": result.origin,
        "fingerprint": result.fingerprint,
        "n_turbines": result.n_turbines,
        "diameter": result.diameter,
        "aep": result.aep,
        "details": {name: _plain(value) for name, value in result.details.items()},
    }


def _numbers(found: dict[str, Any], result: Result) -> bytes:
    """Aep and diameter, layout, history."""
    found["stop_reason"] = result.stop_reason
    found["steps"] = result.steps
    found["history"] = None if result.history is None else result.history.shape
    arrays = [np.array([result.aep, result.diameter]), result.layout]
    if result.history is not None:
        arrays.append(result.history)
    return b"".join(array.astype("<f8", copy=False).tobytes() for array in arrays)


def _plain(value: Value) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


if __name__ == "__main__":
    main()
