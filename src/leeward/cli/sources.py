"""Which place and which campaign a command is about."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.errors import InputError
from leeward.store.sources import demand_possible

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.store.keys import Key

CampaignFile = Annotated[
    str | None,
    typer.Option(
        "--campaign", metavar="FILE", help="Campaign file, or a built-in campaign's name. Default: what PATH tells."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, and only what matters of the rest.")]


def given_place(path: Path | None) -> Path:
    """The path, or what lies in the current folder."""
    if path is not None:
        return path
    for name in ("layouts.run", "layouts.h5"):
        if Path(name).exists():
            return Path(name)
    others = sorted(str(found) for ending in ("*.run", "*.h5") for found in Path().glob(ending))
    hint = f"; there are {', '.join(others[:5])}" if others else ""
    raise InputError(f"neither layouts.run nor layouts.h5 is in the current folder; name a run directory or file{hint}")


def given_key(text: str) -> "Key":
    """The key of a result as a person writes it: farm0_t5_s3, "0 5 3" or 0,5,3."""
    from leeward.store.keys import Key

    numbers = re.fullmatch(r"\s*(\d{1,9})[\s,]+(\d{1,9})[\s,]+(\d{1,10})\s*", text, re.ASCII)
    return Key.parse(text.strip()) if numbers is None else Key(*map(int, numbers.groups()))


def given_campaign(campaign: str | None) -> "Campaign | None":
    """The campaign that was named, if any."""
    if campaign is None:
        return None
    demand_possible(Path(campaign))
    from leeward.campaign import load

    return load(campaign)


def demanded_campaign(campaign: str | None, paths: Sequence[Path], why: str) -> "Campaign":
    """The campaign that was named, else the one that all of these places tell of."""
    found, problems = told_campaigns(campaign, paths)
    if problems:
        raise InputError(f"{problems[0]}; {why} needs a campaign: name it with --campaign")
    if not found:
        raise InputError(
            f"{', '.join(map(str, paths[:3]))}: no campaign in it, and {why} needs one; name it with --campaign"
        )
    if len(found) > 1:
        raise InputError(f"these are of {len(found)} different campaigns, and {why} needs one; name it with --campaign")
    return found[0]


def told_campaigns(campaign: str | None, paths: Sequence[Path]) -> "tuple[list[Campaign], list[str]]":
    """The campaign that was named, else all that these places tell of; and which of them cannot be read, and why."""
    demand_possible(*paths)
    named = given_campaign(campaign)
    if named is not None:
        return [named], []
    from leeward.watch import campaigns_of

    return campaigns_of(paths)
