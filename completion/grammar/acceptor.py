"""A strict acceptor of prefixes: can these bytes still become a text of the language?

It drives the grammar's own tables without error recovery. A snapshot is immutable and shares all it can with those it
came from, so that every node of a draft tree has its own.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from completion.grammar.errors import GrammarBoundError
from completion.grammar.lexer import NO_SYMBOL, Lexeme, Lexer
from completion.grammar.literals import LiteralTexts
from completion.grammar.stacks import StackMachine, StackSet
from completion.grammar.tables import END_SYMBOL, LexMode, Tables

MAX_LEXEME_BYTES = 65_536  # an unfinished lexeme is read again with every token: beyond this the constraint gives up
MAX_EMPTY_LEXEMES = 512  # at one offset; a file that closes 100 blocks at once needs 100
MAX_HEADS = 64
MAX_PROBED = 50_000  # remembered beginnings of lexemes, about 20 MB
_PROBES = tuple(bytes([code]) for code in (*range(33, 127), 10, 32))


class LayoutRule(Protocol):
    """What a language asks of a lexeme's place in its line, beyond its grammar (Python's indentation)."""

    def start(self) -> object:
        """The state at the file's start; hashable."""

    def after(self, state: object, lexeme: Lexeme, text: bytes, column: int) -> object | None:
        """The state after a lexeme of `text`, which starts in byte column `column`; None if it must not stand there."""


class FreeLayout:
    """The rule of every language whose grammar says it all."""

    def start(self) -> object:
        """The only state."""
        return ()

    def after(self, state: object, lexeme: Lexeme, text: bytes, column: int) -> object | None:  # noqa: ARG002
        """Every place is right."""
        return state


class Head(NamedTuple):
    """One explanation of the text up to `offset`.

    Attributes:
        offset: Where the next lexeme is looked for, from the start of the snapshot's pending bytes.
        stacks: The parser's stacks.
        scanner_state: The external scanner's serialised state.
        layout: The layout rule's state.
    """

    offset: int
    stacks: StackSet
    scanner_state: bytes
    layout: object


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The acceptor after some text.

    Attributes:
        heads: Every explanation that is alive.
        pending: Bytes from the first head's offset on: lexemes that more text may still change.
        column: Code points between the start of the pending bytes' line and them.
        next_by_bytes: Memory of `advance`; nothing else of a snapshot ever changes.
    """

    heads: tuple[Head, ...]
    pending: bytes
    column: int
    next_by_bytes: dict[bytes, Snapshot | None] = field(default_factory=dict, repr=False)


class Acceptor:
    """Advances snapshots of one grammar. Not for use by several threads at once: the lexer has one text."""

    def __init__(self, tables: Tables, lexer: Lexer, layout: LayoutRule | None = None) -> None:
        self._tables, self._lexer = tables, lexer
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
        run = _Run(self, snapshot, data, final=False)
        run.consume()
        return run.snapshot()

    def accepts_end(self, snapshot: Snapshot) -> bool:
        """Whether the text may end here: the language's own parser accepts it as a whole file."""
        run = _Run(self, snapshot, b"", final=True)
        run.consume()
        return run.accepted

    def viable(self, head: Head, mode: LexMode, lexeme: Lexeme, text: bytes, column: int) -> bool:
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


