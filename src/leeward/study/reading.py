"""Open the results of a study."""

import os
import warnings
from pathlib import Path

from leeward.errors import InputError
from leeward.store import Evaluations
from leeward.study.study import Study


def open_study(path: str | os.PathLike[str]) -> Evaluations:
    """Open the results in a `study.h5` or a run directory.

    Every result is checked. Damaged ones are left out and listed in `bad`, with a warning.
    """
    return Evaluations(Path(path), study_of=study_of)


def study_of(text: str) -> Study | None:
    """Return the study of a text. If it cannot be read, warn and return None."""
    try:
        return Study.from_text(text, "the study of the results")
    except InputError as error:
        warnings.warn(f"the inputs and dates of the study are unknown: {error}", stacklevel=2)
        return None
