"""A strict prefix acceptor: decides whether some valid file of the language begins with the given bytes.

The acceptor drives the grammar's own parse tables without error recovery. Snapshots are immutable and share their
stacks with the snapshots that they came from, so that every node of a draft tree can have its own.
"""

from __future__ import annotations

from completion.grammar.lr.advance import Advance, Head, LayoutRule, Snapshot
from completion.grammar.lr.lexer import NO_SYMBOL, Lexeme, Lexer
from completion.grammar.lr.spellings import Literals
from completion.grammar.lr.stacks import StackMachine, StackSet
from completion.grammar.lr.tables import LexMode, Tables

MAX_PROBED = 50_000  # cached probe results, about 20 MB
_PROBED_BYTES = 400  # of one of them
_PROBES = tuple(bytes([code]) for code in (*range(33, 127), 10, 32))


class Acceptor:
    """Advances snapshots of one grammar. Not thread-safe: the lexer holds one text.

    Attributes:
        lexer: The grammar's lexer.
        layout: The language's layout rule.
        machine: Makes and steps the grammar's stacks.
        literals: The spellings of keywords and operators.
    """

    def __init__(self, tables: Tables, lexer: Lexer, layout: LayoutRule | None = None) -> None:
        self.lexer = lexer
        self.layout = layout or LayoutRule()
        self.machine = StackMachine(tables)
        self.literals = Literals(tables, lexer)
        self._probed: dict[tuple[LexMode, bytes, bytes], list[tuple[int, int]]] = {}

    def start(self) -> Snapshot:
        """Return the snapshot before the first byte of a file."""
        return Snapshot((Head(0, self.machine.start(), self.lexer.initial_state, self.layout.start()),), b"", 0)

    def warm_up(self) -> None:
        """Collect the language's keywords and load the lexer, so that the first request does not wait for it."""
        self.literals.beginning_with(b"")
        self.read(self.start(), b" ")

    @property
    def size_bytes(self) -> int:
        """Approximate memory of the caches and of the spellings."""
        return self.machine.size_bytes + self.literals.size_bytes + _PROBED_BYTES * len(self._probed)

    def trim(self) -> None:
        """Clear caches that exceed their maximum; snapshots stay valid."""
        self.machine.trim()
        if len(self._probed) > MAX_PROBED:
            self._probed.clear()

    def advance(self, snapshot: Snapshot, data: bytes) -> Snapshot | None:
        """Return the snapshot after any bytes, which may end inside a character; None if no valid file continues so.

        Raises:
            GrammarBoundError: The text exceeds a bound of the parser.
        """
        known = snapshot.next_by_bytes.get(data, snapshot)
        if known is snapshot:
            known = snapshot.next_by_bytes[data] = self.read(snapshot, data)
        return known

    def read(self, snapshot: Snapshot, data: bytes) -> Snapshot | None:
        """Do the same as `advance` without caching the result; for long texts."""
        if not data:
            return snapshot
        return self._advance(snapshot, data).snapshot(self._viable)

    def accepts_end(self, snapshot: Snapshot) -> bool:
        """Return whether the text is a complete file of the language."""
        return self._advance(snapshot, b"", final=True).accepted

    def _advance(self, snapshot: Snapshot, data: bytes, *, final: bool = False) -> Advance:
        advance = Advance(self.lexer, self.machine, self.layout, snapshot, data, final=final)
        advance.consume()
        return advance

    def _viable(self, head: Head, mode: LexMode, lexeme: Lexeme, text: bytes, column: int) -> bool:
        """Return whether the unfinished lexeme at the end of `text` can become a lexeme that the head accepts."""
        stacks = head.stacks
        unfinished = text[lexeme.start :]
        if not unfinished or lexeme.scanner_touched or lexeme.symbol == NO_SYMBOL or lexeme.end < len(text):
            return True  # only whitespace, or the lexer needs more text to decide
        if self.layout.after(head.layout, lexeme, text, column) is None:
            return False
        if self._takes(stacks, lexeme.symbol, lexeme.keyword):
            return True
        if any(self._takes(stacks, literal) for literal in self.literals.beginning_with(unfinished)):
            return True
        return any(self._takes(stacks, *found) for found in self._probe(head, mode, unfinished))

    def _takes(self, stacks: StackSet, symbol: int, keyword: int = 0) -> bool:
        return symbol == NO_SYMBOL or self.machine.step(stacks, symbol, keyword).after is not None

    def _probe(self, head: Head, mode: LexMode, unfinished: bytes) -> list[tuple[int, int]]:
        """Return each (symbol, keyword) that `unfinished` plus one character can be; `NO_SYMBOL` if undecided."""
        key = (mode, unfinished, head.scanner_state)
        found = self._probed.get(key)
        if found is None:
            kinds: set[tuple[int, int]] = set()
            for probe in _PROBES:
                self.lexer.load(unfinished + probe, 0)
                lexeme = self.lexer.lex(mode, 0, head.scanner_state)
                if lexeme.end > len(unfinished) or (lexeme.touched_end and lexeme.symbol == NO_SYMBOL):
                    kinds.add((lexeme.symbol, lexeme.keyword))
            found = self._probed[key] = sorted(kinds)
        return found
