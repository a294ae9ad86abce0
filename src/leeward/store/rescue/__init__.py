"""Read results from files of other scripts and from damaged files."""
