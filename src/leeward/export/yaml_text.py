"""YAML for other programs: each list of numbers on one line, comments at the top."""

from collections.abc import Sequence
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """A dumper that uses aliases for repeated sections, such as turbines, but not for lists."""

    def ignore_aliases(self, data: Any) -> bool:
        return not isinstance(data, dict)


def _list(dumper: _Dumper, items: list[Any]) -> yaml.Node:
    is_flat = not any(isinstance(item, dict | list) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_flat)


_Dumper.add_representer(list, _list)


def yaml_text(comments: Sequence[str], data: dict[str, Any]) -> str:
    """Return the YAML text of data. Numbers round-trip exactly."""
    top = "".join(f"# {' '.join(line.split())}\n" for line in comments)
    return top + yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
