"""Generation of one suggestion: the decoding loop, its constraints and its costs."""
