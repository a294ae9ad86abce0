"""Read files: YAML, tables, and the turbines, wind, areas and plants of other programs, as data of a campaign file."""
