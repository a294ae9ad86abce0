"""Link targets: pages of the dashboard, or anchors in a report."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from leeward.store import Key


@dataclass(frozen=True)
class Links:
    """Addresses of links, None if there is no target. keys: the tasks in a report."""

    is_live: bool
    keys: frozenset[Key] | None = None

    def task(self, key: Key) -> str | None:
        """Return the address of a task."""
        if self.is_live:
            return f"/task/{key}"
        return f"#{key}" if self.keys is not None and key in self.keys else None

    def tasks(self, wanted: Mapping[str, str | int | None]) -> str | None:
        """Return the address of a filtered list of tasks."""
        given = {name: value for name, value in wanted.items() if value not in (None, "")}
        return f"/tasks?{urlencode(given)}" if self.is_live else None

    def cell(self, farm_idx: int, type_idx: int | None = None) -> str | None:
        """Return the address of the tasks of a farm, or of a farm and a turbine type."""
        if self.is_live:
            return self.tasks({"farm": farm_idx, "type": type_idx, "sort": "-aep"})
        return f"#farm{farm_idx}"
