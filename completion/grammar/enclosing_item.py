"""Where the acceptor may start: at the enclosing top-level item in place of the file's start.

After a finished top-level item the parser's stack is the same whatever the items were: a repeat of items. So the
finished items before the cursor's may be passed over, all but the first few, which carry what only a file's start has.
"""

from __future__ import annotations

from tree_sitter import Tree

_FIRST_KEPT = 3  # package clause, imports, docstring: a repeat needs two items, the rest is caution
_LAST_KEPT = 2  # an `else`, a doc comment, a decorator may belong to what follows


def finished_items(tree: Tree, text: bytes) -> list[int]:
    """Offsets of the top-level items that begin a line, up to the first that is not sound.

    Args:
        tree: tree-sitter's tree of the text before the cursor.
        text: That text.
    """
    starts: list[int] = []
    for child in tree.root_node.children:
        if child.has_error or child.is_missing or not child.is_named:
            break
        if child.start_byte == 0 or text[child.start_byte - 1 : child.start_byte] == b"\n":
            starts.append(child.start_byte)
    return starts


def passed_over(tree: Tree, text: bytes) -> tuple[int, int]:
    """The part (start, end) of the text before the cursor that the acceptor need not read; empty if start is end."""
    starts = finished_items(tree, text)
    if len(starts) <= _FIRST_KEPT + _LAST_KEPT:
        return 0, 0
    return starts[_FIRST_KEPT], starts[-_LAST_KEPT]
