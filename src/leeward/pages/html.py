"""HTML and SVG as text: elements, with everything in them escaped."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Union

VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta"})

Attribute = str | int | float | bool | None
Child = Union[str, int, float, None, "Markup", Iterable["Child"]]


class Markup(str):
    """Text that is HTML already: only what `tag` and `join` made."""

    __slots__ = ()


def tag(name: str, attributes: Mapping[str, Attribute] | None = None, *children: Child) -> Markup:
    """An element. Texts and values of attributes are escaped; None and False are left out, True has no value."""
    parts = [f"<{name}"]
    for key, value in (attributes or {}).items():
        if value is None or value is False:
            continue
        parts.append(f" {key}" if value is True else f' {key}="{escape(_text(value))}"')
    parts.append(">")
    if name not in VOID:
        parts += [join(children), f"</{name}>"]
    return Markup("".join(parts))


def join(children: Iterable[Child]) -> Markup:
    """One after the other, without anything between them."""
    return Markup("".join(map(_shown, children)))


def _shown(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int | float):
        return escape(_text(child))
    return join(child)


def _text(value: str | int | float) -> str:
    """Without what no page can hold: control characters, halves of characters."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text)
