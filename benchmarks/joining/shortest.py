"""Shortest insertion: the cheapest terminals after a text with which what stands after the cursor can follow it.

`x = foo(a` lacks a bracket, `try { f();` in Java lacks `} finally { }`, and `for i, v` in Go lacks `= range a { }`. The
search goes from item to item down the parser's stacks, the cheapest rest of an item first
(`benchmarks.joining.cheapest`), and to the first token after the cursor from each state on the way. What it finds is
spelled and read by the acceptor together with the text after the cursor, which decides. It needs no data about a
language. Source of the idea: "Don't Panic! Better, Fewer, Syntax Errors for LR Parsers" (CPCT+), whose searches insert
single terminals; here an edge is the rest of an item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time

from benchmarks.joining.cheapest import CheapestRests
from benchmarks.joining.grammar import InsertionGrammar
from benchmarks.joining.joint import Fit, Joint
from benchmarks.joining.spellings import ENDS, Spellings
from benchmarks.joining.ways import Reductions, Way, Ways
from completion.errors import GrammarBoundError
from completion.grammar.lr.advance import Snapshot

MAX_STEPS = 2_000
"""Maximum number of steps of one search, after which its result is unknown."""
_TRIAL_STEPS = 10  # of a way that the acceptor reads; any other way is one step
_VISITS_BEYOND_GRAMMAR = (
    4  # ways to a stack, if the language forbids some: `f(a=1, b` needs a value, not just a bracket
)
_MAX_POOR = 3  # insertions after which only the first lines follow
_END_COST = 2  # of the end of an unfinished lexeme


@dataclass(frozen=True, slots=True)
class Insertion:
    """Terminals that join a text with what follows it.

    Attributes:
        text: Their spelling, to be written after the text.
        cost: Their cost, 2 or 3 for each.
        after: Snapshot after them.
    """

    text: bytes
    cost: int
    after: Snapshot


@dataclass(slots=True)
class Search:
    """What one search cost so far.

    Attributes:
        steps: Steps, which the same search always takes, whatever else was searched before.
        ms: Processor time in milliseconds, without what the caller does between two insertions.
        is_bounded: Whether the maximum of steps ended it.
    """

    steps: int = 0
    ms: float = 0.0
    is_bounded: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Begun:
    """A text that ends between two lexemes, perhaps because the end of its last one was inserted."""

    after: Snapshot
    inserted: bytes


class Shortest:
    """Finds insertions with one grammar. Not thread-safe.

    Attributes:
        searches: The searches so far, each with what it cost.
    """

    def __init__(self, grammar: InsertionGrammar) -> None:
        self._grammar, self._acceptor = grammar, grammar.acceptor
        self.spellings = Spellings(grammar)
        self._rests = CheapestRests(grammar, self.spellings.costs)
        self.searches: list[Search] = []

    def insertions(self, snapshot: Snapshot, joint: Joint, max_steps: int = MAX_STEPS) -> Iterator[Insertion]:
        """Yield insertions after which the text after the cursor follows, the cheapest first.

        Those after which only its first lines follow, where it cannot be read to the end, come last.

        Args:
            snapshot: Snapshot before the insertion.
            joint: The text after the cursor.
            max_steps: Maximum number of steps of the search.

        Raises:
            GrammarBoundError: The search would take more steps, so there may be more insertions.
        """
        search = Search()
        self.searches.append(search)
        found = self._found(snapshot, joint, max_steps, search)
        while True:
            started = process_time()
            try:
                insertion = next(found, None)
            finally:
                search.ms += 1000 * (process_time() - started)
            if insertion is None:
                return
            yield insertion

    def _found(self, snapshot: Snapshot, joint: Joint, max_steps: int, search: Search) -> Iterator[Insertion]:
        poor: list[Insertion] = []
        tried: set[bytes] = set()
        search.is_bounded = max_steps <= 0
        for way in () if search.is_bounded else self._ways(snapshot, joint).found():
            search.steps += 1 if way is None else _TRIAL_STEPS
            insertion = self._spelled(way, joint.suffix) if way is not None else None
            if insertion is not None and insertion.text not in tried:
                tried.add(insertion.text)
                fit = joint.fit(insertion.after)
                if fit is Fit.SO_FAR:
                    poor.append(insertion)
                elif fit is Fit.YES:
                    yield insertion
            search.is_bounded = search.steps >= max_steps
            if search.is_bounded:
                break
        yield from poor[:_MAX_POOR]
        if search.is_bounded:
            raise GrammarBoundError(f"The search for a shortest insertion took {max_steps} steps, the maximum.")

    def _ways(self, snapshot: Snapshot, joint: Joint) -> Ways[_Begun]:
        """Return the search for what may stand before a text."""
        firsts = {each: self._rests.distances(each) for each in sorted(self.spellings.firsts(joint.suffix))}
        visits = _VISITS_BEYOND_GRAMMAR if self._grammar.layout.unfinished else 1
        ways: Ways[_Begun] = Ways(self._rests, Reductions(self._grammar.tables), firsts, visits)
        for cost, begun in self._beginnings(snapshot):
            heads = () if begun.after.pending.strip() else begun.after.heads
            ways.begin(begun, cost, (node for head in heads for node in head.stacks.nodes))
        return ways

    def level(self, snapshot: Snapshot) -> int:
        """Return the depth of the parser's stack when all that a text has finished is reduced."""
        reductions = Reductions(self._grammar.tables)
        work = [node for head in snapshot.heads for node in head.stacks.nodes]
        seen = set(work)
        while work:
            top = work.pop()
            for rest in self._rests.rests(top.state):
                if not rest.cost:
                    found = set(reductions.reduced(top, rest.depth, rest.symbol)) - seen
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
        longer = self._grammar.literals.beginning_with(unfinished)
        ends = [self.spellings.texts[symbol][len(unfinished) :] + b" " for symbol in sorted(longer)]
        if separate is None or separate.pending.strip():
            ends += [end + space for end in ENDS for space in (b"", b" ")]
        for end in ends:
            after = self._read(snapshot, end)
            if after is not None and not (end.endswith(b" ") and after.pending.strip()):
                yield _END_COST if end.strip() else 0, _Begun(after, end)

    def _spelled(self, way: Way[_Begun], suffix: bytes) -> Insertion | None:
        """Return a way with its spelling before a suffix; None if the acceptor rejects it."""
        begun, layout = way.origin, self._grammar.layout
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
            if after is not None and not after.pending.strip():
                return end
        return b""

    def _read(self, snapshot: Snapshot, data: bytes) -> Snapshot | None:
        try:
            return self._acceptor.read(snapshot, data)
        except GrammarBoundError:
            return None
