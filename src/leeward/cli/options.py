"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

SiteFile = Annotated[
    Path | None, typer.Option(help="Site file as PyWake writes it (NetCDF). Without it: the built-in site.")
]
RatedPower = Annotated[float, typer.Option(help="Rated power of the generic turbine, MW.")]
RotorDiameter = Annotated[float, typer.Option(help="Its rotor diameter, m.")]
HubHeight = Annotated[float, typer.Option(help="Its hub height, m.")]
WakeModelName = Annotated[str, typer.Option(help="Name of the wake model.")]

Farms = Annotated[
    list[str] | None,
    typer.Option("--farm", help="Only this farm, by its number (farm_idx) or its name. Can be given several times."),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type", help="Only this turbine type, by its number (type_idx) or its name. Can be given several times."
    ),
]

GivenCampaign = Annotated[
    Path | None,
    typer.Argument(help="Campaign file (YAML), or the name of a built-in campaign. Without it: the built-in one."),
]

RunOutput = Annotated[Path, typer.Option("--output", "-o", help="The deliverable; the run directory lies beside it.")]
