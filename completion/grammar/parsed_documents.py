"""A cache of documents with their tree-sitter trees, and the parts of a document that the acceptor can skip.

After a finished item of a body (a top-level item, method or statement) the parser's stack does not depend on the items:
it is a repetition of items above the body's opener. So the acceptor skips all finished items of a run except the first,
which can have syntax of a body's start, and the last, which the text after them can continue.

The functions can be called in another process (`completion.syntax.parsing.process`), so they take the whole text in
every call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cache

from tree_sitter import Node, Parser, Point, Tree

from completion.edits import changed_span
from completion.syntax.languages import tree_sitter_language
from completion.syntax.table import row_of
from completion.syntax.trees import ancestors

_KEPT_DOCUMENTS = 4  # of one language
_SMALL_CHANGE_BYTES = 1000  # removed and inserted bytes between two texts that count as versions of one document
_FIRST_KEPT = 2  # items: a repetition needs two, and they include the syntax of a body's start (package clause)
_LAST_KEPT = 2  # items: an `else`, a doc comment or a decorator can belong to the text after them
_MAX_DEPTH = 200  # depth of nodes that are searched
_MIN_BYTES = 200  # length of items that are searched; shorter ones are read whole
_MAX_INDENT_BYTES = 1000  # bytes; an item with more text before it in its line does not start the line
_MAX_CHILDREN = 5000  # children of a node; a node with more is data and is not searched


class ParsedDocument:
    """A text with its tree, which makes parsing a changed text cheap.

    Attributes:
        text: The whole document.
        tree: tree-sitter's tree, equal to that of a parse from scratch.
    """

    def __init__(self, text: bytes, tree: Tree, parser: Parser) -> None:
        self.text, self.tree, self._parser = text, tree, parser

    def parse_with(self, start: int, end: int, middle: bytes) -> tuple[bytes, Tree]:
        """Return the text with `middle` in place of the bytes from `start` to `end`, and its tree."""
        text = self.text[:start] + middle + self.text[end:]
        tree = self.tree.copy()
        tree.edit(
            start_byte=start,
            old_end_byte=end,
            new_end_byte=start + len(middle),
            start_point=_point(self.text, start),
            old_end_point=_point(self.text, end),
            new_end_point=_point(text, start + len(middle)),
        )
        return text, self._parser.parse(text, tree)


def _point(text: bytes, offset: int) -> Point:
    """Return row and column of an offset, in bytes."""
    return Point(text.count(b"\n", 0, offset), offset - (text.rfind(b"\n", 0, offset) + 1))


class ParsedDocuments:
    """A cache of one language's documents. Not thread-safe."""

    def __init__(self, language: str) -> None:
        row = row_of(language)
        self._parser = Parser(tree_sitter_language(row.package, row.entry))
        self._documents: deque[ParsedDocument] = deque(maxlen=_KEPT_DOCUMENTS)

    def document(self, text: bytes) -> ParsedDocument:
        """Return the document of a text; the last few are cached, because successive requests often share one."""
        for known in self._documents:
            if known.text == text:
                return known
        found = ParsedDocument(text, self._tree_of(text), self._parser)
        self._documents.append(found)
        return found

    def _tree_of(self, text: bytes) -> Tree:
        """Return the tree of a text; derive it from the last document's tree if both are sound and differ little.

        Error recovery depends on where parsing begins, so a text with errors is always parsed from scratch.
        """
        last = self._documents[-1] if self._documents else None
        if last is not None and not last.tree.root_node.has_error:
            start, old_end, new_end = changed_span(last.text, text)
            if old_end - start + new_end - start <= _SMALL_CHANGE_BYTES:
                _, tree = last.parse_with(start, old_end, text[start:new_end])
                if not tree.root_node.has_error:
                    return tree
        return self._parser.parse(text)


@cache
def load_documents(language: str) -> ParsedDocuments:
    """Return the documents of a language with a grammar, by its LSP identifier."""
    return ParsedDocuments(language)


def open_document(language: str, text: bytes, cursor: int) -> bool:
    """Parse and cache a document; return whether the cursor is in or after a part that tree-sitter does not understand.

    C's grammar, for example, has no `#ifdef` in a list. Any text there changes the number of errors.
    """
    root = load_documents(language).document(text).tree.root_node
    node = root.descendant_for_byte_range(max(0, cursor - 1), cursor)
    return any(each.is_error for each in ancestors(node))


def skippable_parts(language: str, document: bytes, length: int) -> list[tuple[int, int]]:
    """Return the parts of the first `length` bytes of a document that the acceptor can skip; none has an error.

    They are whole lines, by start and end in bytes, ascending.
    """
    text, parts = document[:length], list[tuple[int, int]]()
    work = [(load_documents(language).document(document).tree.root_node, 0)]
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
