"""The report: one file that shows a campaign to whoever gets it by mail, with nothing else needed."""

from leeward.report.document import report_html

__all__ = ["report_html"]
