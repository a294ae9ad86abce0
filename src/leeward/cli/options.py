"""Options that several commands share, and the conversion of a class of options to a command."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from typer import Argument, Option

PLACE = Argument(None, help="Run directory, layouts.h5 or study.h5. Default: the only run in the current folder.")
PLACE_OR_FOLDER = Argument(
    None, help="Run directory, layouts.h5, study.h5, or a folder. Default: the only run in the current folder."
)
CAMPAIGN = Argument(None, help="Campaign file (YAML) or name of a built-in campaign. Default: the built-in campaign.")
CAMPAIGN_FILE = Option(
    None,
    "--campaign",
    metavar="FILE",
    help="Campaign or study file, name of a built-in campaign, or a run directory or file of results that holds the "
    "campaign. Default: the one stored with the results.",
)
RUN_OUTPUT = Option(Path("layouts.h5"), "--output", "-o", help="Merged file. The run directory is created beside it.")
FARMS = Option(None, "--farm", help="Only this farm, by its number (farm_idx) or name. Repeatable. Default: all.")
TYPES = Option(None, "--type", help="Only this type, by its number (type_idx) or name. Repeatable. Default: all.")
CSV = partial(Option, None, "--csv", metavar="FILE")
QUIET = Option(False, "--quiet", "-q", help="Show no progress, and print only the essential output.")
DRY_RUN = Option(False, "--dry-run", help="Change nothing; print what would be done.")
TAKE_OVER = Option(
    False,
    "--take-over",
    help="Take over the run directory of a coordinator on another machine whose heartbeat has stopped.",
)


class Options:
    """Base class of the options of a command: each attribute is an argument or option, the docstring is the help text.

    An attribute whose type is a subclass of Options includes all attributes of that class.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        for name, kind in inspect.get_annotations(type(self)).items():
            setattr(self, name, kind(given) if _is_group(kind) else given[name])

    @classmethod
    def parameters(cls) -> Iterator[inspect.Parameter]:
        """Yield one function parameter for each option."""
        for name, kind in inspect.get_annotations(cls).items():
            if _is_group(kind):
                yield from kind.parameters()
            else:
                default = getattr(cls, name)
                yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Options)


def expanded(command: Callable[[Any], None]) -> Callable[..., None]:
    """Return the command as a function with one parameter for each option, as typer expects."""
    [parameter] = inspect.signature(command).parameters.values()
    kind: type[Options] = parameter.annotation

    def call(**given: Any) -> None:
        command(kind(given))

    parameters = list(kind.parameters())
    vars(call)["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # join the lines of a paragraph, because the width of the terminal decides where they break
    call.__doc__ = "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(kind.__doc__ or "").split("\n\n"))
    return call


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, by name."""
    return {name: value for name, value in options.items() if value is not None}


class PhysicsOptions(Options):
    """Sources of wind, turbines and wake model."""

    campaign: str | None = Option(
        None,
        "--campaign",
        metavar="FILE",
        help="Take turbines, site, wake model and neighbours from this campaign: its file, the name of a built-in "
        "campaign, or a run directory or layouts.h5. Other options override it.",
    )
    turbine_type: str | None = Option(
        None, "--type", help="Turbine type of the campaign, by number or name, for a layout that does not state it."
    )
    turbine: Path | None = Option(
        None,
        "--turbine",
        metavar="FILE",
        help="Turbine: a CSV file with columns of wind speed, power and thrust coefficient, together with "
        "--rotor-diameter-m and --hub-height-m; a WAsP .wtg file; or a YAML file of leeward, windIO or FLORIS.",
    )
    power_unit: str | None = Option(
        None, help="Unit of the powers in a CSV file whose column does not name it: W, kW or MW."
    )
    turbine_mode: int | None = Option(
        None, help="Performance table of a WAsP .wtg file that has several, by its number from 0."
    )
    rated_power_mw: float | None = Option(None, help="Rated power of the generic turbine, MW. Default: 15.")
    rotor_diameter_m: float | None = Option(
        None, help="Rotor diameter of the turbine, m. Default for the generic turbine: 240."
    )
    hub_height_m: float | None = Option(
        None, help="Hub height of the turbine, m. Default for the generic turbine: 150."
    )
    site: Path | None = Option(
        None,
        help="Wind: a PyWake site (.nc), a WAsP table (.tab), WAsP grids (.wrg, .rsf, a folder of .grd) or a windIO "
        "resource (.yaml). Default: the campaign's site, or the built-in one.",
    )
    wake_model: str | None = Option(None, help="Name of the wake model. Default: the campaign's, or nygaard_2022.")


class SlurmOptions(Options):
    """Number and size of SLURM jobs."""

    jobs: str | None = Option(
        None, help="SLURM: number of jobs with --engine slurm: 8, or a range, 2:20. Default: the campaign's, or 1."
    )
    cores: int | None = Option(
        None, help="SLURM: cores per job; each computes one task at a time. Default: the campaign's, or 1."
    )
    memory: str | None = Option(None, help="SLURM: memory per job, such as 64GB. Default: the campaign's, or 4GB.")
    walltime: str | None = Option(
        None, help="SLURM: time limit of a job, such as 2:00:00. Default: the campaign's, or 1:00:00."
    )
    partition: str | None = Option(None, help="SLURM: partition of the jobs.")
    account: str | None = Option(None, help="SLURM: account to charge the jobs to.")
