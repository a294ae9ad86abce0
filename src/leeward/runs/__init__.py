"""One run: prepare, resume, schedule, merge."""
