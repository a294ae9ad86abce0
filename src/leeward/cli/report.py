"""`leeward report`: write one HTML file about the results."""

import sys
from pathlib import Path
from typing import Any

from typer import Option

from leeward.cli.options import CAMPAIGN_FILE, PLACE, QUIET, Options
from leeward.cli.output import check_files, write_file
from leeward.cli.sources import given_place, given_work
from leeward.errors import InputError
from leeward.wording import size


class ReportOptions(Options):
    """Write a report of a campaign or a study: one HTML file with all figures and tables.

    The file needs no other file and no network, so you can send it by e-mail. It shows the results, the best layouts,
    AEP over seeds, method and settings, missing results, and how to load the data. For a study: progress by target,
    the distribution of losses, and the evaluations with the least, the median and the largest loss.

    Exit codes: 0 written; 1 PATH cannot be read; 2 usage error; 4 the storage is unavailable, or the report cannot be
    written.
    """

    path: Path | None = PLACE
    output: Path = Option(Path("report.html"), "--output", "-o", help="HTML file to write. An old one is replaced.")
    campaign: str | None = CAMPAIGN_FILE
    quiet: bool = QUIET


def report(options: ReportOptions) -> None:
    """Write a report."""
    output = options.output
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{output}: the extension is {output.suffix!r}; expected .html, for example report.html")
    place = given_place(options.path)
    check_files(output)
    from leeward.report import report_html

    def on_event(event: dict[str, Any]) -> None:
        if not options.quiet:
            print(f"{event['text']} ...", file=sys.stderr)

    text = report_html(place, given_work(options.campaign, [place]), on_event)
    write_file(output, text)
    if not options.quiet:
        print(f"written: {output} ({size(len(text.encode()))})")
