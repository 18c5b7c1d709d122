"""Where the acceptor may start: at the enclosing items in place of the file's start.

After a finished item of a body (top-level items, methods, statements) the parser's stack is the same whatever the items
were: a repeat of items on what the body opened. So runs of finished items are passed over, all but their first few,
which carry what only a body's start may have, and their last, which what follows may still continue.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node, Tree

_FIRST_KEPT = 3  # package clause, imports, docstring: a repeat needs two items, the rest is caution
_LAST_KEPT = 2  # an `else`, a doc comment, a decorator may belong to what follows
_MAX_DEPTH = 200
_MAX_CHILDREN = 5000  # a longer list is data, and is not looked through


def passed_over(tree: Tree, text: bytes) -> list[tuple[int, int]]:
    """The parts (start, end) of the text before the cursor that the acceptor need not read; each is whole lines.

    Args:
        tree: tree-sitter's tree of `text`; of its recovery from errors only sound items are used.
        text: The text before the cursor.
    """
    parts: list[tuple[int, int]] = []
    node: Node | None = tree.root_node
    for _ in range(_MAX_DEPTH):
        if node is None or node.child_count > _MAX_CHILDREN:
            break
        children = node.children
        runs = [run for run in _runs(children, text) if len(run) > _FIRST_KEPT + _LAST_KEPT]
        parts += [(run[_FIRST_KEPT], run[-_LAST_KEPT]) for run in runs]
        node = children[-1] if children else None
    return parts


def _runs(children: list[Node], text: bytes) -> Iterator[list[int]]:
    """Line starts of neighbours that are finished items, each the first of its line, all indented alike.

    Comments lie between items and are none: they leave nothing on the stack.
    """
    run: list[int] = []
    indent = b""
    for child in children:
        if child.is_extra and not child.has_error:
            continue
        line_start = text.rfind(b"\n", 0, child.start_byte) + 1
        before = text[line_start : child.start_byte]
        sound = child.is_named and not child.has_error and not child.is_missing
        first = not before.strip(b" \t")
        if run and not (sound and (before == indent or not first)):
            yield run
            run = []
        if sound and first:
            run.append(line_start)
            indent = before
    yield run
