"""`leeward new`: a campaign file to start from."""

from pathlib import Path
from typing import Annotated

import typer

from leeward.errors import InputError, write_error
from leeward.files import replace_file
from leeward.store import demand_possible
from leeward.wording import command


def new(
    file: Annotated[Path, typer.Argument(help="The file to write; one that is there is never overwritten.")] = Path(
        "campaign.yaml"
    ),
    builtin: Annotated[
        bool, typer.Option("--builtin", help="The built-in campaign, with all its figures, instead of the template.")
    ] = False,
) -> None:
    """Write a commented campaign file to start from.

    Exit codes: 0 written; 2 the file is there already, or its folder is not; 4 it cannot be written.
    """
    demand_possible(file)
    if file.exists() or file.is_symlink():
        raise InputError(f"{file}: is there already, and is not overwritten; choose another name")
    if not file.parent.is_dir():
        raise InputError(f"{file.parent}: no such folder; make it first")
    try:
        replace_file(file, _text(builtin).encode())
    except OSError as error:
        raise write_error(file, error) from error
    print(f"written: {file}")
    print("Next: put your site, areas and turbines in, look at it, then compute all layouts, or a first few, with")
    print(f"  {command('run', file, '--dry-run')}")
    print(f"  {command('run', file)}")
    print(f"  {command('run', file, '--only', 'seed=0')}")


def _text(builtin: bool) -> str:
    if builtin:
        from leeward.campaign import builtin_campaign

        return builtin_campaign().frozen_text()
    from leeward.campaign.template import template_text

    return template_text()
