"""Read and write YAML 1.2, with windIO's `!include`, and find the line of each key."""

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from leeward.errors import InputError
from leeward.parsing import TooMuchError, check_yaml, read_text

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

LARGEST_TEXT = 64_000_000  # characters
DEEPEST_INCLUDE = 10  # files that include each other in a row
INCLUDE = "!include"

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


@dataclass(frozen=True)
class _Include:
    """The file that `!include` names, before it is read."""

    name: str
    line: int


class _IncludingLoader(_CampaignLoader):
    """A safe loader that also accepts `!include FILE`, as in windIO."""


def _construct_include(loader: Any, node: Any) -> _Include:
    return _Include(str(loader.construct_scalar(node)), node.start_mark.line + 1)


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
_IncludingLoader.yaml_implicit_resolvers = _CampaignLoader.yaml_implicit_resolvers
_IncludingLoader.add_constructor(INCLUDE, _construct_include)
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
        self._included: dict[str, Document | None] = {}  # None for a file without lines

    @classmethod
    def from_text(cls, text: str, where: str, folder: Path | None = None) -> "Document":
        return cls(where, _parse(text, where), folder, text)

    @classmethod
    def from_file(cls, path: Path, what: str) -> "Document":
        return cls.from_text(read_text(path, what, LARGEST_TEXT), str(path), path.absolute().parent)

    @classmethod
    def with_includes(cls, path: Path, what: str, depth: int = 0) -> "Document":
        """Return the data of a YAML file and of the files that it includes: YAML, and NetCDF as a dict of windIO."""
        text = read_text(path, what, LARGEST_TEXT)
        document = cls(str(path), _parse(text, str(path), _IncludingLoader), path.absolute().parent, text)
        document.data = document._filled(document.data, path.parent, depth)
        return document

    def _filled(self, data: Any, folder: Path, depth: int) -> Any:
        """Return data with the contents of included files."""
        if isinstance(data, dict):
            return {name: self._filled(value, folder, depth) for name, value in data.items()}
        if isinstance(data, list):
            return [self._filled(value, folder, depth) for value in data]
        if not isinstance(data, _Include):
            return data
        path = folder / data.name
        where = f"{self.where}, line {data.line}: !include {data.name}"
        if depth == DEEPEST_INCLUDE:
            raise InputError(f"{where}: more than {DEEPEST_INCLUDE} files include each other; is there a circle?")
        if not path.is_file():
            raise InputError(f"{where}: {path}: no such file")
        if path.suffix.lower() in (".yaml", ".yml"):
            included = Document.with_includes(path, "a YAML file", depth + 1)
            self._included[data.name] = included
            return included.data
        if path.suffix.lower() == ".nc":
            self._included[data.name] = None
            return _netcdf_data(path)
        raise InputError(f"{where}: expected a file that ends in .yaml, .yml or .nc")

    def line(self, place: Place) -> int | None:
        """Return the line of the key at a place, or of the innermost key around it, or None."""
        return self._position(place)[1]

    def _position(self, place: Place) -> tuple[str, int | None]:
        """Return the file and the line of the key at a place."""
        if self._text is None:
            return self.where, None
        if self._tree is None:
            self._tree = yaml.compose(self._text, Loader=_IncludingLoader)
        node, mark = self._tree, None
        for depth, step in enumerate(place):
            if node.tag == INCLUDE:
                included = self._included[node.value]
                return (node.value, None) if included is None else included._position(place[depth:])
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
        return self.where, None if mark is None else mark.line + 1

    def value(self, place: Place) -> Any:
        """Return the value at a place; an empty dict if it is missing."""
        data = self.data
        for step in place:
            try:
                data = data[step]
            except (KeyError, IndexError, TypeError):
                return {}
        return data

    def number(self, place: Place) -> float:
        """Return the number at a place, or raise InputError."""
        value = self.value(place)
        if value == {} or value is None:
            raise self.error(place, "is missing; expected a number")
        if not _is_number(value):
            raise self.error(place, f"is {value!r:.60}; expected a number")
        return float(value)

    def numbers(self, place: Place) -> list[float]:
        """Return the list of numbers at a place, or raise InputError."""
        values = self.value(place)
        if not isinstance(values, list) or not values:
            raise self.error(place, f"is {repr(values)[:60] if values else 'missing'}; expected a list of numbers")
        for position, value in enumerate(values):
            if not _is_number(value):
                raise self.error((*place, position), f"is {value!r:.60}; expected a number")
        return [float(value) for value in values]

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
        file, line = self._position(place)
        in_file = [] if file == self.where else [f"in {file}"]
        at = ": ".join([*in_file, *([] if line is None else [f"line {line}"]), *filter(None, [key])])
        if not at:
            return sentence
        follows_key = sentence.startswith(("is ", "has ", "contains ", "refers "))
        return f"{at} {sentence}" if follows_key else f"{at}: {sentence}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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


def _netcdf_data(path: Path) -> dict[str, Any]:
    """Return a NetCDF file as windIO includes it: coordinates as lists, variables with `dims` and `data`."""
    import xarray

    try:
        with xarray.open_dataset(path) as dataset:
            data = dataset.load()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as NetCDF ({error})") from error

    def values(variable: Any) -> Any:
        array = variable.values
        return (array.astype("datetime64[s]").astype(str) if array.dtype.kind == "M" else array).tolist()

    coordinates = {str(name): values(data[name]) for name in data.coords}
    variables = {str(name): {"dims": list(data[name].dims), "data": values(data[name])} for name in data.data_vars}
    return {**coordinates, **variables}


def _parse(text: str, where: str, loader: Any = _CampaignLoader) -> Any:
    if len(text) > LARGEST_TEXT:
        raise InputError(f"{where}: has {len(text)} characters; expected at most {LARGEST_TEXT}")
    try:
        check_yaml(text)
        return yaml.load(text, Loader=loader)  # a safe loader
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
