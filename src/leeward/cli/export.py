"""`leeward export`: results for other programs."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Exit, Option

from leeward.cli.options import CAMPAIGN_FILE, FARMS, PLACE_OR_FOLDER, TYPES, Options
from leeward.cli.output import EXIT_INCOMPLETE, check_files, note
from leeward.cli.sources import Names, demanded_campaign, given_place, told_campaigns
from leeward.export.registry import FORMATS, format_of
from leeward.wording import command, count, size

if TYPE_CHECKING:
    from leeward.campaign import Campaign


class Per(StrEnum):
    """What a row of a table stands for."""

    TURBINE = "turbine"
    LAYOUT = "layout"


if TYPE_CHECKING:
    FormatName = StrEnum
else:
    FormatName = StrEnum("FormatName", {name.upper(): name for name in FORMATS})


class ExportOptions(Options):
    """Write layouts to a file for other programs.

    NetCDF, Parquet and CSV hold any number of layouts, and so does GeoJSON, in longitudes and latitudes. A windIO plant
    or a FLORIS input (.yaml) and the arrays for PyWake (.npz or .json) hold one, with its site, turbine and wake model.

    The file appears whole or not at all, and an old one is replaced. Damaged results are left out.

    Exit codes: 0 written; 3 written, but damaged results are left out; 1 it cannot be read; 2 wrong use; 4 the file
    cannot be written.
    """

    output: Path = Option(
        ..., "--output", "-o", help="The file; its ending says which: .nc .parquet .csv .geojson .yaml .npz .json."
    )
    path: Path | None = PLACE_OR_FOLDER
    per: Per = Option(Per.TURBINE, help="A row of .csv and .parquet: one turbine, or one layout.")
    key: list[str] | None = Option(
        None, help='Only this layout: farm0_t5_s3, "0 5 3", 0,5,3 or "farm name/type name/3". Repeatable.'
    )
    farm: list[str] | None = FARMS
    type_: list[str] | None = TYPES
    seed: list[int] | None = Option(None, help="Only layouts of this seed. Repeatable.")
    best: bool = Option(False, "--best", help="Of each farm and turbine type only the layout with the highest AEP.")
    format_name: FormatName | None = Option(
        None, "--format", help="Where the ending leaves it open: windio or floris (.yaml), geojson (.json)."
    )
    campaign: str | None = CAMPAIGN_FILE


def export(options: ExportOptions) -> None:
    """Write layouts to a file."""
    from leeward.export import Choice, chosen, damaged, export_layouts, open_results
    from leeward.export.write import check_output

    output, campaign = options.output, options.campaign
    form = format_of(output, None if options.format_name is None else options.format_name.value)
    place = given_place(options.path)
    check_output(output, [place, *([] if campaign is None else [Path(campaign)])])
    check_files(output)
    names = Names(campaign, place)
    numbers = names.farms(options.farm), names.types(options.type_), options.seed or []
    choice = Choice(names.keys(options.key), *numbers, options.best)
    with open_results(place) as layouts:
        some = chosen(layouts, choice)
        known = demanded_campaign(campaign, [place], form.name) if form.needs_campaign else _known(campaign, place)
        by_seed = not options.best
        number = export_layouts(some, output, known, format_name=form.name, per=options.per.value, by_seed=by_seed)
        left_out = len(damaged(layouts, choice))
    print(f"written: {output}, {count(number, 'layout')}, {form.name}, {size(output.stat().st_size)}")
    if left_out:
        print(
            f"leeward: {count(left_out, 'damaged result or file')} left out; {command('check', place)} says more",
            file=sys.stderr,
        )
        raise Exit(EXIT_INCOMPLETE)


def _known(campaign: str | None, place: Path) -> "Campaign | None":
    """For formats that can do without one: names are left out then, and it is said why."""
    found, problems = told_campaigns(campaign, [place])
    if len(found) == 1 and not problems:
        return found[0]
    reason = problems[0] if problems else f"{place}: {'different campaigns' if found else 'no campaign'} in it"
    note(f"{reason}; names of farms and turbines are left out (--campaign tells them)")
    return None
