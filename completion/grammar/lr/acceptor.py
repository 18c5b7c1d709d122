"""A strict acceptor of prefixes: can these bytes still become a text of the language?

It drives the grammar's own tables without error recovery. A snapshot is immutable and shares all it can with those it
came from, so that every node of a draft tree has its own.
"""

from __future__ import annotations

from completion.grammar.lr.advance import Advance, Head, LayoutRule, Snapshot
from completion.grammar.lr.lexer import NO_SYMBOL, Lexeme, Lexer
from completion.grammar.lr.literals import LiteralTexts
from completion.grammar.lr.stacks import StackMachine, StackSet
from completion.grammar.lr.tables import LexMode, Tables

MAX_PROBED = 50_000  # remembered beginnings of lexemes, about 20 MB
_PROBES = tuple(bytes([code]) for code in (*range(33, 127), 10, 32))


class FreeLayout:
    """The rule of every language whose grammar says it all."""

    def start(self) -> object:
        """The only state."""
        return ()

    def after(self, state: object, lexeme: Lexeme, text: bytes, column: int) -> object | None:  # noqa: ARG002
        """Every place is right."""
        return state


class Acceptor:
    """Advances snapshots of one grammar. Not for use by several threads at once: the lexer has one text."""

    def __init__(self, tables: Tables, lexer: Lexer, layout: LayoutRule | None = None) -> None:
        self._lexer = lexer
        self._layout = layout if layout is not None else FreeLayout()
        self.machine = StackMachine(tables)
        self._literals = LiteralTexts(tables, lexer)
        self._probed: dict[tuple[LexMode, bytes, bytes], list[tuple[int, int]]] = {}

    def start(self) -> Snapshot:
        """The snapshot before the first byte of a file."""
        return Snapshot((Head(0, self.machine.start(), self._lexer.initial_state, self._layout.start()),), b"", 0)

    def warm_up(self) -> None:
        """Find the language's words, and let the lexer load, before a request waits for it."""
        self._literals.beginning_with(b"")
        self.read(self.start(), b" ")

    def trim(self) -> None:
        """Forget what was learned of the language, when it is much; snapshots stay valid."""
        self.machine.trim()
        if len(self._probed) > MAX_PROBED:
            self._probed.clear()

    def advance(self, snapshot: Snapshot, data: bytes) -> Snapshot | None:
        """The snapshot after `data`, None if no text of the language goes on like this.

        Args:
            snapshot: Where to start; it does not change.
            data: Any bytes; they may end inside a lexeme or inside a character.

        Raises:
            GrammarBoundError: The text needs more memory or time than is allowed.
        """
        known = snapshot.next_by_bytes.get(data, snapshot)
        if known is snapshot:
            known = snapshot.next_by_bytes[data] = self.read(snapshot, data)
        return known

    def read(self, snapshot: Snapshot, data: bytes) -> Snapshot | None:
        """`advance` without remembering, for long texts."""
        if not data:
            return snapshot
        return self._advance(snapshot, data).snapshot(self._viable)

    def accepts_end(self, snapshot: Snapshot) -> bool:
        """Whether the text may end here: the language's own parser accepts it as a whole file."""
        return self._advance(snapshot, b"", final=True).accepted

    def _advance(self, snapshot: Snapshot, data: bytes, *, final: bool = False) -> Advance:
        advance = Advance(self._lexer, self.machine, self._layout, snapshot, data, final=final)
        advance.consume()
        return advance

    def _viable(self, head: Head, mode: LexMode, lexeme: Lexeme, text: bytes, column: int) -> bool:
        """Whether the unfinished lexeme of `text`, which starts in `column`, may become one that the head takes."""
        stacks = head.stacks
        rest = text[lexeme.start :]
        if not rest or lexeme.scanner_touched or lexeme.symbol == NO_SYMBOL or lexeme.end < len(text):
            return True  # only blanks, or a lexer still waits for the rest of a lexeme
        if self._layout.after(head.layout, lexeme, text, column) is None:
            return False
        if self._takes(stacks, lexeme.symbol, lexeme.keyword):
            return True
        if self._starts_literal(stacks, rest):
            return True
        return any(self._takes(stacks, *found) for found in self._probe(head, mode, rest))

    def _takes(self, stacks: StackSet, symbol: int, keyword: int) -> bool:
        return symbol == NO_SYMBOL or self.machine.step(stacks, symbol, keyword).after is not None

    def _starts_literal(self, stacks: StackSet, rest: bytes) -> bool:
        """Whether `rest` begins a keyword or operator that may stand here."""
        symbols = self._literals.beginning_with(rest)
        return any(self._takes(stacks, symbol, 0) for symbol in symbols)

    def _probe(self, head: Head, mode: LexMode, rest: bytes) -> list[tuple[int, int]]:
        """Every (symbol, keyword) that `rest` and one more character can be; `NO_SYMBOL`: still unfinished."""
        key = (mode, rest, head.scanner_state)
        found = self._probed.get(key)
        if found is None:
            kinds: set[tuple[int, int]] = set()
            for probe in _PROBES:
                self._lexer.load(rest + probe, 0)
                lexeme = self._lexer.lex(mode, 0, head.scanner_state)
                if lexeme.end > len(rest) or (lexeme.touched_end and lexeme.symbol == NO_SYMBOL):
                    kinds.add((lexeme.symbol, lexeme.keyword))
            found = self._probed[key] = sorted(kinds)
        return found
