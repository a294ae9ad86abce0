"""Check, merge, pack and remove: nothing goes before its results were verified elsewhere."""
