"""Trees of whole and partial documents by LSP language identifier, from tree-sitter's own parser."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node, Parser, Tree

from completion.syntax.languages import LANGUAGES, tree_sitter_language


def parse(text: str, language: str) -> Tree | None:
    """Parse a whole or partial document; None for a language without a grammar. Offsets are UTF-8 bytes."""
    row = LANGUAGES.get(language)
    if row is None:
        return None
    return Parser(tree_sitter_language(row.package, row.entry)).parse(text.encode("utf-8", "replace"))


def ancestors(node: Node | None) -> Iterator[Node]:
    """The node and everything around it, innermost first; each step costs as much as the node is deep."""
    while node is not None:
        yield node
        node = node.parent
