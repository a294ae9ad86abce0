"""The compiled part of the wake engine."""
