"""All operations that faults are tried in, by name; what one is stands in `operation.py`."""

from operation import Act, Operation, copy, run_paths, traced_calls
from reading_operations import READING
from run_operations import RUNS
from store_operations import ATTRIBUTES, STORE

__all__ = ["ATTRIBUTES", "OPERATIONS", "Act", "Operation", "copy", "run_paths", "traced_calls"]

OPERATIONS = {**STORE, **RUNS, **READING}
