"""Move bad files to the quarantine of their run, with the reason beside them. No file is lost."""

import os
import secrets
from pathlib import Path

from leeward.events import Emit, ignore
from leeward.files import rename, replace_file, storage_errors, sync_folder
from leeward.store.directory.audit import utc_now
from leeward.store.format.verdicts import Verdict
from leeward.store.paths import RunPaths
from leeward.wording import json_text


def _moved_before(paths: RunPaths, path: Path) -> Path | None:
    """Return the path to which an interrupted call moved the missing file, and sync it; None if it was not moved."""
    if os.path.lexists(path):
        return None
    moved = [place for place in paths.quarantine.glob(f"{path.name}.*") if place.suffix != ".json"]
    if not moved:
        return None
    sync_folder(paths.quarantine)
    sync_folder(path.parent)
    return max(moved, key=lambda place: place.lstat().st_ctime_ns)


def quarantine(paths: RunPaths, path: Path, verdict: Verdict, reason: str, emit: Emit = ignore) -> Path:
    """Move a bad file, or a link or folder at its path, to quarantine. Return its new path.

    The reason is written first. After an interruption the file is still in its place, and the next call moves it.
    """
    token = secrets.token_hex(4)
    place = paths.quarantine / f"{path.name}.{token}"
    with storage_errors(path, f"cannot be moved to {place}"):
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
        if path.is_symlink():  # the link itself is moved, not its target
            about["target"] = os.readlink(path)
        paths.quarantine.mkdir(parents=True, exist_ok=True)
        sync_folder(paths.quarantine.parent)  # even if it exists: its creator may have been killed before the sync
        replace_file(place.with_name(place.name + ".reason.json"), json_text(about, indent=1).encode())
        emit("quarantine", path=str(path), to=str(place), verdict=verdict, reason=reason, size=about["size"])
        rename(path, place)
        sync_folder(paths.quarantine)
        sync_folder(path.parent)
    return place
