"""HTML and SVG from plain data, for dashboard and report. `html.tag` escapes all text."""
