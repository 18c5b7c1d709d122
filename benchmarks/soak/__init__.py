"""A working week of an editor, compressed: `python -m benchmarks.soak`."""
