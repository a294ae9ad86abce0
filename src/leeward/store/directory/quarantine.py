"""Bad files out of the way, none of them lost: moved to the quarantine of their run, with the reason beside them."""

import os
import secrets
from pathlib import Path

from leeward.errors import StorageError
from leeward.events import Emit, ignore
from leeward.files import rename, replace_file, sync_folder
from leeward.store.directory.audit import utc_now
from leeward.store.format.verdicts import Verdict
from leeward.store.paths import RunPaths
from leeward.wording import json_text


def _moved_before(paths: RunPaths, path: Path) -> Path | None:
    """Where an earlier try has moved the file that is not there any more, now durably; None if it is there."""
    if os.path.lexists(path):
        return None
    moved = [place for place in paths.quarantine.glob(f"{path.name}.*") if place.suffix != ".json"]
    if not moved:
        return None
    sync_folder(paths.quarantine)
    sync_folder(path.parent)
    return max(moved, key=lambda place: place.lstat().st_ctime_ns)


def quarantine(paths: RunPaths, path: Path, verdict: Verdict, reason: str, emit: Emit = ignore) -> Path:
    """Move a bad file (or whatever stands in its place), and say where it is now.

    The reason is written first: if this is cut off in between, the file is still bad, and the next one does it again.
    """
    token = secrets.token_hex(4)
    place = paths.quarantine / f"{path.name}.{token}"
    try:
        before = _moved_before(paths, path)
        if before is not None:
            return before
        about = {
            "file": place.name,
            "from": str(path),
            "verdict": verdict,
            "reason": reason,
            "size": path.lstat().st_size,
            "time": utc_now(),
        }
        if path.is_symlink():  # the link itself is moved, and not what it leads to
            about["target"] = os.readlink(path)
        paths.quarantine.mkdir(parents=True, exist_ok=True)
        sync_folder(paths.quarantine.parent)  # also where it is there: its maker may have been killed
        replace_file(place.with_name(place.name + ".reason.json"), json_text(about, indent=1).encode())
        emit("quarantine", path=str(path), to=str(place), verdict=verdict, reason=reason, size=about["size"])
        rename(path, place)
        sync_folder(paths.quarantine)
        sync_folder(path.parent)
    except OSError as error:
        raise StorageError(f"{path}: cannot be moved to {place} ({error})") from error
    return place
