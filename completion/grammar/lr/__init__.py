"""The LR parser: parse tables, lexers, stacks and steps that never recover from an error."""
