"""Where turbines may stand, and how they are placed."""

from leeward.layout.area import Area

__all__ = ["Area"]
