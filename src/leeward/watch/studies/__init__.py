"""Studies: targets × scenarios."""
