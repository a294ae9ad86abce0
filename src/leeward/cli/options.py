"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

SiteFile = Annotated[
    Path | None,
    typer.Option(help="Site file as PyWake writes it (NetCDF). Default: the campaign's site, or the built-in one."),
]
TurbineFile = Annotated[
    Path | None,
    typer.Option(
        "--turbine",
        metavar="FILE",
        help="Turbine: a CSV file with the columns wind_speed_m_s, power_mw and thrust_coefficient, beside "
        "--rotor-diameter-m and --hub-height-m; or a YAML file with the keys of a turbine in a campaign.",
    ),
]
RatedPower = Annotated[float | None, typer.Option(help="Rated power of the generic turbine, MW. Default: 15.")]
RotorDiameter = Annotated[float | None, typer.Option(help="Rotor diameter of the turbine, m. Default: 240.")]
HubHeight = Annotated[float | None, typer.Option(help="Hub height of the turbine, m. Default: 150.")]
WakeModelName = Annotated[
    str | None, typer.Option(help="Name of the wake model. Default: the campaign's, or nygaard_2022.")
]
PhysicsCampaign = Annotated[
    str | None,
    typer.Option(
        "--campaign",
        metavar="FILE",
        help="Take turbines, site, wake model and neighbours from a campaign: its file, its name if it is built in, or "
        "a run directory or layouts.h5 of it. Other options override it.",
    ),
]
TurbineType = Annotated[
    str | None,
    typer.Option(
        "--type", help="Turbine type of the campaign, by its number or name, where the layout does not tell it."
    ),
]

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
