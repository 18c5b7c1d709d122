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
from typing import NamedTuple

from completion.errors import GrammarBoundError
from completion.grammar.joint import Fit, Joint
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.advance import Snapshot
from completion.grammar.lr.cheapest import CheapestRests
from completion.grammar.lr.spellings import ENDS, Spellings
from completion.grammar.lr.tables import END_SYMBOL
from completion.grammar.ways import Begun, Way, Ways

MAX_STEPS = 1_300
"""Maximum number of steps of the searches for one text, after which their result is unknown.

Of 560 searches of at most 1,000 steps in programs of eight languages, the longest took 10.4 ms of processor time, with
tables that were just loaded; the 99th percentile was 7.4 ms. The maximum is one of steps, not of time, so the same text
has the same result at any load and on any machine.
"""
_TRIAL_STEPS = 20  # of a way that the acceptor reads; any other way is one step
_VISITS_BEYOND_GRAMMAR = 6  # ways to a stack if the language forbids some: `f(a=1, b` needs a value, too
_MAX_POOR = 3  # insertions after which only the first lines follow
_NO_CODE = b"\x01"  # what may stand in strings only
_END_COST = 2  # of the end of an unfinished lexeme


class Insertion(NamedTuple):
    """Terminals that join a text with what follows it.

    Attributes:
        text: Their spelling, to be written after the text.
        cost: Their cost, 2 or 3 for each.
        after: Snapshot after them.
    """

    text: bytes
    cost: int
    after: Snapshot


class Shortest:
    """Finds insertions with one grammar. Not thread-safe.

    Attributes:
        spellings: The spellings of the grammar's terminals.
        steps: Number of steps of all searches so far.
    """

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor, self._tables = acceptor, acceptor.machine.tables
        self.spellings = Spellings(self._tables, acceptor.lexer, acceptor.layout, acceptor.literals)
        self._rests = CheapestRests(self._tables, self.spellings.costs, acceptor.layout)
        self.steps = 0

    @property
    def size_bytes(self) -> int:
        """Approximate memory of the table of rests."""
        return self._rests.size_bytes

    def insertions(self, snapshot: Snapshot, joint: Joint, max_steps: int = MAX_STEPS) -> Iterator[Insertion]:
        """Yield insertions after which the text after the cursor follows, the cheapest first.

        Those after which only its first lines follow, where it cannot be read to the end, come last.

        Raises:
            GrammarBoundError: The search would take more steps, so there may be more insertions.
        """
        poor: list[tuple[Fit, Insertion]] = []
        tried: set[bytes] = set()
        found: tuple[bytes, ...] = ()  # what goes on from where the text after the cursor can follow is not tried
        steps = 0
        for way in self._ways(snapshot, joint).found():
            if steps >= max_steps:
                break
            taken = 1 if way is None else _TRIAL_STEPS
            steps, self.steps = steps + taken, self.steps + taken
            insertion = self._spelled(way, joint.suffix) if way is not None else None
            text = b"" if insertion is None else insertion.text.rstrip()
            if insertion is not None and text not in tried and not text.startswith(found):
                tried.add(text)
                fit = joint.fit(insertion.after)
                if fit is Fit.YES:
                    found += (text + b" ",) if text and not self._acceptor.layout.unfinished else ()
                    yield insertion
                elif fit is not Fit.NO:
                    poor.append((fit, insertion))
        poor.sort(key=lambda each: each[0], reverse=True)
        yield from (insertion for _, insertion in poor[:_MAX_POOR])
        if steps >= max_steps:
            raise GrammarBoundError(f"The search for a shortest insertion took {max_steps} steps, the maximum.")

    def level(self, snapshot: Snapshot) -> int:
        """Return the depth of the parser's stack when all that a text has finished is reduced."""
        return Ways(self._tables, self._rests, (), 1).level(snapshot)

    def _ways(self, snapshot: Snapshot, joint: Joint) -> Ways:
        """Return the search for what may stand before a text."""
        firsts = sorted(self.spellings.firsts(joint.suffix))
        visits = _VISITS_BEYOND_GRAMMAR if self._acceptor.layout.unfinished else 1
        ways = Ways(
            self._tables, self._rests, [self._rests.ways(each, begins=joint.is_broken) for each in firsts], visits
        )
        for cost, begun in self._beginnings(snapshot):
            ways.begin(cost, begun)
        return ways

    def _beginnings(self, snapshot: Snapshot) -> Iterator[tuple[int, Begun]]:
        """Yield the text itself, and with each end that its last lexeme may have."""
        yield 0, self._begun(snapshot, b"")
        unfinished = snapshot.pending.strip()
        if not unfinished:
            return
        separate = self._read(snapshot, b" ")
        if separate is not None and not separate.pending.strip():
            yield 0, self._begun(separate, b" ")
        longer = self._acceptor.literals.beginning_with(unfinished)
        ends = [self.spellings.texts[symbol][len(unfinished) :] + b" " for symbol in sorted(longer)]
        if separate is None or separate.pending.strip():
            ends += [end + space for end in ENDS for space in (b"", b" ")]
        for end in ends:
            after = self._read(snapshot, end)
            if after is not None and not (end.endswith(b" ") and after.pending.strip()):
                yield _END_COST if end.strip() else 0, self._begun(after, end)

    def _begun(self, after: Snapshot, inserted: bytes) -> Begun:
        """Return a text with what is inserted at its end. Whole lines of comments may wait for the code below them."""
        pending = after.pending
        is_blank = not pending.strip()
        in_line = pending.rpartition(b"\n")[2].strip()
        return Begun(after, inserted, is_blank or (not in_line and END_SYMBOL in self.spellings.firsts(pending)))

    def _spelled(self, way: Way, suffix: bytes) -> Insertion | None:
        """Return a way with its spelling before a suffix; None if the acceptor rejects it."""
        begun, layout = way.begun, self._acceptor.layout
        texts: list[bytes] = []
        start, state, marks = b" ", begun.after.heads[0].layout, tuple[int, ...]()
        for terminal in way.terminals:
            if terminal in layout.costs:
                marks += (terminal,)
                continue
            text = self.spellings.texts.get(terminal) or self._end_of_string(begun.after, b" ".join((b"", *texts)))
            if not texts and not marks:
                start = layout.before(state, begun.after.pending)
            line, state = layout.between(state, marks)
            texts, marks = [*texts, line + text], ()
        if not texts:
            return Insertion(begun.inserted, way.cost, begun.after)
        inserted = start + b" ".join(texts) + (b"" if suffix[:1].isspace() else b" ")
        after = self._read(begun.after, inserted)
        return None if after is None else Insertion(begun.inserted + inserted, way.cost, after)

    def _end_of_string(self, snapshot: Snapshot, inserted: bytes) -> bytes:
        """Return what ends the string around an insertion, which only the scanner's state tells; b"" for none."""
        for end in filter(bytes.strip, ENDS):
            after = self._read(snapshot, inserted + end + b" ")
            is_over = after is not None and self._read(after, _NO_CODE) is None
            if after is not None and not after.pending.strip() and is_over:
                return end
        return b""

    def _read(self, snapshot: Snapshot, data: bytes) -> Snapshot | None:
        try:
            return self._acceptor.read(snapshot, data)
        except GrammarBoundError:
            return None
