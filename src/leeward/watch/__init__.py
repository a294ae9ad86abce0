"""What a run directory, or a file of results, looks like now: plain data for the command line and for pages.

Nothing here writes, locks or verifies: files are counted, and the caches are believed. `leeward check` verifies.
Everything outside this package imports from here. `__init__.pyi` lists the names; a name is imported when it is first
used, so that `leeward status` starts quickly. What is about layouts is in `layouts`, the other modules serve every kind
of work; `kinds.KINDS` lists the kinds.
"""

from leeward.lazy import lazy_names

__getattr__ = lazy_names(__name__, __file__)
