"""Cost of an edit with each way to reuse a cache."""
