"""The dashboard: a local, read-only web server on a run directory or a file of results."""

from leeward.web.access import Access
from leeward.web.server import Dashboard

__all__ = ["Access", "Dashboard"]
