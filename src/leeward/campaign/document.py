"""Read and write YAML 1.2, and find the line of each key."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from leeward.errors import InputError
from leeward.parsing import TooMuchError, check_yaml, read_text

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

LARGEST_TEXT = 64_000_000  # characters

Place = tuple[str | int, ...]  # keys and positions from the top of a file down to a value

# YAML 1.2: `no` and `on` are words, 1e3 is a number, 10:50 is not a base-60 number, and dates are text
_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(
    r"""(?: [-+]? (?: [0-9]+\.[0-9]* | \.[0-9]+ | [0-9]+(?=[eE]) ) (?: [eE][-+]?[0-9]+ )?
      | [-+]?\.(?:inf|Inf|INF) | \.(?:nan|NaN|NAN) )\Z""",
    re.VERBOSE,
)
_RULES = (
    ("tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), "tTfF"),
    ("tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)\Z"), "~nN\0"),
    ("tag:yaml.org,2002:int", _INT, "-+0123456789"),
    ("tag:yaml.org,2002:float", _FLOAT, "-+0123456789."),
    ("tag:yaml.org,2002:merge", re.compile(r"<<\Z"), "<"),
)


class _CampaignLoader(_Loader):  # type: ignore[misc]
    """A safe loader that rejects duplicate keys."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value} is given twice, first in line {seen[key.value]}", key.start_mark
                    )
                seen[key.value] = line
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return found


class _CampaignDumper(_Dumper):  # type: ignore[misc]
    """A dumper that quotes all text that YAML 1.1 or 1.2 would read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _construct_int(loader: Any, node: Any) -> int:
    return int(loader.construct_scalar(node))


for _tag, _pattern, _first in _RULES:
    for _character in _first:
        _key = "" if _character == "\0" else _character
        _CampaignLoader.yaml_implicit_resolvers.setdefault(_key, []).append((_tag, _pattern))
_CampaignLoader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_CampaignDumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
_CampaignDumper.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))


class Document:
    """The data of a YAML text or of a dict. It finds the line and the key for errors.

    where: its name in errors. folder: base of relative paths; None if the document may not refer to files. remarks:
    notes for the user on how it was read.
    """

    def __init__(self, where: str, data: Any, folder: Path | None = None, text: str | None = None) -> None:
        self.where = where
        self.data = data
        self.folder = folder
        self.remarks: list[str] = []
        self._text = text
        self._tree: Any = None

    @classmethod
    def from_text(cls, text: str, where: str, folder: Path | None = None) -> "Document":
        return cls(where, _parse(text, where), folder, text)

    @classmethod
    def from_file(cls, path: Path, what: str) -> "Document":
        return cls.from_text(read_text(path, what, LARGEST_TEXT), str(path), path.absolute().parent)

    def line(self, place: Place) -> int | None:
        """Return the line of the key at a place, or of the innermost key around it, or None."""
        if self._text is None:
            return None
        if self._tree is None:
            self._tree = yaml.compose(self._text, Loader=_CampaignLoader)
        node, mark = self._tree, None
        for step in place:
            if isinstance(node, yaml.MappingNode):
                pairs = [(key, value) for key, value in node.value if key.value == str(step)]
                if not pairs:
                    break
                mark, node = pairs[-1][0].start_mark, pairs[-1][1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                mark = node.start_mark
            else:
                break
        return None if mark is None else mark.line + 1

    @contextmanager
    def at(self, *place: str | int) -> Iterator[None]:
        """Add this place to an InputError raised within."""
        try:
            yield
        except InputError as error:
            raise self.error(place, str(error)) from error

    def error(self, place: Place, sentence: str) -> InputError:
        """Return an InputError about one place. The sentence has no subject: the message puts the key before it."""
        return self.errors([(place, sentence)])

    def errors(self, found: Sequence[tuple[Place, str]], most: int = 20) -> InputError:
        """Return one InputError about one or more places, with one line for each."""
        lines = [self._sentence(place, sentence) for place, sentence in found]
        if len(lines) == 1:
            return InputError(f"{self.where}: {lines[0]}")
        shown = "".join(f"\n  {line}" for line in lines[:most])
        more = f"\n  and {len(lines) - most} more" if len(lines) > most else ""
        return InputError(f"{self.where}: {len(lines)} errors{shown}{more}")

    def _sentence(self, place: Place, sentence: str) -> str:
        """Return an error with its line and key, such as `line 7: turbines[2].name is 5; expected text`."""
        key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
        line = self.line(place)
        at = ": ".join(part for part in ("" if line is None else f"line {line}", key) if part)
        if not at:
            return sentence
        follows_key = sentence.startswith(("is ", "has ", "contains ", "refers "))
        return f"{at} {sentence}" if follows_key else f"{at}: {sentence}"


def dump(data: Any) -> str:
    """Return YAML text that reads back as the same data, floats to the last bit."""
    try:
        text = yaml.dump(
            data, Dumper=_CampaignDumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None
        )
    except UnicodeEncodeError as error:  # the name of a folder of recipes, or of a farm in GeoJSON
        raise InputError(f"{error.object!r:.200} cannot be written in UTF-8; rename that folder or farm") from error
    return str(text)


def plain(data: Any) -> Any:
    """Return Python data in the types that YAML has: arrays and tuples become lists, paths become text."""
    if isinstance(data, Mapping):
        return {plain(key): plain(value) for key, value in data.items()}
    if isinstance(data, str | bytes | bool | int | float) or data is None:
        return data
    if hasattr(data, "tolist"):  # numpy's arrays and numbers
        return plain(data.tolist())
    if hasattr(data, "__fspath__"):
        return str(data)
    if isinstance(data, range):
        return f"{data.start}:{data.stop}:{data.step}"
    if isinstance(data, Sequence | set | frozenset):
        return [plain(value) for value in data]
    return data


def _parse(text: str, where: str) -> Any:
    if len(text) > LARGEST_TEXT:
        raise InputError(f"{where}: has {len(text)} characters; expected at most {LARGEST_TEXT}")
    try:
        check_yaml(text)
        return yaml.load(text, Loader=_CampaignLoader)  # a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        raise InputError(f"{where}: {place}{_explained(error, text)}") from error
    # `!!bool x` raises a KeyError, `!!timestamp x` an AttributeError
    except (yaml.YAMLError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"{where}: cannot be read as YAML ({' '.join(str(error).split())})") from error


def _explained(error: yaml.MarkedYAMLError, text: str) -> str:
    problem = str(error.problem or error.context)
    if isinstance(error, TooMuchError):
        return problem
    if "is given twice" in problem:
        return f"{problem}; expected each key once"
    mark = error.problem_mark
    lines = text.splitlines()
    line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    hint = ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        hint = "; the line starts with a tab: indent with spaces"
    elif "mapping values are not allowed" in problem:
        hint = "; is there an extra colon, or a key that is indented further than the key above it?"
    elif "expected <block end>" in problem or "could not find expected ':'" in problem:
        hint = "; check the indentation, and put a space after each colon"
    elif "expected ',' or" in problem:
        hint = "; is a bracket or brace not closed?"
    return f"not YAML: {problem}{hint}"
