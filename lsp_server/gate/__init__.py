"""When to show a suggestion: the features, the trained gate, and how it adapts to its user."""
