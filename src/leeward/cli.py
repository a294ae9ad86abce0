"""The command line: parses, calls the library, prints. Nothing imports this module.

Heavy imports are made by the commands that need them, so that `leeward --help` answers at once.
"""

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward import __version__
from leeward.errors import InputError, LeewardError

EXIT_ERROR = 1
EXIT_WRONG_USE = 2

app = typer.Typer(
    help="Thousands of optimised wind-farm layouts, and never one lost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; an expected error is one line on stderr."""
    try:
        app()
    except InputError as error:
        print(f"leeward: {error}", file=sys.stderr)
        sys.exit(EXIT_WRONG_USE)
    except LeewardError as error:
        print(f"leeward: {error}", file=sys.stderr)
        sys.exit(EXIT_ERROR)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"leeward {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Thousands of optimised wind-farm layouts, and never one lost."""


@app.command()
def aep(
    layout: Annotated[
        Path | None, typer.Argument(help="CSV file with the columns x_m and y_m. Without it: a built-in example.")
    ] = None,
    site: Annotated[
        Path | None, typer.Option(help="Site file as PyWake writes it (NetCDF). Without it: the built-in site.")
    ] = None,
    rated_power_mw: Annotated[float, typer.Option(help="Rated power of the generic turbine, MW.")] = 15.0,
    rotor_diameter_m: Annotated[float, typer.Option(help="Its rotor diameter, m.")] = 240.0,
    hub_height_m: Annotated[float, typer.Option(help="Its hub height, m.")] = 150.0,
    wake_model: Annotated[str, typer.Option(help="Name of the wake model.")] = "nygaard_2022",
) -> None:
    """Print the annual energy production and the wake loss of a layout."""
    from leeward.campaign import builtin
    from leeward.wind import Site, Turbine, WindFarm

    turbine = Turbine.generic(rated_power_mw, rotor_diameter_m, hub_height_m)
    if layout is None:
        name, _, x, y = builtin.example_layout()
        title = f"{name} (built-in example layout)"
    else:
        x, y = _read_layout(layout)
        title = str(layout)
    wind = builtin.site() if site is None else Site.from_netcdf(site)
    simulation = WindFarm(wind, turbine, wake_model).simulate(x, y)

    loss = simulation.wake_loss
    worst, best = int(loss.argmax()), int(loss.argmin())
    print(title)
    print(f"  turbines        {len(loss):10d}  x {turbine.rated_power_mw:g} MW, rotor {turbine.rotor_diameter_m:g} m")
    print(f"  wake model      {wake_model:>10}")
    print(f"  AEP             {simulation.total_aep_gwh:10.2f}  GWh")
    print(f"  without wakes   {simulation.free_aep_gwh.sum():10.2f}  GWh")
    print(f"  wake loss       {simulation.total_wake_loss:10.2%}")
    print(f"  per turbine     {loss[best]:10.2%}  (turbine {best}) to {loss[worst]:.2%} (turbine {worst})")


def _read_layout(path: Path) -> tuple[Any, Any]:
    """Columns x_m and y_m of a CSV file."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets put a mark at the start
            reader = csv.DictReader(file)
            columns = reader.fieldnames or []
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    for column in ("x_m", "y_m"):
        if column not in columns:
            raise InputError(f"{path}: no column {column}; found {', '.join(columns) or 'nothing'}")
    coordinates: list[list[float]] = [[], []]
    for line, row in rows:
        for column, values in zip(("x_m", "y_m"), coordinates, strict=True):
            try:
                values.append(float(row[column]))
            except (TypeError, ValueError) as error:
                raise InputError(f"{path}, line {line}: {column} is {row[column]!r}; expected a number") from error
    if not rows:
        raise InputError(f"{path}: no turbines in it; expected one per line")
    return coordinates[0], coordinates[1]
