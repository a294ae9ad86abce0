"""`leeward export`: results for other programs."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli.options import Farms, Types
from leeward.cli.sources import CampaignFile, Names, demanded_campaign, given_place, told_campaigns
from leeward.cli.tables import check_files
from leeward.cli.wording import EXIT_INCOMPLETE
from leeward.wording import command, count, size

if TYPE_CHECKING:
    from leeward.campaign import Campaign


class Per(StrEnum):
    """What a row of a table stands for."""

    TURBINE = "turbine"
    LAYOUT = "layout"


class FormatName(StrEnum):
    """Those of `leeward.export.FORMATS`, which is not imported for the sake of `--help`."""

    NETCDF = "netcdf"
    PARQUET = "parquet"
    CSV = "csv"
    GEOJSON = "geojson"
    WINDIO = "windio"
    FLORIS = "floris"
    ARRAYS = "arrays"


def export(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The file; its ending says which: .nc .parquet .csv .geojson .yaml .npz .json."
        ),
    ],
    path: Annotated[
        Path | None,
        typer.Argument(help="Run directory, layouts.h5, or a folder. Default: the only run in the current folder."),
    ] = None,
    per: Annotated[Per, typer.Option(help="A row of .csv and .parquet: one turbine, or one layout.")] = Per.TURBINE,
    key: Annotated[
        list[str] | None,
        typer.Option(help='Only this layout: farm0_t5_s3, "0 5 3", 0,5,3 or "farm name/type name/3". Repeatable.'),
    ] = None,
    farm: Farms = None,
    type_: Types = None,
    seed: Annotated[list[int] | None, typer.Option(help="Only layouts of this seed. Repeatable.")] = None,
    best: Annotated[
        bool, typer.Option("--best", help="Of each farm and turbine type only the layout with the highest AEP.")
    ] = False,
    format_name: Annotated[
        FormatName | None,
        typer.Option("--format", help="Where the ending leaves it open: windio or floris (.yaml), geojson (.json)."),
    ] = None,
    campaign: CampaignFile = None,
) -> None:
    """Write layouts to a file for other programs.

    NetCDF, Parquet and CSV hold any number of layouts, and so does GeoJSON, in longitudes and latitudes. A windIO plant
    or a FLORIS input (.yaml) and the arrays for PyWake (.npz or .json) hold one, with its site, turbine and wake model.

    The file appears whole or not at all, and an old one is replaced. Damaged results are left out.

    Exit codes: 0 written; 3 written, but damaged results are left out; 1 it cannot be read; 2 wrong use; 4 the file
    cannot be written.
    """
    from leeward.export import Choice, chosen, damaged, export_layouts, open_results
    from leeward.export.target import check_output, format_of

    name = None if format_name is None else format_name.value
    form = format_of(output, name)
    place = given_place(path)
    check_output(output, [place, *([] if campaign is None else [Path(campaign)])])
    check_files(output, None)
    names = Names(campaign, place)
    choice = Choice(names.keys(key), names.farms(farm), names.types(type_), seed or [], best)
    with open_results(place) as layouts:
        some = chosen(layouts, choice)
        known = demanded_campaign(campaign, [place], form.name) if form.needs_campaign else _known(campaign, place)
        number = export_layouts(some, output, known, format_name=form.name, per=per.value, by_seed=not best)
        left_out = len(damaged(layouts, choice))
    print(f"written: {output}, {count(number, 'layout')}, {form.name}, {size(output.stat().st_size)}")
    if left_out:
        print(
            f"leeward: {count(left_out, 'damaged result or file')} left out; {command('check', place)} says more",
            file=sys.stderr,
        )
        raise typer.Exit(EXIT_INCOMPLETE)


def _known(campaign: str | None, place: Path) -> "Campaign | None":
    """For formats that can do without one: names are left out then, and it is said why."""
    found, problems = told_campaigns(campaign, [place])
    if len(found) == 1 and not problems:
        return found[0]
    reason = problems[0] if problems else f"{place}: {'different campaigns' if found else 'no campaign'} in it"
    print(f"leeward: note: {reason}; names of farms and turbines are left out (--campaign tells them)", file=sys.stderr)
    return None
