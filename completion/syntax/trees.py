"""Parses whole and partial documents with tree-sitter's own parser, by LSP language identifier."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node, Parser, Tree

from completion.syntax.languages import LANGUAGES, tree_sitter_language


def parse(text: str, language: str) -> Tree | None:
    """Return the tree of a whole or partial document, with offsets in UTF-8 bytes; None without a grammar."""
    row = LANGUAGES.get(language)
    if row is None:
        return None
    return Parser(tree_sitter_language(row.package, row.entry)).parse(text.encode("utf-8", "replace"))


def ancestors(node: Node | None) -> Iterator[Node]:
    """Yield the node and its ancestors, innermost first; each step takes time linear in the node's depth."""
    while node is not None:
        yield node
        node = node.parent
