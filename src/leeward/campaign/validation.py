"""Turn validation errors of pydantic into sentences that name the key, the value found and the values allowed."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator

from leeward.readers.document import Document, Place

TAG = "="  # marks the name of a form in pydantic's path to an error; no key begins with it
_EXPECTED = {  # key: type of pydantic's error; names in braces come from its context
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "finite_number": "a finite number",
    "too_short": "at least {min_length} value(s)",
    "too_long": "at most {max_length} value(s)",
    "literal_error": "one of {expected}",
    "string_type": "text (in quotes, if it looks like a number)",
    "string_too_short": "text that is not empty",
    "list_type": "a list",
    "dict_type": "keys with values",
    "model_type": "keys with values",
    "model_attributes_type": "keys with values",
    "bool_type": "true or false",
    "invalid_key": "a key that is text",
}


class Strict(BaseModel):
    """A section of a YAML file. It rejects unknown keys, text in place of numbers, and infinite numbers."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
    forms: ClassVar[tuple[str, ...]] = ()  # exactly one of these keys must be given

    @model_validator(mode="before")
    @classmethod
    def _note_keys(cls, data: Any, info: ValidationInfo) -> Any:
        """Record the model of this section, so that the error for an unknown key can list the known keys."""
        if isinstance(info.context, dict) and isinstance(data, dict):
            info.context[id(data)] = cls
        return data

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        if self.forms:
            one_of(self, self.forms)
        return self


Model = TypeVar("Model", bound=Strict)


def validated(model: type[Model], document: Document) -> Model:
    """Return the document's data as a model, or raise one InputError that lists all errors."""
    models: dict[int, type[Strict]] = {}
    if not isinstance(document.data, dict):
        raise document.error((), f"expected keys with values, such as `name: islands`; found {shown(document.data)}")
    try:
        return model.model_validate(document.data, context=models)
    except ValidationError as error:
        details = _without_misspelt(error.errors(include_url=False), document.data, models)
        found = [(_place(detail["loc"]), _sentence(detail, document.data, models)) for detail in details]
        found.sort(key=lambda item: document.line(item[0]) or 0)
        raise document.errors(found) from None


def one_of(model: Strict, names: Sequence[str], what: str = "") -> None:
    """Raise ValueError unless exactly one of these keys is given. what: their meaning."""
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise ValueError(f"expected one of {', '.join(names)}{f' ({what})' if what else ''}; found {found}")


def not_both(model: Strict, first: str, second: str) -> None:
    """Raise ValueError if both keys are given."""
    if getattr(model, first) is not None and getattr(model, second) is not None:
        raise ValueError(f"has both {first} and {second}; give one or the other, not both")


def suggestion(word: object, known: Sequence[str]) -> str:
    """Return a known word that is similar, if there is one, and the list of all known words."""
    close = difflib.get_close_matches(str(word), known, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}Allowed: {', '.join(known)}" if hint else f"allowed: {', '.join(known)}"


def known_name(value: str, known: Sequence[str], form: str, example: str) -> str:
    """Return the name if it is known or has the form `module:name` of custom code; else raise ValueError."""
    module, colon, name = value.partition(":")
    if colon and not (all(part.isidentifier() for part in module.split(".")) and name.isidentifier()):
        raise ValueError(f"is {value!r}; expected {form}, for example {example}")
    if not colon and value not in known:
        raise ValueError(f"is {value!r}; {suggestion(value, known)}, or custom code as {form}")
    return value


def shown(value: object) -> str:
    """Return a value as text, shortened."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return f"the keys {', '.join(map(str, list(value)[:6]))}" if value else "no keys"
    try:
        text = repr(value)
    except RecursionError:
        return "a value that is nested too deeply"
    return text if len(text) <= 60 else f"{text[:56]} ..."


def _place(loc: tuple[str | int, ...]) -> Place:
    return tuple(step for step in loc if not (isinstance(step, str) and step.startswith(TAG)))


def _parent(data: Any, place: Place) -> Any:
    for step in place[:-1]:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _without_misspelt(details: Any, data: Any, models: Mapping[int, type[Strict]]) -> list[Any]:
    """Drop errors about a missing key if it is present but misspelt, because another error reports that."""
    meant = set()
    for detail in details:
        if detail["type"] == "extra_forbidden":
            place = _place(detail["loc"])
            model = models.get(id(_parent(data, place)))
            close = difflib.get_close_matches(str(place[-1]), list(model.model_fields) if model else [], n=1)
            meant |= {(*place[:-1], name) for name in close}
    return [detail for detail in details if detail["type"] != "missing" or _place(detail["loc"]) not in meant]


def _sentence(detail: Any, data: Any, models: Mapping[int, type[Strict]]) -> str:
    kind, found, context = detail["type"], detail["input"], detail.get("ctx", {})
    section = _parent(data, _place(detail["loc"]))
    model = models.get(id(section))
    if kind == "extra_forbidden":
        known = [] if model is None else [name for name in model.model_fields if name not in section]
        return f"is not a known key; {suggestion(detail['loc'][-1], known)}"
    if kind == "missing":
        field = None if model is None else model.model_fields.get(str(detail["loc"][-1]))
        what = None if field is None else field.description
        return f"is missing; expected {what}" if what else "is missing; add it"
    if kind == "value_error":
        return str(context.get("error", detail["msg"]))
    expected = _EXPECTED[kind].format(**context) if kind in _EXPECTED else detail["msg"]
    if kind == "literal_error":
        expected = expected.replace(" or ", ", ")
    if kind in ("float_type", "int_type") and isinstance(found, str) and _is_number(found):
        expected += ", without quotes"
    return f"is {shown(found)}; expected {expected}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
