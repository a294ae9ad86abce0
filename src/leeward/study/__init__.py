"""Studies: layouts evaluated under scenarios, case by case."""

from leeward.lazy import lazy_names

__getattr__ = lazy_names(__name__, __file__)
