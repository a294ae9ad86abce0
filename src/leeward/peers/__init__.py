"""A wind farm of leeward as a model of PyWake or FLORIS."""

from leeward.lazy import lazy_names

__getattr__ = lazy_names(__name__, __file__)
