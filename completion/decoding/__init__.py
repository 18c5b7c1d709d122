"""One suggestion: the decoding loop, what binds it, and what it costs."""
