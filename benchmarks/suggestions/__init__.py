"""Several suggestions for one question."""
