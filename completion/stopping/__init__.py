"""Where a suggestion ends: stop rules, early stop, and the choice between a line and a block."""
