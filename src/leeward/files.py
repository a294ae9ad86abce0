"""Files that appear whole or not at all."""

import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step: written and synced under another name in the same folder, then renamed.

    An OSError means that `path` is what it was before.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; where folders cannot be opened (Windows) there is nothing to do."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
