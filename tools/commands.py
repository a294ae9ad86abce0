"""Writes docs/commands.md from the commands themselves: `make commands`.

What a command, an argument or an option is for stands in its help text and nowhere else; beside it the page has, from
tools/commands.md, examples and links. A test fails when the page is not what this program writes.
"""

import inspect
import re
import types
import typing
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from leeward.cli import app

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "commands.md"
BESIDE = ROOT / "tools" / "commands.md"
EXIT_CODES = "Exit codes:"
WORDS = {str: "TEXT", Path: "PATH", int: "N", float: "NUMBER"}


def page(commands: typer.Typer, beside: str) -> str:
    """The page. beside: what stands before the commands, and after the help of some, under headings of their names."""
    before, parts = _parts(beside)
    group = typer.main.get_command(commands)
    known = group.commands
    unknown = set(parts) - {f"leeward {name}" for name in known}
    if unknown:
        raise ValueError(f"{BESIDE}: {', '.join(sorted(unknown))}: no such command; expected one of {', '.join(known)}")
    sections = [_section(name, command, parts.get(f"leeward {name}", "")) for name, command in known.items()]
    return "\n\n".join([before, *sections]) + "\n"


def _parts(beside: str) -> tuple[str, dict[str, str]]:
    """The text before the first heading of the second level, and what follows each of these."""
    before, *rest = re.split(r"^## (.+)\n", beside, flags=re.M)
    return before.strip(), {name: text.strip() for name, text in zip(rest[::2], rest[1::2], strict=True)}


def _section(name: str, command: Any, beside: str) -> str:
    hints = typing.get_type_hints(command.callback)
    shown = [parameter for parameter in command.params if not parameter.hidden]
    arguments = [parameter for parameter in shown if not parameter.opts[0].startswith("-")]
    options = [parameter for parameter in shown if parameter.opts[0].startswith("-")]
    parts = [f"## leeward {name}", f"```\n{_usage(name, arguments, options, hints)}\n```"]
    said = [_marked(paragraph) for paragraph in paragraphs(command.help)]
    parts += [paragraph for paragraph in said if not paragraph.startswith(EXIT_CODES)]
    if arguments:
        parts.append(_table("argument", [_row(argument, _argument(argument), hints) for argument in arguments]))
    if options:
        parts.append(_table("option", [_row(option, _option(option, hints), hints) for option in options]))
    parts += [paragraph for paragraph in said if paragraph.startswith(EXIT_CODES)]
    return "\n\n".join([*parts, *([beside] if beside else [])])


def paragraphs(text: str) -> list[str]:
    """Each in one line."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", inspect.cleandoc(text)) if part.strip()]


def _marked(text: str) -> str:
    """Options in the type of code, unless they are within such already."""
    pieces = text.split("`")
    pieces[::2] = [re.sub(r"(?<![\w-])(--[a-z][a-z-]*[a-z])", r"`\1`", piece) for piece in pieces[::2]]
    return "`".join(pieces)


def _usage(name: str, arguments: list[Any], options: list[Any], hints: dict[str, Any]) -> str:
    words = [f"leeward {name}"]
    words += [_argument(argument) if argument.required else f"[{_argument(argument)}]" for argument in arguments]
    words += [f"{option.opts[0]} {_value(option, hints)}" for option in options if option.required]
    return " ".join([*words, *(["[OPTIONS]"] if any(not option.required for option in options) else [])])


def _argument(argument: Any) -> str:
    return (argument.metavar or argument.name).upper() + ("..." if argument.nargs == -1 else "")


def _option(option: Any, hints: dict[str, Any]) -> str:
    long, *short = sorted(option.opts, key=len, reverse=True)
    return "`, `".join([long if option.is_flag else f"{long} {_value(option, hints)}", *short, *option.secondary_opts])


def _type(parameter: Any, hints: dict[str, Any]) -> Any:
    """Of a single value: neither a list nor None."""
    kind = hints[parameter.name]
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    return typing.get_args(kind)[0] if typing.get_origin(kind) is list else kind


def _value(parameter: Any, hints: dict[str, Any]) -> str:
    kind = _type(parameter, hints)
    return str(parameter.metavar or ("WORD" if issubclass(kind, Enum) else WORDS[kind]))


def _row(parameter: Any, name: str, hints: dict[str, Any]) -> tuple[str, str, str]:
    """Name, meaning, default."""
    if not parameter.help:
        raise ValueError(f"{name} of {parameter} has no help text; expected a sentence")
    kind, meaning = _type(parameter, hints), _marked(parameter.help)
    if isinstance(kind, type) and issubclass(kind, Enum):
        meaning += f" One of {', '.join(f'`{choice.value}`' for choice in kind)}."
    default = parameter.default
    if parameter.required:
        shown = "required"
    elif default is None or default is False or default == () or default == []:
        shown = ""
    else:
        value = default.value if isinstance(default, Enum) else default
        shown = f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
    return name, meaning, shown


def _table(title: str, rows: list[tuple[str, str, str]]) -> str:
    """Without the column of defaults where there are none."""
    wide = any(default for _, _, default in rows)
    lines = [f"| {title} | |" + (" default |" if wide else ""), "|---|---|" + ("---|" if wide else "")]
    for name, meaning, default in rows:
        cells = [f"`{name}`", meaning.replace("|", "\\|"), *([default] if wide else [])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(app, BESIDE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")
