"""Documents and tree-sitter's trees of them, and the questions about them that a request asks.

The functions of this module can be called in another process (`completion.syntax.parser_process`): they take the whole
text every time, and the trees of the last texts are kept.
"""

from __future__ import annotations

from collections import deque
from functools import cache, lru_cache

from tree_sitter import Language, Parser, Point, Query, QueryCursor, Tree

from completion.grammar.enclosing_item import passed_over
from completion.grammar.joined_check import JoinedCheck, PythonJoinedCheck
from completion.syntax.changed_span import changed_span
from completion.syntax.languages import LANGUAGES, LanguageRow, tree_sitter_language

_KEPT_DOCUMENTS = 4
_SMALL_CHANGE_BYTES = 1000  # taken out and put in between two documents that are versions of one


class Document:
    """A text with its tree, from which the tree of a changed text is made at a fraction of a parse's cost.

    Attributes:
        text: The whole document.
        tree: tree-sitter's tree of it, as parsing it from scratch gives it.
    """

    def __init__(self, text: bytes, tree: Tree, parser: Parser) -> None:
        self.text, self.tree, self._parser = text, tree, parser

    def parse_with(self, start: int, end: int, middle: bytes) -> tuple[bytes, Tree]:
        """The text with `middle` in place of the bytes from `start` to `end`, and its tree."""
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
    """Row and column in bytes."""
    return Point(text.count(b"\n", 0, offset), offset - (text.rfind(b"\n", 0, offset) + 1))


def _change(old: bytes, new: bytes) -> tuple[int, int, bytes]:
    """Start and end of the bytes of the old text that differ, and what stands there in the new one."""
    start, old_end, new_end = changed_span(old, new)
    return start, old_end, new[start:new_end]


class Documents:
    """The trees of one language's documents. For use by one thread at a time."""

    def __init__(self, row: LanguageRow) -> None:
        self.row = row
        language: Language = tree_sitter_language(row.package, row.entry)
        self._parser = Parser(language)
        self._errors = Query(language, "(ERROR) @error (MISSING) @missing")
        self._documents: deque[Document] = deque(maxlen=_KEPT_DOCUMENTS)

    def parse(self, text: bytes) -> Tree:
        """tree-sitter's tree, with error recovery."""
        return self._parser.parse(text)

    def document(self, text: bytes) -> Document:
        """A document with its tree; the last few are kept, for a request often finds what the one before had."""
        for known in self._documents:
            if known.text == text:
                return known
        found = Document(text, self._tree_of(text), self._parser)
        self._documents.append(found)
        return found

    def _tree_of(self, text: bytes) -> Tree:
        """The tree of a text: from the last document's where a small change between sound texts leads to it.

        Error recovery depends on where parsing begins, so a tree with errors is always made from scratch.
        """
        last = self._documents[-1] if self._documents else None
        if last is not None and not last.tree.root_node.has_error:
            start, end, middle = _change(last.text, text)
            if end - start + len(middle) <= _SMALL_CHANGE_BYTES:
                _, tree = last.parse_with(start, end, middle)
                if not tree.root_node.has_error:
                    return tree
        return self._parser.parse(text)

    def count_errors(self, text: bytes) -> int:
        """How many ERROR and MISSING nodes tree-sitter's tree of `text` has."""
        return self.errors_of(self.parse(text))

    def errors_of(self, tree: Tree) -> int:
        """How many ERROR and MISSING nodes a tree has."""
        root = tree.root_node
        if not root.has_error:
            return 0
        return sum(len(nodes) for nodes in QueryCursor(self._errors).captures(root).values())


@cache
def load_documents(language: str) -> Documents:
    """The trees of a language that has a grammar, by its LSP identifier."""
    return Documents(LANGUAGES[language])


def read_document(language: str, text: bytes) -> None:
    """Parse a document, so that the questions about it are answered at once."""
    load_documents(language).document(text)


def finished_parts(language: str, text: bytes, length: int) -> list[tuple[int, int]]:
    """The parts of a document's first `length` bytes that the acceptor need not read (see `passed_over`)."""
    return passed_over(load_documents(language).document(text).tree, text[:length])


@lru_cache(maxsize=_KEPT_DOCUMENTS)
def _check(language: str, text: bytes, start: int, end: int) -> JoinedCheck:
    documents = load_documents(language)
    check = PythonJoinedCheck if documents.row.indented else JoinedCheck
    return check(documents.document(text), documents.errors_of, start, end)


def is_sound(language: str, text: bytes, start: int, end: int, middle: bytes, replaced: int) -> bool:
    """`JoinedCheck.sound` of a document."""
    return _check(language, text, start, end).sound(middle, replaced)


def adds_errors(language: str, text: bytes, start: int, end: int, middle: bytes, replaced: int) -> bool:
    """`JoinedCheck.adds_errors` of a document."""
    return _check(language, text, start, end).adds_errors(middle, replaced)
