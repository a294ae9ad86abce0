"""The same by the command line, in processes of their own, and for files that nobody may read."""

import ctypes
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from damage_originals import Original

from merge_cases import found_in
from run_cases import leeward

NO_PERMISSION = 50  # files

Named = tuple[Path, str, str]  # a file, the key of a result in it, and what speaks for it: verified, or plausible

_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


def by_command(folder: Path, scratch: Path, sound: set[Named], keys: set[str], campaign_file: Path) -> Iterator[str]:
    """What is not as the library said. sound: what has to stand before the campaign; keys: what has to be merged."""
    yield from _checked(folder, sound, "--deep", "--campaign", campaign_file)
    yield from _merged(folder, scratch / "by_command.h5", keys, "--campaign", campaign_file)


def _checked(folder: Path, valid: set[Named], *options: object, **how: object) -> Iterator[str]:
    ended = leeward("check", folder, "--json", *options, cwd=folder.parent, timeout=1800, **how)
    if ended.returncode not in (0, 3) or ended.stderr:
        yield f"leeward check ended with {ended.returncode}: {ended.stderr[-500:]}"
        return
    found = {
        (Path(file["path"]), result["name"].rpartition("/")[2], result["evidence"])
        for file in json.loads(ended.stdout)["files"]
        for result in file["results"]
        if result["verdict"] == "valid"
    }
    for one in found ^ valid:
        path, name, evidence = one
        is_so = "calls" if one in found else "does not call"
        yield f"leeward check {' '.join(map(str, options))} {is_so} {name} in {path.name} valid and {evidence}"


def _merged(folder: Path, output: Path, keys: set[str], *options: object, **how: object) -> Iterator[str]:
    options = ("--on-bad", "skip", "--prefer", "best", "--quiet", *options)
    ended = leeward("merge", folder, "-o", output, *options, cwd=folder.parent, timeout=1800, **how)
    if ended.returncode not in (0, 3) or ended.stderr:
        yield f"leeward merge ended with {ended.returncode}: {ended.stderr[-500:]}"
        return
    for key in found_in(output).keys() ^ keys:
        yield f"leeward merge and leeward check do not agree on {key}"


def without_permission(folder: Path, originals: Iterable[Original], notes: list[str]) -> Iterator[str]:
    """Sound files that may not be read, and one that may; for root too, who is made an ordinary reader for that."""
    home = folder / "closed"
    home.mkdir()
    first, *others = originals
    (home / "open.h5").write_bytes(first.content)
    for number, original in enumerate(others):
        path = home / original.named(number)
        path.write_bytes(original.content)
        path.chmod(0)
    looked = subprocess.run(
        [sys.executable, "-c", "import sys; open(sys.argv[1])", path],
        capture_output=True,
        text=True,
        preexec_fn=_as_any,
    )
    if "PermissionError" not in looked.stderr:
        notes.append("no permission: not tried, as this user can read everything and cannot be kept from it")
        return
    evidence = "verified" if first.is_sealed else "plausible"
    yield from _checked(home, {(home / "open.h5", key, evidence) for key in first.results}, preexec_fn=_as_any)
    yield from _merged(home, folder / "permitted.h5", set(first.results), preexec_fn=_as_any)


def _as_any() -> None:
    """Root keeps its name, and loses what lets it read all files; for others nothing changes."""
    library = ctypes.CDLL(None)
    for right in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        library.prctl(_PR_CAPBSET_DROP, right, 0, 0, 0)
