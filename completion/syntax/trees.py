"""Parses whole and partial documents with tree-sitter's own parser, by LSP language identifier; walks their trees."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node, Parser, Tree

from completion.syntax.languages import parsed_row, tree_sitter_language


def parse(text: str | bytes, language: str) -> Tree | None:
    """Return the tree of a whole or partial document, with offsets in UTF-8 bytes; None without an installed grammar.

    Args:
        text: The document; bytes are UTF-8.
        language: LSP language identifier.
    """
    row = parsed_row(language)
    if row is None:
        return None
    source = text.encode("utf-8", "replace") if isinstance(text, str) else text
    return Parser(tree_sitter_language(row.package, row.entry)).parse(source)


def ancestors(node: Node | None) -> Iterator[Node]:
    """Yield the node and its ancestors, innermost first; each step takes time linear in the node's depth."""
    while node is not None:
        yield node
        node = node.parent


def errors_of(tree: Tree) -> list[Node]:
    """Return the ERROR and MISSING nodes of a tree.

    A query for them would not find a node that is missing at the start of the text.
    """
    found, waiting = list[Node](), [tree.root_node] if tree.root_node.has_error else []
    while waiting:
        each = waiting.pop()
        found += [each] * (each.is_error or each.is_missing)
        # an ERROR node without children does not itself say that it has an error
        waiting += [child for child in each.children if child.has_error or child.is_error or child.is_missing]
    return found


def error_count(tree: Tree) -> int:
    """Return the number of ERROR and MISSING nodes in a tree."""
    return len(errors_of(tree))
