"""Compute thousands of optimised wind-farm layouts, and never lose one.

`leeward.run` computes a campaign, `leeward.load` reads a campaign file, `leeward.open_layouts` reads its results.
"""

from leeward.lazy import lazy_names

__version__ = "0.1.0"
__all__ = ["__version__", "evaluate", "load", "open_layouts", "open_study", "run"]
__getattr__ = lazy_names(__name__, __file__)
