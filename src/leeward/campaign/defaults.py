"""The user's defaults for the execution of all campaigns."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from leeward.campaign.campaign import Campaign
from leeward.campaign.document import Document
from leeward.campaign.execution import Execution, nothing_as_keys
from leeward.campaign.validation import Strict, validated

VARIABLE = "LEEWARD_DEFAULTS"  # environment variable: path of another file


class _Defaults(Strict):
    execution: Annotated[Execution, BeforeValidator(nothing_as_keys)] = Execution()


def defaults_path() -> Path:
    """Return the path of the file of defaults, which may not exist."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "leeward" / "defaults.yaml"


def with_user_defaults(campaign: Campaign) -> Campaign:
    """Return the campaign with the user's defaults for settings that it does not have."""
    path = defaults_path()
    if not (path.exists() or os.environ.get(VARIABLE)):
        return campaign
    document = Document.from_file(path, "the user's defaults")
    if document.data is None:  # everything is commented out
        return campaign
    execution = validated(_Defaults, document).execution
    return campaign.with_defaults(execution.model_dump(exclude_unset=True), str(path))
