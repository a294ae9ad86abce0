"""Find the run or file, and the campaign, that a command works on."""

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leeward import store, watch
from leeward.errors import InputError
from leeward.wording import listed

if TYPE_CHECKING:
    from leeward.campaign import Campaign

PUT_ASIDE = re.compile(r"(.+)-\d{8}T\d{6}Z")  # name that `leeward run --new` gives to the old run


def campaign_words(campaign: str | None) -> list[str]:
    """Return the --campaign option for a command to copy."""
    return ["--campaign", campaign] if campaign else []


def adopt_words(sources: Sequence[Path]) -> list[object]:
    """Return the --adopt options for a command to copy."""
    return [word for source in sources for word in ("--adopt", source)]


def given_place(path: Path | None) -> Path:
    """Return the path, or the only run in the current folder.

    A layouts.h5 without a run directory counts as a run; any other .h5 file only if there is no run. A run that
    `leeward run --new` has renamed does not count.
    """
    if path is not None:
        return path
    files = sorted(found for found in Path().glob("*.h5") if found.is_file())
    runs = sorted(found for found in Path().glob("*.run") if store.is_run(found) or found.name == "layouts.run")
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
    """Converts numbers or names of farms and types, as the user gives them, to indices.

    The names come from the given campaign, else from the campaign stored in the place, which is read only if needed.
    """

    def __init__(self, campaign: str | None, place: Path | None) -> None:
        from leeward.campaign import selection

        self._names = selection
        places = [] if place is None else [place]
        self._known = functools.cache(lambda: demanded_campaign(campaign, places, "a name"))

    def farms(self, texts: Sequence[str] | None) -> list[int]:
        """Return the farm_idx for each text."""
        return [self._names.farm_of(self._names.word_of(text), self._known) for text in texts or ()]

    def types(self, texts: Sequence[str] | None) -> list[int]:
        """Return the type_idx for each text."""
        return [self._names.type_of(self._names.word_of(text), self._known) for text in texts or ()]

    def keys(self, texts: Sequence[str] | None) -> "list[store.Key]":
        """Return the key for each text."""
        return [self._names.key_of(text, self._known) for text in texts or ()]


def given_campaign(campaign: str | None) -> "Campaign | None":
    """Return the campaign of a file, a built-in name, a run directory or a result file; None for None."""
    if campaign is None:
        return None
    path = Path(campaign)
    store.demand_possible(path)
    if path.suffix in (".run", ".h5") and path.exists():
        return demanded_campaign(None, [path], "--campaign")
    from leeward.campaign import load

    return load(campaign)


def run_campaign(source: Path | None) -> "Campaign":
    """Return the campaign of a file, or the built-in one."""
    from leeward.campaign import builtin_campaign, load

    return builtin_campaign() if source is None else load(str(source))


def demanded_campaign(campaign: str | None, paths: Sequence[Path], why: str) -> "Campaign":
    """Return the given campaign, else the only one stored in these places. why: its use, named in the error."""
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
    """Return the given campaign, else all that are stored in these places; and a line for each unreadable one."""
    store.demand_possible(*paths)
    named = given_campaign(campaign)
    if named is not None:
        return [named], []
    return watch.campaigns_of(paths)
