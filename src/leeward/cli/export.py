"""`leeward export`: write results for other programs."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from typer import Exit, Option

from leeward.cli.options import CAMPAIGN_FILE, FARMS, PLACE_OR_FOLDER, TYPES, Options
from leeward.cli.output import EXIT_INCOMPLETE, check_files, note
from leeward.cli.sources import Names, demanded_campaign, evaluation_key, given_place, known_campaigns
from leeward.errors import InputError
from leeward.export.write import FORMATS, beside, check_output, format_of
from leeward.watch import kind_of
from leeward.wording import command, count, size

if TYPE_CHECKING:
    from leeward.campaign import Campaign


class Per(StrEnum):
    """The unit of a table row: a turbine or a layout."""

    TURBINE = "turbine"
    LAYOUT = "layout"


if TYPE_CHECKING:
    FormatName = StrEnum
else:
    FormatName = StrEnum("FormatName", {name.upper(): name for name in FORMATS})


class ExportOptions(Options):
    """Write layouts, or the results of a study, to a file for other programs.

    NetCDF, Parquet, CSV, GeoJSON (longitudes and latitudes) and GeoPackage hold any number of layouts. A windIO plant
    or a FLORIS input (.yaml) and the arrays for PyWake (.npz or .json) hold one layout with its site, turbine and wake
    model. FLORIS gets a second file, the wind rose.

    A study is written as NetCDF, Zarr, Parquet or CSV; tables have one row per target, scenario and case. --features
    writes the inputs of each scenario beside the means of its results.

    The file is written completely or not at all, and replaces an old one. Damaged results are left out.

    Exit codes: 0 written; 3 written, but damaged results were left out; 1 PATH cannot be read; 2 usage error; 4 the
    file cannot be written.
    """

    output: Path = Option(
        ...,
        "--output",
        "-o",
        help="File to write; its extension selects the format: .nc .parquet .csv .geojson .gpkg .yaml .npz .json. "
        "For a study: .nc .zarr .parquet .csv.",
    )
    path: Path | None = PLACE_OR_FOLDER
    per: Per | None = Option(
        None, help=".csv, .parquet: write one row per turbine, or one per layout. Default: turbine."
    )
    key: list[str] | None = Option(
        None,
        help='Only this layout: farm0_t5_s3, "0 5 3", 0,5,3 or "farm name/type name/3"; of a study, this result: '
        "target0_scenario3. Repeatable. Default: all.",
    )
    farm: list[str] | None = FARMS
    type_: list[str] | None = TYPES
    seed: list[int] | None = Option(None, help="Only layouts of this seed. Repeatable. Default: all.")
    best: bool = Option(False, "--best", help="Only the layout with the highest AEP of each farm and turbine type.")
    format_name: FormatName | None = Option(
        None,
        "--format",
        help="Format, if the extension has several: windio or floris (.yaml), arrays or geojson (.json).",
    )
    campaign: str | None = CAMPAIGN_FILE
    features: bool = Option(False, "--features", help="Write the feature table of a study, to .csv or .parquet.")


def export(options: ExportOptions) -> None:
    """Write layouts or evaluations to a file."""
    if options.path is None and not options.features and options.output.suffix.lower() != ".zarr":
        format_of(options.output, None)  # raises InputError for an extension that is not known
    place = given_place(options.path)
    if kind_of(place) == "evaluations":
        _export_study(options, place)
    elif options.features:
        raise InputError(f"{place}: holds layouts; --features writes the feature table of a study")
    else:
        _export_layouts(options, place)


def _export_layouts(options: ExportOptions, place: Path) -> None:
    from leeward.export import Choice, chosen, damaged, export_layouts, open_results

    output, campaign = options.output, options.campaign
    form = format_of(output, None if options.format_name is None else options.format_name.value)
    check_output(output, [place, *([] if campaign is None else [Path(campaign)])])
    check_files(output)
    names = Names(campaign, place)
    numbers = names.farms(options.farm), names.types(options.type_), options.seed or []
    choice = Choice(names.keys(options.key), *numbers, options.best)
    with open_results(place) as layouts:
        some = chosen(layouts, choice)
        known = demanded_campaign(campaign, [place], form.name) if form.needs_campaign else _known(campaign, place)
        by_seed = not options.best
        per: Literal["turbine", "layout"] = "layout" if options.per is Per.LAYOUT else "turbine"
        number = export_layouts(some, output, known, format_name=form.name, per=per, by_seed=by_seed)
        left_out = len(damaged(layouts, choice))
    files = f"{output} and {beside(output)}" if form.beside else str(output)
    print(f"written: {files}, {count(number, 'layout')}, {form.name}, {size(output.stat().st_size)}")
    _report_left_out(left_out, place)


def _export_study(options: ExportOptions, place: Path) -> None:
    from leeward.export import chosen_evaluations, export_features, export_study, open_evaluations
    from leeward.export.study import study_format

    output = options.output
    for name in ("per", "farm", "type_", "seed", "best", "campaign"):
        if getattr(options, name):
            raise InputError(f"{place}: is a study; --{name.rstrip('_')} selects or describes layouts: leave it out")
    named = None if options.format_name is None else options.format_name.value
    form = "features" if options.features else study_format(output, named)
    check_output(output, [place])
    check_files(output, is_folder=form == "zarr")
    keys = [evaluation_key(text) for text in options.key or ()]
    with open_evaluations(place) as evaluations:
        some = chosen_evaluations(evaluations, keys)
        with some:
            number = (
                export_features(some, output) if options.features else export_study(some, output, format_name=named)
            )
        left_out = 0 if keys else len(evaluations.bad)
    total = sum(path.stat().st_size for path in ([output] if output.is_file() else output.rglob("*")))
    print(f"written: {output}, {count(number, 'evaluation')}, {form}, {size(total)}")
    _report_left_out(left_out, place)


def _report_left_out(left_out: int, place: Path) -> None:
    """Print how many damaged results were left out, and exit if there are any."""
    if left_out:
        why = f"{command('check', place)} lists the reasons"
        print(f"leeward: {count(left_out, 'damaged result or file')} left out; {why}", file=sys.stderr)
        raise Exit(EXIT_INCOMPLETE)


def _known(campaign: str | None, place: Path) -> "Campaign | None":
    """Return the campaign. If it is not known, print a note and return None: the format does not need it."""
    found, problems = known_campaigns(campaign, [place])
    if len(found) == 1 and not problems:
        return found[0]
    reason = problems[0] if problems else f"{place}: holds {'different campaigns' if found else 'no campaign'}"
    note(f"{reason}; names of farms and turbines are left out; give --campaign to add them")
    return None
