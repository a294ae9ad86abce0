"""The report: a campaign as one self-contained HTML file, for example to send by mail."""

from leeward.report.document import report_html

__all__ = ["report_html"]
