"""Options that several commands have, and how a class of options becomes a command.

A command is a function of one such class.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
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


class Options:
    """Arguments and options of a command: the attributes of a subclass. Its docstring is the help text of the command.

    An attribute whose type is a subclass too stands for all attributes of that one.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        for name, kind in inspect.get_annotations(type(self)).items():
            setattr(self, name, kind(given) if _is_group(kind) else given[name])

    @classmethod
    def parameters(cls) -> Iterator[inspect.Parameter]:
        """Yield a parameter of a function for each."""
        for name, kind in inspect.get_annotations(cls).items():
            if _is_group(kind):
                yield from kind.parameters()
            else:
                way = inspect.Parameter.KEYWORD_ONLY
                yield inspect.Parameter(name, way, default=getattr(cls, name), annotation=kind)


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Options)


def expanded(command: Callable[[Any], None]) -> Callable[..., None]:
    """Return the command as typer takes it: with a parameter for each of its options."""
    [parameter] = inspect.signature(command).parameters.values()
    kind: type[Options] = parameter.annotation

    def call(**given: Any) -> None:
        command(kind(given))

    parameters = list(kind.parameters())
    vars(call)["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # a line for each paragraph: the terminal, not the source, says where lines end
    call.__doc__ = "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(kind.__doc__ or "").split("\n\n"))
    return call


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, by their names."""
    return {name: value for name, value in options.items() if value is not None}
