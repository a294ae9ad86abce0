"""The run directory: lock, records, audit log, index, results, quarantine."""
