"""Several suggestions for one request."""