def complete_length(text: bytes) -> int:
    """Length without the bytes of a UTF-8 character that is cut short at the end."""
    for back in range(1, min(4, len(text) + 1)):
        byte = text[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(text) - back if needed > back else len(text)
        if byte < 0x80:
            break
    return len(text)


class _Run:
    """One advance: a work list of heads, ordered by offset so that equal ones merge before they step."""

    def __init__(self, acceptor: Acceptor, snapshot: Snapshot, data: bytes, *, final: bool) -> None:
        self._acceptor, self._snapshot, self._final = acceptor, snapshot, final
        self._text = snapshot.pending + data
        self._length = len(self._text) if final else complete_length(self._text)
        self._readable = self._text[: self._length]
        self._heads: dict[int, list[Head]] = {}
        self._offsets: list[int] = []
        self._waiting: list[tuple[Head, LexMode, Lexeme]] = []
        self._empty_lexemes = 0
        self.accepted = False
        for head in snapshot.heads:
            self._add(head)

    def consume(self) -> None:
        """Read lexemes until only those are left that more text could change."""
        self._acceptor._lexer.load(self._readable, self._snapshot.column)  # noqa: SLF001  its own inner part
        while self._offsets:
            offset = self._offsets[0]
            heads = self._heads[offset]
            head: Head | None = heads.pop() if heads else None
            if not heads:
                heapq.heappop(self._offsets)
                del self._heads[offset]
            while head is not None and not self._offsets:
                head = self._follow(head)
            if head is not None:
                self._consume_head(head)

    def _follow(self, head: Head) -> Head | None:
        """Shift the next lexeme of the only head; the head after it, None if it ended or was queued."""
        acceptor = self._acceptor
        nodes = head.stacks.nodes
        if len(nodes) > 1:
            self._consume_head(head)
            return None
        mode = acceptor.machine.tables.lex_mode(nodes[0].state)
        lexeme = acceptor._lexer.lex(mode, head.offset, head.scanner_state)  # noqa: SLF001  its own inner part
        if lexeme.touched_end and not self._final:
            self._waiting.append((head, mode, lexeme))
            return None
        if lexeme.idle or lexeme.symbol in (END_SYMBOL, NO_SYMBOL):
            self._take(head, mode, lexeme)
            return None
        step = acceptor.machine.step(head.stacks, lexeme.symbol, lexeme.keyword)
        if step.retry is not None or step.after is None:
            self._shift(head, lexeme)
            return None
        layout = acceptor._layout.after(head.layout, lexeme, self._text, self._snapshot.column)  # noqa: SLF001  same
        if layout is None:
            return None
        self._count_empty(head.offset, lexeme.end)
        return Head(lexeme.end, step.after, lexeme.scanner_state, layout)

    def snapshot(self) -> Snapshot | None:
        """What is left, if some lexeme of it can go on."""
        waiting = [
            head
            for head, mode, lexeme in self._waiting
            if self._acceptor.viable(head, mode, lexeme, self._readable, self._snapshot.column)
        ]
        if not waiting:
            return None
        if len(waiting) > MAX_HEADS:
            raise GrammarBoundError(f"The text has more than {MAX_HEADS} explanations.")
        first = min(head.offset for head in waiting)
        if len(self._text) - first > MAX_LEXEME_BYTES:
            raise GrammarBoundError(f"One lexeme is longer than {MAX_LEXEME_BYTES} bytes.")
        heads = tuple(Head(h.offset - first, h.stacks, h.scanner_state, h.layout) for h in waiting)
        return Snapshot(heads, self._text[first:], self._column(first))

    def _column(self, offset: int) -> int:
        line_start = self._text.rfind(b"\n", 0, offset) + 1
        before = 0 if line_start else self._snapshot.column
        return before + len(self._text[line_start:offset].decode("utf-8", "replace"))

    def _add(self, head: Head) -> None:
        """Queue a head; merge it with one that differs in its stacks only."""
        heads = self._heads.get(head.offset)
        if heads is None:
            self._heads[head.offset] = [head]
            heapq.heappush(self._offsets, head.offset)
            return
        for index, other in enumerate(heads):
            if other.scanner_state == head.scanner_state and other.layout == head.layout:
                stacks = self._acceptor.machine.union(other.stacks, head.stacks)
                heads[index] = Head(head.offset, stacks, head.scanner_state, head.layout)
                return
        heads.append(head)

    def _consume_head(self, head: Head) -> None:
        lexer = self._acceptor._lexer  # noqa: SLF001  a run is the acceptor's own inner part
        for mode, stacks in self._acceptor.machine.groups(head.stacks):
            lexeme = lexer.lex(mode, head.offset, head.scanner_state)
            part = Head(head.offset, stacks, head.scanner_state, head.layout)
            if lexeme.touched_end and not self._final:
                self._waiting.append((part, mode, lexeme))
            else:
                self._take(part, mode, lexeme)

    def _take(self, head: Head, mode: LexMode, lexeme: Lexeme) -> None:
        """Shift a lexeme; an empty extra that changes nothing would come again without end, and is passed over."""
        if lexeme.idle and self._acceptor.machine.takes_as_extra(head.stacks, lexeme.symbol):
            plain = LexMode(mode.lex_state, 0, mode.reserved_set)
            lexeme = self._acceptor._lexer.lex(plain, head.offset, head.scanner_state)  # noqa: SLF001  its own inner part
        self._shift(head, lexeme)

    def _shift(self, head: Head, lexeme: Lexeme) -> None:
        if lexeme.symbol == NO_SYMBOL:
            return
        step = self._acceptor.machine.step(head.stacks, lexeme.symbol, lexeme.keyword)
        if step.accepted and lexeme.symbol == END_SYMBOL:
            self.accepted = True
        if step.retry is not None:
            self._count_empty(head.offset, head.offset)
            self._add(Head(head.offset, step.retry, head.scanner_state, head.layout))
        if step.after is None or lexeme.symbol == END_SYMBOL:
            return
        rule = self._acceptor._layout  # noqa: SLF001  a run is the acceptor's own inner part
        layout = rule.after(head.layout, lexeme, self._text, self._snapshot.column)
        if layout is not None:
            self._count_empty(head.offset, lexeme.end)
            self._add(Head(lexeme.end, step.after, lexeme.scanner_state, layout))

    def _count_empty(self, offset: int, end: int) -> None:
        self._empty_lexemes = self._empty_lexemes + 1 if end <= offset else 0
        if self._empty_lexemes > MAX_EMPTY_LEXEMES:
            raise GrammarBoundError(f"More than {MAX_EMPTY_LEXEMES} empty tokens stand at one offset.")
