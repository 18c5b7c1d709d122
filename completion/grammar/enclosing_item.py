"""Where the acceptor may start: at the enclosing items in place of the file's start.

After a finished item of a body (top-level items, methods, statements) the parser's stack is the same whatever the items
were: a repeat of items on what the body opened. So runs of finished items are passed over, all but their first few,
which carry what only a body's start may have, and their last, which what follows may still continue.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node, Tree

_FIRST_KEPT = 2  # a repeat needs two items; what only a body's start may have (package clause, docstring) is among them
_LAST_KEPT = 2  # an `else`, a doc comment, a decorator may belong to what follows
_MAX_DEPTH = 200
_LONG_BYTES = 200  # a shorter item is read whole
_LONGEST_INDENT = 1000  # bytes; what stands further right in its line is not its line's first
_MAX_CHILDREN = 5000  # a longer list is data, and is not looked through


def passed_over(tree: Tree, text: bytes) -> list[tuple[int, int]]:
    """The parts (start, end) of the text before the cursor that the acceptor need not read; each is whole lines.

    Args:
        tree: tree-sitter's tree of `text`, or of a document that begins with it; of its recovery from errors only
            sound items are used.
        text: The text before the cursor.
    """
    parts: list[tuple[int, int]] = []
    work: list[tuple[Node, int]] = [(tree.root_node, 0)]
    while work:
        node, depth = work.pop()
        if node.child_count > _MAX_CHILDREN:
            continue
        children = node.children
        runs = [run for run in _runs(children, text) if len(run) > _FIRST_KEPT + _LAST_KEPT]
        passed = [(run[_FIRST_KEPT], run[-_LAST_KEPT]) for run in runs]
        parts += passed
        if depth < _MAX_DEPTH:
            work += [(child, depth + 1) for child in children if _worth_a_look(child, passed, len(text))]
    return sorted(parts)


def _worth_a_look(node: Node, passed: list[tuple[int, int]], end: int) -> bool:
    """Whether the node's part before `end` is long, and not in a part that is passed over already."""
    start = node.start_byte
    return min(end, node.end_byte) - start > _LONG_BYTES and not any(first <= start < last for first, last in passed)


def _runs(children: list[Node], text: bytes) -> Iterator[list[int]]:
    """Line starts of neighbours that are finished items, each the first of its line, all indented alike.

    Comments lie between items and are none: they leave nothing on the stack.
    """
    run: list[int] = []
    indent = b""
    for child in children:
        if child.end_byte > len(text):
            break
        if child.is_extra and not child.has_error:
            continue
        nearest = max(0, child.start_byte - _LONGEST_INDENT)
        line_start = text.rfind(b"\n", nearest, child.start_byte) + 1 or nearest
        before = text[line_start : child.start_byte]
        sound = child.is_named and not child.has_error and not child.is_missing
        first = not before.strip(b" \t") and len(before) < _LONGEST_INDENT
        if run and not (sound and (before == indent or not first)):
            yield run
            run = []
        if sound and first:
            run.append(line_start)
            indent = before
    yield run
