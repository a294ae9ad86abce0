"""HTML and SVG elements as escaped text."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Union

VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta"})

Attribute = str | int | float | bool | None
Child = Union[str, int, float, None, "Markup", Iterable["Child"]]


class Markup(str):
    """Text that is HTML already and is not escaped again. `tag` and `join` return it."""

    __slots__ = ()


def tag(name: str, attributes: Mapping[str, Attribute] | None = None, *children: Child) -> Markup:
    """Return an element with escaped text and attributes. Attributes that are None or False are left out."""
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
    """Return the children as HTML, escaped, without separators."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, str | int | float):
            parts.append(escape(_text(child)))
        elif child is not None:
            parts.append(join(child))
    return Markup("".join(parts))


def _text(value: str | int | float) -> str:
    """Return a value as text, with control characters and lone surrogates replaced."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text)
