"""The state of a run directory or a file of results, as plain data for the command line and for pages.

Nothing here writes, locks or verifies: files are counted and caches are trusted. `leeward check` verifies.
`__init__.pyi` lists the public names; each is imported when first used, so that `leeward status` starts quickly.
`layouts` is about layouts; the other modules serve every kind of work in `kinds.KINDS`.
"""

from leeward.lazy import lazy_names

__getattr__ = lazy_names(__name__, __file__)
