"""Finds the parts of a prefix that the acceptor can skip: finished items of the enclosing bodies.

After a finished item of a body (a top-level item, method or statement) the parser's stack does not depend on the items:
it is a repetition of items above the body's opener. So the acceptor skips all finished items of a run except the first,
which can have syntax of a body's start, and the last, which the text after them can continue.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node, Tree

_FIRST_KEPT = 2  # items: a repetition needs two, and they include the syntax of a body's start (package clause)
_LAST_KEPT = 2  # items: an `else`, a doc comment or a decorator can belong to the text after them
_MAX_DEPTH = 200  # depth of nodes that are searched
_MIN_BYTES = 200  # length of items that are searched; shorter ones are read whole
_MAX_INDENT_BYTES = 1000  # bytes; an item with more text before it in its line does not start the line
_MAX_CHILDREN = 5000  # children of a node; a node with more is data and is not searched


def skippable_parts(tree: Tree, text: bytes) -> list[tuple[int, int]]:
    """Return the parts of the text before the cursor that the acceptor can skip.

    Args:
        tree: tree-sitter's tree of `text`, or of a document that begins with it; items with errors are ignored.
        text: Text before the cursor.

    Returns:
        Start and end of each part in bytes, ascending; each part is whole lines.
    """
    parts: list[tuple[int, int]] = []
    work: list[tuple[Node, int]] = [(tree.root_node, 0)]
    while work:
        node, depth = work.pop()
        if node.child_count > _MAX_CHILDREN:
            continue
        children = node.children
        runs = [run for run in _runs(children, text) if len(run) > _FIRST_KEPT + _LAST_KEPT]
        skipped = [(run[_FIRST_KEPT], run[-_LAST_KEPT]) for run in runs]
        parts += skipped
        if depth < _MAX_DEPTH:
            work += [(child, depth + 1) for child in children if _is_searched(child, skipped, len(text))]
    return sorted(parts)


def _is_searched(node: Node, skipped: list[tuple[int, int]], end: int) -> bool:
    """Return whether the node's part before `end` is long and not skipped already."""
    start = node.start_byte
    return min(end, node.end_byte) - start > _MIN_BYTES and not any(first <= start < last for first, last in skipped)


def _runs(children: list[Node], text: bytes) -> Iterator[list[int]]:
    """Yield runs of adjacent finished items with equal indentation, each the first of its line, by their line starts.

    Comments between items do not end a run: they leave nothing on the stack.
    """
    run: list[int] = []
    indent = b""
    for child in children:
        if child.end_byte > len(text):
            break
        if child.is_extra and not child.has_error:
            continue
        nearest = max(0, child.start_byte - _MAX_INDENT_BYTES)
        line_start = text.rfind(b"\n", nearest, child.start_byte) + 1 or nearest
        before = text[line_start : child.start_byte]
        sound = child.is_named and not child.has_error and not child.is_missing
        first = not before.strip(b" \t") and len(before) < _MAX_INDENT_BYTES
        if run and not (sound and (before == indent or not first)):
            yield run
            run = []
        if sound and first:
            run.append(line_start)
            indent = before
    yield run
