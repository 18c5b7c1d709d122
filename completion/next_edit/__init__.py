"""The next edit: what the last edits imply for other lines, how likely the model finds it, and whether to show it."""
