"""What the names that the editor's own language server knows are worth."""
