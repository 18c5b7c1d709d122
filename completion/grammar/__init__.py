"""Grammar-constrained decoding with the parse tables of the installed tree-sitter grammars."""
