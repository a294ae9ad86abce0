"""Results of other scripts and of damaged files."""
