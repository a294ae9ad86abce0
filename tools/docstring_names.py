"""For the Python reference: what a docstring says of arguments and attributes, one after the other, becomes a list.

Docstrings here are plain sentences, with pieces such as `x, y: positions; spacing_m: how far apart.` That reads well in
an editor, and badly as one long paragraph on a page.
"""

import re
from collections.abc import Collection
from typing import Any

import griffe


class Names(griffe.Extension):
    """Run by mkdocstrings over all that it finds in the sources."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        _list_names(func, [parameter.name for parameter in func.parameters])

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        names = [name for name, member in cls.members.items() if not member.is_function]
        begin = cls.members.get("__init__")
        if isinstance(begin, griffe.Function):
            names += [parameter.name for parameter in begin.parameters]
        _list_names(cls, names)


def _list_names(thing: griffe.Object, names: Collection[str]) -> None:
    known = [name for name in names if name != "self"]
    if thing.docstring is not None and known:
        thing.docstring.value = with_list(thing.docstring.value, known)


def with_list(text: str, names: Collection[str]) -> str:
    """The text, with pieces such as `name: what it is;` as items of a list."""
    word = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    begin = re.compile(rf"(?:^|(?<=[.;:)] ))((?:{word})(?:, (?:{word}))*): ")
    parts = []
    for part in text.split("\n\n"):
        line = " ".join(part.split())
        before, *pieces = begin.split(line)
        if not pieces:
            parts.append(part)
            continue
        items = [
            f"- {', '.join(f'`{name}`' for name in said.split(', '))}: {about.strip().rstrip(';.')}."
            for said, about in zip(pieces[::2], pieces[1::2], strict=True)
        ]
        parts += [*([before.strip()] if before.strip() else []), "\n".join(items)]
    return "\n\n".join(parts)
