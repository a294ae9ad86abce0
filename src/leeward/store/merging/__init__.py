"""Check, merge, pack and remove. Nothing is removed before its results are verified elsewhere."""
