"""`leeward new`: a campaign file to start from."""

from pathlib import Path

from typer import Argument, Option

from leeward.cli.options import Options
from leeward.cli.output import write_file
from leeward.errors import InputError
from leeward.store import demand_possible
from leeward.wording import command


class NewOptions(Options):
    """Write a commented campaign file to start from.

    Exit codes: 0 written; 2 the file is there already, or its folder is not; 4 it cannot be written.
    """

    file: Path = Argument(Path("campaign.yaml"), help="The file to write; one that is there is never overwritten.")
    builtin: bool = Option(
        False, "--builtin", help="The built-in campaign, with all its figures, instead of the template."
    )


def new(options: NewOptions) -> None:
    """Write a campaign file."""
    file = options.file
    demand_possible(file)
    if file.exists() or file.is_symlink():
        raise InputError(f"{file}: is there already, and is not overwritten; choose another name")
    if not file.parent.is_dir():
        raise InputError(f"{file.parent}: no such folder; make it first")
    from leeward.campaign import builtin_campaign
    from leeward.campaign.template import template_text

    write_file(file, builtin_campaign().frozen_text() if options.builtin else template_text())
    print(f"written: {file}")
    print("Next: put your site, areas and turbines in, look at it, then compute all layouts, or a first few, with")
    print(f"  {command('run', file, '--dry-run')}")
    print(f"  {command('run', file)}")
    print(f"  {command('run', file, '--only', 'seed=0')}")
