"""Grammar-constrained decoding: false rejections, caught faults, cost."""
