"""One loaded grammar: its tables, lexer, acceptor, and tree-sitter's own parser beside them."""

from __future__ import annotations

from collections import deque
from functools import cache

from tree_sitter import Language, Parser, Point, Query, QueryCursor, Tree

from completion.grammar.indentation import IndentationRule
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.compiled_lexer import CompiledLexer
from completion.grammar.lr.tables import Tables
from completion.grammar.prefix_memory import PrefixMemory
from completion.syntax.changed_span import changed_span
from completion.syntax.languages import LANGUAGES, LanguageRow, language_address, tree_sitter_language

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


class Grammar:
    """What a constraint needs of one language. Loaded once a process; for use by one thread at a time."""

    def __init__(self, row: LanguageRow) -> None:
        self.row = row
        self.tables = Tables(language_address(row.package, row.entry))
        rule = IndentationRule(self.tables) if row.indented else None
        self.acceptor = Acceptor(self.tables, CompiledLexer(self.tables), rule)
        self.acceptor.warm_up()
        self._language: Language = tree_sitter_language(row.package, row.entry)
        self._parser = Parser(self._language)
        self._errors = Query(self._language, "(ERROR) @error (MISSING) @missing")
        self._documents: deque[Document] = deque(maxlen=_KEPT_DOCUMENTS)
        self.prefixes = PrefixMemory(self.acceptor)

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
def load_grammar(language: str) -> Grammar | None:
    """The grammar of an LSP language identifier; None if the language has no row.

    Raises:
        GrammarUnsupportedError: The grammar's package is missing or has an unknown ABI version.
    """
    row = LANGUAGES.get(language)
    return None if row is None else Grammar(row)
