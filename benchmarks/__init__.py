"""Measurements. `python -m benchmarks.NAME` prints tables, then one JSON object as its last line."""
