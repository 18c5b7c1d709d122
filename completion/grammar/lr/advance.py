"""One advance of the acceptor: reads more text, lexeme by lexeme, for every live interpretation of it."""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from completion.errors import GrammarBoundError
from completion.grammar.lr.lexer import NO_SYMBOL, Lexeme, Lexer
from completion.grammar.lr.stacks import StackMachine, StackSet
from completion.grammar.lr.tables import END_SYMBOL, LexMode

MAX_LEXEME_BYTES = 65_536  # length of an unfinished lexeme, which is read again with every token
MAX_EMPTY_LEXEMES = 512  # empty lexemes at one offset; a file that closes 100 blocks at once needs 100
MAX_HEADS = 64


class LayoutRule:
    """A language's rule for the columns of lexemes, beyond its grammar (Python's indentation); this one has none.

    Attributes:
        costs: Costs of the terminals that stand for layout in an insertion: 0 for those that the text after it brings.
        barred: Pairs of terminals of which the second never follows the first, although the grammar lets it.
        unfinished: Constructs that lack something after their last part (symbols of both), although the grammar takes
            them.
    """

    costs: Mapping[int, int] = MappingProxyType({})
    barred: Collection[tuple[int, int]] = ()
    unfinished: Collection[tuple[int, int]] = ()

    def start(self) -> object:
        """Return the state at the file's start; hashable."""
        return ()

    def after(self, state: object, lexeme: Lexeme, text: bytes, column: int) -> object | None:  # noqa: ARG002
        """Return the state after a lexeme of a text; None if its position is invalid. The text begins in a column."""
        return state

    def between(self, state: object, terminals: Sequence[int]) -> tuple[bytes, object]:  # noqa: ARG002
        """Return the text of layout terminals within an insertion, and the state after them."""
        return b"", state

    def before(self, state: object, pending: bytes) -> bytes:  # noqa: ARG002
        """Return what stands between the blanks at a text's end and an insertion without layout at its start."""
        return b" "


