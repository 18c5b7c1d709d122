"""Inline completion in the language server, from the editor's request to the items of the answer."""
