"""Text for commands and pages: sizes, durations, counts, commands to copy, and JSON."""

import json
import math
import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# control characters except line feeds and tabs, marks that change the direction of text, and surrogates, which stand
# for bytes of file names that are not UTF-8
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
COMMANDS = {"layouts": ("run", "layouts.h5"), "evaluations": ("evaluate", "study.h5")}  # its default output, by kind


def printable(text: str) -> str:
    """Return the text with escapes such as \\x1b for characters that a terminal would obey or cannot show."""
    return _UNPRINTABLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def json_text(
    data: Any,
    *,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    default: Callable[[Any], Any] | None = None,
) -> str:
    """Return strict JSON: null for a number that is not finite, escapes for bytes that are not UTF-8."""
    try:
        text = json.dumps(data, indent=indent, separators=separators, default=default, allow_nan=False)
        if "\\ud" not in text:
            return text
    except ValueError:  # rare: a number that is not finite
        pass
    return json.dumps(_strict(data), indent=indent, separators=separators, default=default, allow_nan=False)


def _strict(data: Any) -> Any:
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, str):
        return _SURROGATE.sub(_escape, data)
    if isinstance(data, dict):
        return {_strict(name): _strict(value) for name, value in data.items()}
    return [_strict(value) for value in data] if isinstance(data, list | tuple) else data


def count(number: int, noun: str) -> str:
    """Return a count with its noun: "1 result", "2 results"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """Return a number of bytes in a few digits."""
    if number < 0:
        return "-"
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def duration(seconds: float) -> str:
    """Return a duration in s, min or h and min."""
    whole = int(seconds + 0.5)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    return f"{whole // 3600} h {whole // 60 % 60} min"


def work_done(pairs: int) -> str:
    """Return the work of an optimisation in words. pairs: the unit of `work` in a campaign file."""
    return f"{count(pairs, 'pair evaluation')} (wake of one turbine on another in one wind condition)"


def command(*words: object) -> str:
    """Return a command to copy into a shell."""
    return " ".join(["leeward", *(_quoted(str(word)) for word in words)])


def _quoted(word: str) -> str:
    """Return a word quoted for a shell; unprintable characters as bytes, in the syntax of bash and zsh."""
    if printable(word) == word:
        return shlex.quote(word)
    letters = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"\\'" else f"\\x{byte:02x}" for byte in os.fsencode(word)
    )
    return f"$'{''.join(letters)}'"


def run_command(output: str | Path, campaign: str | Path | None = None, kind: str = "layouts") -> list[object]:
    """Return the words of the command that resumes a run. campaign: default is the one in the run directory.

    kind: the kind of work of the run, "layouts" or "evaluations".
    """
    output = Path(output)
    name, usual = COMMANDS[kind]
    words: list[object] = [name, campaign or output.with_suffix(".run") / "campaign.yaml"]
    return words if str(output) == usual else [*words, "-o", output]


def compute_command(path: Path, campaign: str | None, file: str | Path, kind: str = "layouts") -> str:
    """Return the command that computes the tasks listed in a file, and keeps the results at `path`."""
    if path.suffix == ".run" or (path.suffix == ".h5" and path.with_suffix(".run").is_dir()):
        return command(*run_command(path.with_suffix(".h5"), campaign, kind), "--only-from", file)
    output = path if path.suffix == ".h5" else Path(COMMANDS[kind][1])
    if kind == "evaluations":  # a study adopts nothing, but it resumes from its output
        return command(*run_command(output, campaign or "STUDY", kind), "--only-from", file)
    return command(*run_command(output, campaign or "CAMPAIGN"), "--adopt", path, "--only-from", file)


def listed(items: Sequence[object], most: int = 5) -> str:
    """Return the first few items, and how many more there are."""
    return ", ".join(map(str, items[:most])) + (f" and {len(items) - most} more" if len(items) > most else "")
