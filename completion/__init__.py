"""What turns prefix, suffix and workspace into suggestions: the model, its cache, the grammar, the filters."""
