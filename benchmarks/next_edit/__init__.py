"""Next edits: how often they are right, and how often silence is."""
