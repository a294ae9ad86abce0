"""Find the run or file, and the campaign, that a command works on."""

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

PUT_ASIDE = re.compile(r"(.+)-\d{8}T\d{6}Z")  # new name of the old run after `leeward run --new`


def campaign_words(campaign: str | None) -> list[str]:
    """Return the --campaign option for a command to copy."""
    return ["--campaign", campaign] if campaign else []


def adopt_words(sources: Sequence[Path]) -> list[object]:
    """Return the --adopt options for a command to copy."""
    return [word for source in sources for word in ("--adopt", source)]


def given_place(path: Path | None) -> Path:
    """Return the path, or the only run in the current folder.

    Without a path: the only run directory, or a layouts.h5 without one; else the only other .h5 file. A run that
    `leeward run --new` has renamed does not count.
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
        what = "runs" if runs else "result files"
        raise InputError(f"the current folder has {len(found)} {what}; name one of {listed(found, 10)}")
    raise InputError("the current folder has no run directory (layouts.run) and no result file (layouts.h5); name one")


class Names:
    """Converts numbers or names of farms and types, as the user wrote them, to indices.

    The names are those of the given campaign, else of the campaign of the place, which is read only if needed.
    """

    def __init__(self, campaign: str | None, place: Path | None) -> None:
        places = [] if place is None else [place]
        self._known = functools.cache(lambda: demanded_campaign(campaign, places, "a name"))

    def farms(self, texts: Sequence[str] | None) -> list[int]:
        """Return the farm_idx for each text."""
        from leeward.campaign.selection import farm_of, word_of

        return [farm_of(word_of(text), self._known) for text in texts or ()]

    def types(self, texts: Sequence[str] | None) -> list[int]:
        """Return the type_idx for each text."""
        from leeward.campaign.selection import type_of, word_of

        return [type_of(word_of(text), self._known) for text in texts or ()]

    def keys(self, texts: Sequence[str] | None) -> "list[Key]":
        """Return the key for each text."""
        from leeward.campaign.selection import key_of

        return [key_of(text, self._known) for text in texts or ()]


def given_campaign(campaign: str | None) -> "Campaign | None":
    """Return the given campaign, if any: of a file, a built-in name, or a run or result file."""
    if campaign is None:
        return None
    path = Path(campaign)
    demand_possible(path)
    if path.suffix in (".run", ".h5") and path.exists():
        return demanded_campaign(None, [path], "--campaign")
    from leeward.campaign import load

    return load(campaign)


def run_campaign(source: Path | None) -> "Campaign":
    """Return the campaign of a file, or the built-in one."""
    from leeward.campaign import builtin_campaign, load

    return builtin_campaign() if source is None else load(str(source))


def demanded_campaign(campaign: str | None, paths: Sequence[Path], why: str) -> "Campaign":
    """Return the given campaign, else the one stored in all these places, or raise InputError. why: what needs it."""
    found, problems = known_campaigns(campaign, paths)
    if problems:
        raise InputError(f"{problems[0]}; {why} needs a campaign: give it with --campaign")
    if not found:
        where = f"{', '.join(map(str, paths[:3]))}: holds no campaign" if paths else "no campaign is known"
        raise InputError(f"{where}, but {why} needs one; give it with --campaign")
    if len(found) > 1:
        raise InputError(f"the sources hold {len(found)} different campaigns, but {why} needs one; give --campaign")
    return found[0]


def known_campaigns(campaign: str | None, paths: Sequence[Path]) -> "tuple[list[Campaign], list[str]]":
    """Return the given campaign, else all that are stored in these places; and a line for each that is unreadable."""
    demand_possible(*paths)
    named = given_campaign(campaign)
    if named is not None:
        return [named], []
    from leeward.watch import campaigns_of

    return campaigns_of(paths)
