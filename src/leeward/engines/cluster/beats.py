"""Signs of life of worker processes that cannot write them where `leeward status` looks."""

import contextlib
import glob
import re
from pathlib import Path
from typing import Any

from leeward.engines.heartbeat import stamp
from leeward.files import replace_file
from leeward.wording import json_text

_NAME = re.compile(r"[\w-][\w.-]{0,200}\Z")


class Beats:
    """Writes them for others. mark: part of the names of all worker processes of this run."""

    def __init__(self, folder: Path, mark: str) -> None:
        self._folder = folder
        self._mark = mark
        self._shown: dict[str, set[str]] = {}

    def show(self, beats: list[dict[str, Any]], sender: str) -> None:
        """All that one Dask worker knows of; what it knew of before is gone."""
        known = {str(beat.get("worker")): beat for beat in beats if _NAME.match(str(beat.get("worker")))}
        with contextlib.suppress(OSError):  # a disk that takes nothing is said by whoever stores results
            for name in self._shown.get(sender, set()) - known.keys():
                (self._folder / f"{name}.json").unlink(missing_ok=True)
            for name, beat in known.items():
                content = json_text({**beat, **stamp()}).encode()
                replace_file(self._folder / f"{name}.json", content, durable=False)
        self._shown[sender] = set(known)

    def hide(self, host: str | None = None) -> None:
        """Of a host, or of all: processes that are gone and could not say so. One that lives on says so again."""
        names = "*" if host is None else glob.escape(host)
        with contextlib.suppress(OSError):  # what stays is tidied away by the next run
            for path in self._folder.glob(f"{names}-*-{self._mark}*.json"):
                path.unlink(missing_ok=True)
