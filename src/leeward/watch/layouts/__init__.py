"""Layouts as a kind of work: cells of farm × turbine type, best results, drawings and lists."""
