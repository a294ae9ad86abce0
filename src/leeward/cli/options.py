"""Options that several commands have, and how a class of options becomes a command.

A command is a function of one dataclass: its docstring is the help text, its fields are the arguments and options. A
field that is a dataclass itself stands for all of its fields.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from typer import Argument, Option

PLACE = Argument(None, help="Run directory or layouts.h5. Default: the only run in the current folder.")
PLACE_OR_FOLDER = Argument(
    None, help="Run directory, layouts.h5, or a folder. Default: the only run in the current folder."
)
CAMPAIGN = Argument(
    None, help="Campaign file (YAML), or the name of a built-in campaign. Without it: the built-in one."
)
CAMPAIGN_FILE = Option(
    None,
    "--campaign",
    metavar="FILE",
    help="Campaign file, a built-in campaign's name, or a run directory or layouts.h5 that tells it. Default: what "
    "PATH tells.",
)
RUN_OUTPUT = Option(Path("layouts.h5"), "--output", "-o", help="The deliverable; the run directory lies beside it.")
FARMS = Option(None, "--farm", help="Only this farm, by its number (farm_idx) or its name. Can be given several times.")
TYPES = Option(
    None, "--type", help="Only this turbine type, by its number (type_idx) or its name. Can be given several times."
)
CSV = partial(Option, None, "--csv", metavar="FILE")
QUIET = Option(False, "--quiet", "-q", help="No progress, and only what matters of the rest.")
DRY_RUN = Option(False, "--dry-run", help="Change nothing; say what would happen.")
TAKE_OVER = Option(False, "--take-over", help="Take the run directory from an owner elsewhere that stands still.")


def expanded(command: Callable[[Any], None]) -> Callable[..., None]:
    """Return the command as typer takes it: with the fields of its options as parameters."""
    [parameter] = inspect.signature(command).parameters.values()
    kind = parameter.annotation

    def call(**given: Any) -> None:
        command(_filled(kind, given))

    parameters = list(_parameters(kind))
    vars(call)["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # a line for each paragraph: the terminal, not the source, says where lines end
    call.__doc__ = "\n\n".join(" ".join(part.split()) for part in inspect.getdoc(kind).split("\n\n"))  # type: ignore[union-attr]
    return call


def _parameters(kind: Any) -> Iterator[inspect.Parameter]:
    for field in dataclasses.fields(kind):
        if dataclasses.is_dataclass(field.type):
            yield from _parameters(field.type)
        else:
            way = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(field.name, way, default=field.default, annotation=field.type)


def _filled(kind: Any, given: dict[str, Any]) -> Any:
    """Return the options with the values that were given."""
    values = {
        field.name: _filled(field.type, given) if dataclasses.is_dataclass(field.type) else given[field.name]
        for field in dataclasses.fields(kind)
    }
    return kind(**values)


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}
