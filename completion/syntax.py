"""Tree-sitter parsers by LSP language identifier, each grammar imported when its language first appears."""

from __future__ import annotations

import importlib
from functools import cache

from tree_sitter import Language, Node, Parser, Tree

_GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "javascriptreact": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "typescriptreact": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "json": ("tree_sitter_json", "language"),
    "jsonc": ("tree_sitter_json", "language"),
}


@cache
def grammar(language: str) -> Language | None:
    """The language's tree-sitter grammar, None for a language without one."""
    if language not in _GRAMMARS:
        return None
    module, function = _GRAMMARS[language]
    return Language(getattr(importlib.import_module(module), function)())


def parse(text: str, language: str) -> Tree | None:
    """Parse a whole or partial document; None for a language without a grammar. Offsets are UTF-8 bytes."""
    found = grammar(language)
    return None if found is None else Parser(found).parse(text.encode("utf-8", "replace"))


def ancestors(node: Node | None) -> list[Node]:
    """The node and everything around it, innermost first."""
    chain = []
    while node is not None:
        chain.append(node)
        node = node.parent
    return chain
