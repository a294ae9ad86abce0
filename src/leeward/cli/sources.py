"""Find the run or file, and the campaign, that a command works on."""

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward import store, watch
from leeward.errors import InputError
from leeward.files import read_regular
from leeward.wording import listed

if TYPE_CHECKING:
    from leeward.campaign import Campaign

STUDY = re.compile(rb"^(?:kind:[ \t]*evaluations|targets:|scenarios:)", re.MULTILINE)  # a key of no campaign file
_TWO_NUMBERS = re.compile(r"\s*(\d{1,9})\s*[, ]\s*(\d{1,9})\s*", re.ASCII)
PUT_ASIDE = re.compile(r"(.+)-\d{8}T\d{6}Z")  # name that `leeward run --new` gives to the old run


def campaign_words(campaign: str | None) -> list[str]:
    """Return the --campaign option for a command to copy."""
    return ["--campaign", campaign] if campaign else []


def adopt_words(sources: Sequence[Path]) -> list[object]:
    """Return the --adopt options for a command to copy."""
    return [word for source in sources for word in ("--adopt", source)]


def kind_of_sources(paths: Sequence[Path]) -> str:
    """Return the kind of results of several sources: "evaluations" if one of them holds evaluations."""
    return next((kind for path in paths if (kind := watch.kind_of(path)) != "layouts"), "layouts")


def given_place(path: Path | None, kind: str | None = None) -> Path:
    """Return the path, or the only run in the current folder. kind: only runs of this kind count.

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
    if kind is not None:
        runs, alone = ([each for each in some if watch.kind_of(each) == kind] for some in (runs, alone))
    found = [*runs, *(file for file in alone if file.name == "layouts.h5")] or alone
    if len(found) == 1:
        return found[0]
    if found:
        what = "runs" if len(runs) == len(found) else "runs and result files" if runs else "result files"
        raise InputError(f"the current folder has {len(found)} {what}; name one of {listed(found, 10)}")
    name = "study" if kind == "evaluations" else "layouts"
    raise InputError(f"the current folder has no run directory ({name}.run) and no result file ({name}.h5); name one")


def evaluation_key(text: str) -> "store.EvaluationKey":
    """Return the key that a text names: target0_scenario3, "0 3" or 0,3."""
    numbers = _TWO_NUMBERS.fullmatch(text)
    if numbers is not None:
        return store.EvaluationKey(int(numbers[1]), int(numbers[2]))
    try:
        return store.EvaluationKey.parse(text)
    except InputError as error:
        raise InputError(f'{error}, 0,3 or "0 3" (target, scenario)') from error


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


def given_work(campaign: str | None, paths: Sequence[Path] = ()) -> Any:
    """Return the campaign or study of a file, a built-in name, a run directory or a result file; None for None.

    paths: results that it must be of the same kind as.
    """
    if campaign is None:
        return None
    work = _work_of(campaign)
    kind = kind_of_sources(paths)
    if paths and (kind == "evaluations") != hasattr(work, "scenarios"):
        given, expected = ("a study", "the campaign") if kind == "layouts" else ("a campaign", "the study")
        raise InputError(f"--campaign {campaign} is {given}, but {paths[0]} holds {kind}; give {expected} instead")
    return work


def _work_of(campaign: str) -> Any:
    path = Path(campaign)
    store.demand_possible(path)
    if path.suffix in (".run", ".h5") and path.exists():
        return demanded_work(None, [path], "--campaign")
    if path.is_file() and STUDY.search(read_regular(path.resolve())):
        from leeward.study import load_study

        return load_study(path)
    from leeward.campaign import load

    return load(campaign)


def given_campaign(campaign: str | None) -> "Campaign | None":
    """Return the campaign of a file, a built-in name, a run directory or a result file; None for None."""
    return None if campaign is None else _not_a_study(given_work(campaign))


def run_campaign(source: Path | None) -> "Campaign":
    """Return the campaign of a file, or the built-in one."""
    from leeward.campaign import builtin_campaign, load

    return builtin_campaign() if source is None else load(str(source))


def demanded_campaign(campaign: str | None, paths: Sequence[Path], why: str) -> "Campaign":
    """Return the given campaign, else the only one stored in these places. why: its use, named in the error."""
    return _not_a_study(demanded_work(campaign, paths, why))


def _not_a_study(work: Any) -> "Campaign":
    """Return the campaign, or raise InputError for a study."""
    from leeward.campaign import Campaign

    if not isinstance(work, Campaign):
        raise InputError(f"{work.name} is a study; this command needs a campaign of layouts")
    return work


def demanded_work(campaign: str | None, paths: Sequence[Path], why: str) -> Any:
    """Return the given campaign or study, else the only one in these places. why: its use, named in the error."""
    found, problems = known_works(campaign, paths)
    if problems:
        raise InputError(f"{problems[0]}; {why} needs a campaign: give it with --campaign")
    if not found:
        where = f"{', '.join(map(str, paths[:3]))}: holds no campaign" if paths else "no campaign is known"
        raise InputError(f"{where}, but {why} needs one; give it with --campaign")
    if len(found) > 1:
        raise InputError(f"the sources hold {len(found)} different campaigns, but {why} needs one; give --campaign")
    return found[0]


def known_works(campaign: str | None, paths: Sequence[Path]) -> tuple[list[Any], list[str]]:
    """Return the given campaign or study, else all in these places; and a line for each unreadable one."""
    store.demand_possible(*paths)
    named = given_work(campaign, paths)
    if named is not None:
        return [named], []
    return watch.campaigns_of(paths)


def known_campaigns(campaign: str | None, paths: Sequence[Path]) -> "tuple[list[Campaign], list[str]]":
    """Return the given campaign, else all in these places, without studies; and a line for each unreadable one."""
    from leeward.campaign import Campaign

    found, problems = known_works(campaign, paths)
    return [work for work in found if isinstance(work, Campaign)], problems
