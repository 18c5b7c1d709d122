"""Measurements: `python -m benchmarks.NAME` prints a table, then one JSON object as its last line."""
