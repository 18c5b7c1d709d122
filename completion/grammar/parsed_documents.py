"""A cache of documents with their tree-sitter trees.

The functions can be called in another process (`completion.syntax.parsing.process`), so they take the whole text in
every call.
"""

from __future__ import annotations

from collections import deque
from functools import cache

from tree_sitter import Parser, Point, Tree

from completion.changed_span import changed_span
from completion.grammar.skippable_parts import skippable_parts
from completion.syntax.languages import LANGUAGES, tree_sitter_language

_KEPT_DOCUMENTS = 4  # of one language
_SMALL_CHANGE_BYTES = 1000  # removed and inserted bytes between two texts that count as versions of one document


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
        row = LANGUAGES[language]
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


def cache_document(language: str, text: bytes) -> None:
    """Parse and cache a document, so that later calls for it do not parse it."""
    load_documents(language).document(text)


def skippable_prefix_parts(language: str, text: bytes, length: int) -> list[tuple[int, int]]:
    """Return the parts of a document's first `length` bytes that the acceptor can skip (see `skippable_parts`)."""
    return skippable_parts(load_documents(language).document(text).tree, text[:length])
