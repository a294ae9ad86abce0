"""`leeward report`: one HTML file for whoever gets the results."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from leeward.cli.sources import CampaignFile, Quiet, given_campaign, given_place
from leeward.cli.tables import check_files
from leeward.errors import InputError, write_error
from leeward.wording import size


def report(
    path: Annotated[
        Path | None,
        typer.Argument(help="Run directory or layouts.h5. Default: the only run in the current folder."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The report, .html. An old one is replaced.")] = Path(
        "report.html"
    ),
    campaign: CampaignFile = None,
    quiet: Quiet = False,
) -> None:
    """Write a report of a campaign: one HTML file with all pictures and tables in it.

    It needs no other file and no network: mail it. Shows what is there, best layouts, AEP over seeds, method and
    settings, what is missing, and how to load the data.

    Exit codes: 0 written; 1 PATH cannot be read; 2 wrong use; 4 the storage is unavailable, or the report cannot be
    written.
    """
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"{output}: a report with the ending {output.suffix!r}; expected .html, for example report.html"
        )
    place = given_place(path)
    check_files(output, None)
    from leeward.files import replace_file
    from leeward.report import report_html

    def tell(words: str) -> None:
        if not quiet:
            print(f"{words} ...", file=sys.stderr)

    text = report_html(place, given_campaign(campaign), tell).encode()
    try:
        replace_file(output, text)
    except OSError as error:
        raise write_error(output, error) from error
    if not quiet:
        print(f"written: {output} ({size(len(text))})")
