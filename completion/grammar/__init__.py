"""Grammar-constrained decoding over the parse tables of the installed tree-sitter grammars."""
