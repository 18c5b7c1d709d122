"""The end of a suggestion: stop rules, early stop, and the choice between a line and a block."""
