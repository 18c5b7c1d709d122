"""Reuse of cached keys and values for a prompt: kept, re-encoded (PIE), or computed."""
