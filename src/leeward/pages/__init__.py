"""Pages: functions from plain data to HTML and SVG text, for the dashboard and for the report alike.

Every text goes through `html.tag`, which escapes it; there is no other way into a page.
"""
