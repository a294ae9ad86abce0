"""Which place and which campaign a command is about."""

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.errors import InputError
from leeward.store import demand_possible, is_run
from leeward.wording import listed

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.store import Key

PUT_ASIDE = re.compile(r"(.+)-\d{8}T\d{6}Z")  # what `leeward run --new` calls the old run


def campaign_words(campaign: str | None) -> list[str]:
    """Return the option that names the campaign, for a command to copy."""
    return ["--campaign", campaign] if campaign else []


def adopt_words(sources: Sequence[Path]) -> list[object]:
    """Return the options of `leeward run` that bring in results, for a command to copy."""
    return [word for source in sources for word in ("--adopt", source)]


def given_place(path: Path | None) -> Path:
    """Return the path, or the only run in the current folder.

    Without a path: the only run directory, or the layouts.h5 that has none beside it; else the only other .h5 file. A
    run that `leeward run --new` has put aside does not count.
    """
    if path is not None:
        return path
    files = sorted(found for found in Path().glob("*.h5") if found.is_file())
    runs = sorted(found for found in Path().glob("*.run") if is_run(found) or found.name == "layouts.run")
    names = {run.stem for run in runs}
    runs = [run for run in runs if not ((aside := PUT_ASIDE.fullmatch(run.stem)) and aside[1] in names)]
    alone = [file for file in files if file.with_suffix(".run") not in runs]
    found = [*runs, *(file for file in alone if file.name == "layouts.h5")] or alone
    if len(found) == 1:
        return found[0]
    if found:
        what = "runs" if runs else "files of results"
        raise InputError(f"{len(found)} {what} in the current folder; name one of {listed(found, 10)}")
    raise InputError(
        "no run directory (layouts.run) and no file of results (layouts.h5) in the current folder; name one"
    )


class Names:
    """The numbers of farms and types that a person wrote, as numbers or as names of a campaign.

    The campaign is the one that was named, else that of the place; it is read only where a name occurs.
    """

    def __init__(self, campaign: str | None, place: Path | None) -> None:
        places = [] if place is None else [place]
        self._known = functools.cache(lambda: demanded_campaign(campaign, places, "a name"))

    def farms(self, texts: Sequence[str] | None) -> list[int]:
        """Return the farm_idx of each."""
        from leeward.campaign.names import farm_of, word_of

        return [farm_of(word_of(text), self._known) for text in texts or ()]

    def types(self, texts: Sequence[str] | None) -> list[int]:
        """Return the type_idx of each."""
        from leeward.campaign.names import type_of, word_of

        return [type_of(word_of(text), self._known) for text in texts or ()]

    def keys(self, texts: Sequence[str] | None) -> "list[Key]":
        """Return the key that each text stands for."""
        from leeward.campaign.names import key_of

        return [key_of(text, self._known) for text in texts or ()]


def given_campaign(campaign: str | None) -> "Campaign | None":
    """Return the campaign that was named, if any: a file, a built-in one, or that of a run or a file of results."""
    if campaign is None:
        return None
    path = Path(campaign)
    demand_possible(path)
    if path.suffix in (".run", ".h5") and path.exists():
        return demanded_campaign(None, [path], "--campaign")
    from leeward.campaign import load

    return load(campaign)


def run_campaign(source: Path | None) -> "Campaign":
    """Return the campaign to run: that of a file, or the built-in one."""
    from leeward.campaign import builtin_campaign, load

    return builtin_campaign() if source is None else load(str(source))


def demanded_campaign(campaign: str | None, paths: Sequence[Path], why: str) -> "Campaign":
    """The campaign that was named, else the one that all of these places tell of."""
    found, problems = told_campaigns(campaign, paths)
    if problems:
        raise InputError(f"{problems[0]}; {why} needs a campaign: name it with --campaign")
    if not found:
        where = f"{', '.join(map(str, paths[:3]))}: no campaign in it" if paths else "no campaign is known"
        raise InputError(f"{where}, and {why} needs one; name it with --campaign")
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
