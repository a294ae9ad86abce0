"""Files that nobody trusts are opened by child processes; the parent gets plain data."""
