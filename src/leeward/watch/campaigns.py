"""Which campaign the results at some place belong to."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.campaign import Campaign
from leeward.campaign.campaign import MOST_TASKS
from leeward.errors import BadSourceError, InputError, StorageError
from leeward.files import NotAFileError, read_regular
from leeward.store import LONGEST_CAMPAIGN, RunPaths, demand_possible

if TYPE_CHECKING:
    from leeward.store import Value


def paths_of(path: Path) -> RunPaths | None:
    """Of a run directory, or of a file that may have one beside it; None for anything else."""
    if not path.suffix and path.is_dir():
        path = path.resolve()  # it may be the current folder
    return RunPaths.of(path) if path.suffix in (".run", ".h5") else None


def run_of(path: Path) -> RunPaths | None:
    """The run that a run directory, or the file beside one, belongs to; None where there is no run directory."""
    paths = paths_of(path)
    return paths if paths is not None and paths.root.is_dir() else None


def campaign_of(path: Path) -> Campaign | None:
    """The campaign of a run directory or of a file of results; None if it tells none."""
    run = run_of(path)
    if run is not None:
        try:
            text = read_regular(run.campaign, LONGEST_CAMPAIGN).decode()
            return _campaign(text, str(run.campaign))
        except FileNotFoundError:
            pass  # it has just begun; or it is gone, and the output still knows
        except NotAFileError as error:
            raise BadSourceError(f"{run.campaign}: {error.strerror}, the campaign of the run") from error
        except UnicodeDecodeError as error:
            raise BadSourceError(f"{run.campaign}: is damaged, it is no text ({error})") from error
        except OSError as error:
            raise StorageError(f"{run.campaign}: cannot be read ({error})") from error
        path = run.output
    if not path.is_file():
        return None
    text = campaign_text(path)
    return _campaign(text, f"the campaign in {path}") if text else None


@lru_cache(maxsize=2)
def _campaign(text: str, where: str) -> Campaign:
    """What a page looks at again and again is taken apart once; a campaign never changes."""
    return Campaign.from_text(text, where)


def campaigns_of(paths: Collection[Path]) -> tuple[list[Campaign], list[str]]:
    """The different campaigns that run directories and files tell of, and what is wrong with those that tell none.

    What lies in other folders is not looked at. How a campaign is run makes it no other one, and campaigns that differ
    in nothing but their seeds are one, with the seeds of all.
    """
    runs = [path for path in paths if (run := run_of(path)) is not None and os.path.lexists(run.campaign)]
    files = [path for path in paths if path.is_file() and run_of(path) is None]
    texts = {text: f"the campaign in {path}" for path, text in _texts(files) if text}
    ways: list[Callable[[], Campaign | None]] = [partial(campaign_of, path) for path in runs]
    ways += [partial(Campaign.from_text, text, where) for text, where in texts.items()]
    found: dict[str, Campaign] = {}
    problems = []
    for way in ways:
        try:
            campaign = way()
        except (InputError, BadSourceError) as error:
            problems.append(str(error))
            continue
        if campaign is not None:
            found.setdefault(campaign.study_text(), campaign)
    return united(list(found.values())), problems


def united(campaigns: list[Campaign]) -> list[Campaign]:
    """One, with the seeds of all, if they differ in nothing else; else as they are."""
    if len(campaigns) < 2 or sum(len(campaign.seeds) for campaign in campaigns) > MOST_TASKS:
        return campaigns
    all_seeds = sorted({seed for campaign in campaigns for seed in campaign.seeds})
    is_range = all_seeds == list(range(all_seeds[0], all_seeds[-1] + 1))
    seeds = f"{all_seeds[0]}:{all_seeds[-1] + 1}" if is_range else all_seeds
    joined = [campaign.with_overrides(seeds=seeds) for campaign in campaigns]
    return joined[:1] if len({campaign.study_text() for campaign in joined}) == 1 else campaigns


def campaign_text(path: Path) -> str:
    """What a file of results says its campaign is; "" if nothing."""
    return "".join(text for _, text in _texts([path]))


def _texts(paths: Collection[Path]) -> Iterator[tuple[Path, str]]:
    """Return the campaign text that each of these files carries."""
    for path, attributes in file_attributes(paths):
        yield path, str(attributes.get("campaign", ""))


def file_attributes(paths: Collection[Path]) -> Iterator[tuple[Path, Mapping[str, "Value"]]]:
    """Return the attributes of each of these files, which are opened by another process."""
    from leeward.store import FoundFile, read_files

    for found in read_files(paths, keys={path: [] for path in paths}) if paths else ():
        if isinstance(found, FoundFile):
            yield found.path, found.attributes


def demand_place(path: Path) -> None:
    """An InputError that says what was looked for, unless something is there."""
    demand_possible(path)
    if not path.exists() and run_of(path) is None:
        raise InputError(f"{path}: no such file or folder; expected a run directory (layouts.run) or a layouts.h5")
