"""What an edit costs with each way to reuse a cache."""
