"""Where results are kept: files that are whole or not there, readers that trust none of them, merging, checking."""
