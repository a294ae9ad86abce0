"""`leeward new`: write a campaign file to start from."""

from pathlib import Path

from typer import Argument, Option

from leeward.cli.options import Options
from leeward.cli.output import write_file
from leeward.errors import InputError
from leeward.store import demand_possible
from leeward.wording import command


class NewOptions(Options):
    """Write a commented campaign file to start from.

    Exit codes: 0 written; 2 the file exists, or its folder does not; 4 the file cannot be written.
    """

    file: Path = Argument(Path("campaign.yaml"), help="File to write. An existing file is never overwritten.")
    builtin: bool = Option(
        False, "--builtin", help="Write the built-in campaign with all its values instead of the template."
    )


def new(options: NewOptions) -> None:
    """Write a campaign file."""
    file = options.file
    demand_possible(file)
    if file.exists() or file.is_symlink():
        raise InputError(f"{file}: the file exists and is never overwritten; choose another name")
    if not file.parent.is_dir():
        raise InputError(f"{file.parent}: no such folder; create it first")
    from leeward.campaign import builtin_campaign
    from leeward.campaign.template import template_text

    write_file(file, builtin_campaign().frozen_text() if options.builtin else template_text())
    print(f"written: {file}")
    print("Next: enter your site, areas and turbines; preview the campaign; compute all layouts, or only a few:")
    print(f"  {command('run', file, '--dry-run')}")
    print(f"  {command('run', file)}")
    print(f"  {command('run', file, '--only', 'seed=0')}")
