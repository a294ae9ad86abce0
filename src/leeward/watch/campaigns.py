"""Which campaign the results at some place belong to."""

from collections.abc import Collection, Iterator
from pathlib import Path

from leeward.campaign import Campaign
from leeward.errors import InputError, StorageError
from leeward.store.paths import RunPaths


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
            return Campaign.from_text(run.campaign.read_text(encoding="utf-8"), str(run.campaign))
        except FileNotFoundError:
            pass  # it has just begun; or it is gone, and the output still knows
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError(f"{run.campaign}: cannot be read ({error})") from error
        path = run.output
    if not path.is_file():
        return None
    text = campaign_text(path)
    return Campaign.from_text(text, f"the campaign in {path}") if text else None


def campaigns_of(paths: Collection[Path]) -> list[Campaign]:
    """The different campaigns that run directories and files tell of; what lies in other folders is not looked at."""
    runs = [run for path in paths if (run := run_of(path)) is not None and run.campaign.is_file()]
    files = [path for path in paths if path.is_file() and run_of(path) is None]
    found = {str(run.campaign): run.campaign.read_text(encoding="utf-8") for run in runs}
    found |= {f"the campaign in {path}": text for path, text in _texts(files) if text}
    named = {text: where for where, text in found.items()}
    return [Campaign.from_text(text, where) for text, where in named.items()]


def campaign_text(path: Path) -> str:
    """What a file of results says its campaign is; "" if nothing."""
    return "".join(text for _, text in _texts([path]))


def _texts(paths: Collection[Path]) -> Iterator[tuple[Path, str]]:
    """What each of these files says its campaign is. They are opened by another process."""
    from leeward.store.found import FoundFile
    from leeward.store.reader import read_files

    for found in read_files(paths, keys={path: [] for path in paths}) if paths else ():
        if isinstance(found, FoundFile):
            yield found.path, str(found.attributes.get("campaign", ""))


def demand_place(path: Path) -> None:
    """An InputError that says what was looked for, unless something is there."""
    if not path.exists() and run_of(path) is None:
        raise InputError(f"{path}: no such file or folder; expected a run directory (layouts.run) or a layouts.h5")