class Head(NamedTuple):
    """One interpretation of the text up to `offset`.

    Attributes:
        offset: Start of the next lexeme, in bytes from the start of the snapshot's pending bytes.
        stacks: Parser stacks.
        scanner_state: Serialised state of the external scanner.
        layout: State of the layout rule.
    """

    offset: int
    stacks: StackSet
    scanner_state: bytes
    layout: object


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The acceptor's state after some text.

    Attributes:
        heads: Every live interpretation of the text.
        pending: Bytes from the first head's offset on: lexemes that more text can still change.
        column: Code points before the pending bytes in their line.
        next_by_bytes: Cached results of `advance`; the only attribute that changes.
    """

    heads: tuple[Head, ...]
    pending: bytes
    column: int
    next_by_bytes: dict[bytes, Snapshot | None] = field(default_factory=dict, repr=False)


Viable = Callable[[Head, LexMode, Lexeme, bytes, int], bool]
"""Whether an unfinished lexeme of a text that starts in a column can become one that the head accepts."""


class Advance:
    """A work list of heads, ordered by offset so that equal heads merge before they step.

    Attributes:
        accepted: Whether the text is a complete file; only with `final`.
    """

    def __init__(
        self, lexer: Lexer, machine: StackMachine, layout: LayoutRule, snapshot: Snapshot, data: bytes, *, final: bool
    ) -> None:
        self._lexer, self._machine, self._layout = lexer, machine, layout
        self._snapshot, self._final = snapshot, final
        self._text = snapshot.pending + data
        try:
            heads, self._readable = snapshot.heads, self._text[: utf_8_decode(self._text, "strict", final)[1]]
        except UnicodeDecodeError:  # no file has such bytes
            heads, self._readable = (), b""
        self._heads: dict[int, list[Head]] = {}
        self._waiting: list[tuple[Head, LexMode, Lexeme]] = []
        self._empty_lexemes = 0
        self.accepted = False
        for head in heads:
            self._add(head)

    def consume(self) -> None:
        """Read lexemes until only lexemes remain that more text can change."""
        self._lexer.load(self._readable, self._snapshot.column)
        while self._heads:
            offset = min(self._heads)
            heads = self._heads[offset]
            head = heads.pop()
            if not heads:
                del self._heads[offset]
            self._consume_head(head)

    def snapshot(self, viable: Viable) -> Snapshot | None:
        """Return the snapshot after the text; None if no head's unfinished lexeme is viable."""
        waiting = [
            head
            for head, mode, lexeme in self._waiting
            if viable(head, mode, lexeme, self._readable, self._snapshot.column)
        ]
        if not waiting:
            return None
        if len(waiting) > MAX_HEADS:
            raise GrammarBoundError(f"The text has {len(waiting)} interpretations, more than {MAX_HEADS}.")
        first = min(head.offset for head in waiting)
        if len(self._text) - first > MAX_LEXEME_BYTES:
            raise GrammarBoundError(f"A lexeme is longer than {MAX_LEXEME_BYTES} bytes.")
        heads = tuple(Head(h.offset - first, h.stacks, h.scanner_state, h.layout) for h in waiting)
        return Snapshot(heads, self._text[first:], self._column(first))

    def _column(self, offset: int) -> int:
        line_start = self._text.rfind(b"\n", 0, offset) + 1
        before = 0 if line_start else self._snapshot.column
        return before + len(self._text[line_start:offset].decode("utf-8", "replace"))

    def _add(self, head: Head) -> None:
        """Queue a head; merge it with a head that differs only in its stacks."""
        heads = self._heads.get(head.offset)
        if heads is None:
            self._heads[head.offset] = [head]
            return
        for index, other in enumerate(heads):
            if other.scanner_state == head.scanner_state and other.layout == head.layout:
                stacks = self._machine.union(other.stacks, head.stacks)
                heads[index] = Head(head.offset, stacks, head.scanner_state, head.layout)
                return
        heads.append(head)

    def _consume_head(self, head: Head) -> None:
        for mode, stacks in self._machine.groups(head.stacks):
            lexeme = self._lexer.lex(mode, head.offset, head.scanner_state)
            part = Head(head.offset, stacks, head.scanner_state, head.layout)
            if lexeme.touched_end and not self._final:
                self._waiting.append((part, mode, lexeme))
                continue
            if lexeme.idle and self._machine.takes_as_extra(stacks, lexeme.symbol):  # which would repeat forever
                plain = LexMode(mode.lex_state, 0, mode.reserved_set)
                lexeme = self._lexer.lex(plain, head.offset, head.scanner_state)
            self._shift(part, lexeme)

    def _shift(self, head: Head, lexeme: Lexeme) -> None:
        if lexeme.symbol == NO_SYMBOL:
            return
        step = self._machine.step(head.stacks, lexeme.symbol, lexeme.keyword)
        if step.accepted and lexeme.symbol == END_SYMBOL:
            self.accepted = True
        if step.retry is not None:
            self._count_empty(head.offset, head.offset)
            self._add(Head(head.offset, step.retry, head.scanner_state, head.layout))
        if step.after is None or lexeme.symbol == END_SYMBOL:
            return
        layout = self._layout.after(head.layout, lexeme, self._text, self._snapshot.column)
        if layout is not None:
            self._count_empty(head.offset, lexeme.end)
            self._add(Head(lexeme.end, step.after, lexeme.scanner_state, layout))

    def _count_empty(self, offset: int, end: int) -> None:
        self._empty_lexemes = self._empty_lexemes + 1 if end <= offset else 0
        if self._empty_lexemes > MAX_EMPTY_LEXEMES:
            raise GrammarBoundError(f"More than {MAX_EMPTY_LEXEMES} empty lexemes follow each other at one offset.")
