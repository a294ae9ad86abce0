"""Drawings as SVG text: no script, no font, no colour that a style sheet could not change."""
