"""Charts as SVG text, without scripts or fonts; the style sheet sets the colours."""
