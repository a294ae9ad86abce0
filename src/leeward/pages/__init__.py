"""HTML and SVG from plain data, for dashboard and report. All text goes through `html.tag`, which escapes it."""
