"""An LR parser without error recovery: parse tables, lexers, stacks and steps."""
