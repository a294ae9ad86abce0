"""Thousands of optimised wind-farm layouts, and never one lost.

`leeward.run` computes a campaign, `leeward.load` reads a campaign file, `leeward.open_layouts` reads what was computed.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "load", "open_layouts", "run"]

if TYPE_CHECKING:
    from leeward.campaign import load as load
    from leeward.campaign.layouts import open_layouts as open_layouts
    from leeward.engine.run import run as run

_HOMES = {"load": "leeward.campaign", "run": "leeward.engine.run", "open_layouts": "leeward.campaign.layouts"}


def __getattr__(name: str) -> Any:
    """Imported when first used: `import leeward` alone is quick."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
