"""Which cached keys and values serve a prompt: kept, re-encoded (PIE), or computed."""
