"""Shortest insertion: the cheapest terminals after a text with which what stands after the cursor can follow it.

`x = foo(a` lacks a bracket, `try { f();` in Java lacks `} finally { }`, and `for i, v` in Go lacks `= range a { }`. The
search goes from item to item down the parser's stacks, the cheapest rest of an item first
(`completion.grammar.lr.cheapest`), and to the first token after the cursor from each state on the way. What it finds is
spelled and read by the acceptor together with the text after the cursor, which decides. It needs no data about a
language. Source of the idea: "Don't Panic! Better, Fewer, Syntax Errors for LR Parsers" (CPCT+), whose searches insert
single terminals; here an edge is the rest of an item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from time import process_time

from completion.errors import GrammarBoundError
from completion.grammar.joint import Fit, Joint
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.advance import Snapshot
from completion.grammar.lr.cheapest import CheapestRests
from completion.grammar.lr.spellings import ENDS, Spellings
from completion.grammar.lr.tables import Tables
from completion.grammar.lr.ways import Way, Ways

MAX_SEARCH_MS = 10.0
"""Maximum processor time of one search, in milliseconds, after which its result is unknown."""
_VISITS_BEYOND_GRAMMAR = (
    4  # ways to a stack, if the language forbids some: `f(a=1, b` needs a value, not just a bracket
)
_END_COST = 2  # of the end of an unfinished lexeme


@dataclass(frozen=True, slots=True)
class Insertion:
    """Terminals that join a text with what follows it.

    Attributes:
        text: Their spelling, to be written after the text.
        cost: Their cost, 2 for each.
        after: Snapshot after them.
    """

    text: bytes
    cost: int
    after: Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class _Begun:
    """A text that ends between two lexemes, perhaps because the end of its last one was inserted."""

    after: Snapshot
    inserted: bytes


class Shortest:
    """Finds insertions with one grammar. Not thread-safe."""

    def __init__(self, tables: Tables, acceptor: Acceptor) -> None:
        self._tables, self._acceptor = tables, acceptor

    @cached_property
    def spellings(self) -> Spellings:
        """The spellings of the grammar's terminals, which the first use collects."""
        return Spellings(self._tables, self._acceptor)

    @cached_property
    def _rests(self) -> CheapestRests:
        return CheapestRests(self._tables, self.spellings.costs, self._acceptor.layout)

    @property
    def size_bytes(self) -> int:
        """Approximate memory of what the first use computes."""
        rests: CheapestRests | None = self.__dict__.get("_rests")
        return 0 if rests is None else rests.size_bytes

    def insertions(self, snapshot: Snapshot, joint: Joint, max_ms: float = MAX_SEARCH_MS) -> Iterator[Insertion]:
        """Yield insertions after which the text after the cursor follows, the cheapest first.

        Those after which only its first lines follow, where it cannot be read to the end, come last.

        Args:
            snapshot: Snapshot before the insertion.
            joint: The text after the cursor.
            max_ms: Maximum processor time of the search, without what the caller does between two insertions.

        Raises:
            GrammarBoundError: The search took more time, so there may be more insertions.
        """
        poor: list[Insertion] = []
        tried: set[bytes] = set()
        ways = self._ways(snapshot, joint)
        clock = _Clock(max_ms)
        for way in ways.found():
            if clock.is_over:
                break
            insertion = self._spelled(way, joint.suffix) if way is not None else None
            if insertion is None or insertion.text in tried:
                continue
            tried.add(insertion.text)
            fit = joint.fit(insertion.after)
            if fit is Fit.SO_FAR:
                poor.append(insertion)
            elif fit is Fit.YES:
                clock.pause()
                yield insertion
                clock.go_on()
        yield from poor
        if clock.is_over:
            raise GrammarBoundError(f"The search for a shortest insertion took more than {max_ms} ms.")

    def _ways(self, snapshot: Snapshot, joint: Joint) -> Ways[_Begun]:
        """Return the search for what may stand before a text."""
        firsts = {each: self._rests.distances(each) for each in self.spellings.firsts(joint.suffix)}
        visits = _VISITS_BEYOND_GRAMMAR if self._acceptor.layout.unfinished else 1
        ways: Ways[_Begun] = Ways(self._rests, self._acceptor.machine, firsts, visits)
        for cost, begun in self._beginnings(snapshot):
            heads = () if begun.after.pending.strip() else begun.after.heads
            ways.begin(begun, cost, (node for head in heads for node in head.stacks.nodes))
        return ways

    def level(self, snapshot: Snapshot) -> int:
        """Return the depth of the parser's stack when all that a text has finished is reduced."""
        work = [node for head in snapshot.heads for node in head.stacks.nodes]
        seen = set(work)
        while work:
            top = work.pop()
            for rest in self._rests.rests(top.state):
                if not rest.cost:
                    found = set(self._acceptor.machine.reduced(top, rest.depth, rest.symbol)) - seen
                    seen |= found
                    work += found
        return min(node.depth for node in seen)

    def _beginnings(self, snapshot: Snapshot) -> Iterator[tuple[int, _Begun]]:
        """Yield the text itself, and with each end that its last lexeme may have."""
        yield 0, _Begun(snapshot, b"")
        unfinished = snapshot.pending.strip()
        if not unfinished:
            return
        separate = self._read(snapshot, b" ")
        if separate is not None and not separate.pending.strip():
            yield 0, _Begun(separate, b" ")
        longer = self._acceptor.literals.beginning_with(unfinished)
        ends = [self.spellings.texts[symbol][len(unfinished) :] + b" " for symbol in sorted(longer)]
        if separate is None or separate.pending.strip():
            ends += [end + space for end in ENDS for space in (b"", b" ")]
        for end in ends:
            after = self._read(snapshot, end)
            if after is not None and not (end.endswith(b" ") and after.pending.strip()):
                yield _END_COST if end.strip() else 0, _Begun(after, end)

    def _spelled(self, way: Way[_Begun], suffix: bytes) -> Insertion | None:
        """Return a way with its spelling before a suffix; None if the acceptor rejects it."""
        begun, layout = way.origin, self._acceptor.layout
        texts: list[bytes] = []
        state, marks = begun.after.heads[0].layout, tuple[int, ...]()
        for terminal in way.terminals:
            if terminal in layout.costs:
                marks += (terminal,)
                continue
            text = self.spellings.texts.get(terminal) or self._end_of_string(begun.after, b" ".join((b"", *texts)))
            line, state = layout.between(state, marks)
            texts, marks = [*texts, line + text], ()
        if not texts:
            return Insertion(begun.inserted, way.cost, begun.after)
        inserted = b" ".join((b"", *texts)) + (b"" if suffix[:1].isspace() else b" ")
        after = self._read(begun.after, inserted)
        return None if after is None else Insertion(begun.inserted + inserted, way.cost, after)

    def _end_of_string(self, snapshot: Snapshot, inserted: bytes) -> bytes:
        """Return what ends the string around an insertion, which only the scanner's state tells; b"" for none."""
        for end in filter(bytes.strip, ENDS):
            after = self._read(snapshot, inserted + end + b" ")
            if after is not None and not after.pending.strip():
                return end
        return b""

    def _read(self, snapshot: Snapshot, data: bytes) -> Snapshot | None:
        try:
            return self._acceptor.read(snapshot, data)
        except GrammarBoundError:
            return None


class _Clock:
    """The processor time of a search."""

    def __init__(self, max_ms: float) -> None:
        self._left_s = max_ms / 1000
        self.go_on()

    @property
    def is_over(self) -> bool:
        """Whether the maximum is reached."""
        return process_time() - self._started > self._left_s

    def pause(self) -> None:
        """Stop counting."""
        self._left_s -= process_time() - self._started

    def go_on(self) -> None:
        """Count again."""
        self._started = process_time()
