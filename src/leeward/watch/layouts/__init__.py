"""Layouts as a kind of work: cells of farm × turbine type, what is best, what is drawn and listed."""
