"""Grammar-constrained decoding: what it rejects, catches and costs."""
