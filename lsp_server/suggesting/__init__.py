"""The life of a suggestion in the language server, from the editor's request to the items that it shows."""
