"""Results on disk: their format, isolated reading, the run directory, check, merge and rescue.

Everything outside this package imports from here. `__init__.pyi` lists the names; a name is imported when it is first
used, so that `leeward status` works without h5py.
"""

from leeward.lazy import lazy_names

__getattr__ = lazy_names(__name__, __file__)
