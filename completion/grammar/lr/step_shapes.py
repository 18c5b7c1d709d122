"""What a lookahead does to the top of a stack, learned once for each run of states that it depends on.

A strict step reduces and then shifts. It looks only at the states that its reductions uncover, never at what lies
below them: so it is remembered by those few states, and holds in every file and at every depth.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from completion.errors import GrammarBoundError
from completion.grammar.lr.tables import END_SYMBOL, NO_LOOKAHEAD, Action, ActionKind, Tables

MAX_PENDING_STEPS = 256  # reductions for one lookahead; 38 is the most in ten languages' real sources
MAX_SHAPES = 100_000  # about 30 MB
BOTTOM = -1  # stands for the state below the first one


class Rise(NamedTuple):
    """A stack in terms of another one: entries are taken off, then states are put on.

    Attributes:
        taken: How many entries go.
        states: What is put on what is left, outermost last.
    """

    taken: int
    states: tuple[int, ...]


class Shape(NamedTuple):
    """Where a lookahead leads from a run of states.

    Attributes:
        after: Stacks after the lookahead was shifted.
        retry: Stacks that were reduced at a conflict and look for their own lexeme from the same offset.
        accepted: The end of the text was accepted.
    """

    after: tuple[Rise, ...]
    retry: tuple[Rise, ...]
    accepted: bool


Level: TypeAlias = "dict[int, Level | Shape]"


class Way(Protocol):
    """A way down a stack.

    Attributes:
        states: From the top down, as far as they were needed until now.
    """

    states: list[int]

    def deepen(self) -> bool:
        """Add the state below, `BOTTOM` below the first one; whether there is only one way on."""


class StepShapes:
    """Shapes of one grammar's steps in a tree: by lookahead, then by the stack's states from the top down."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._roots: dict[tuple[int, int], Level] = {}
        self._count = 0

    def root(self, symbol: int, keyword: int) -> Level:
        """Where the tree of a lookahead begins.

        Args:
            symbol: The terminal.
            keyword: If the terminal is the word token: the keyword that its text is, 0 for none.
        """
        level = self._roots.get((symbol, keyword))
        if level is None:
            level = self._roots[symbol, keyword] = {}
        return level

    def learn(self, level: Level, way: Way, symbol: int, keyword: int) -> Level | Shape:
        """What the lookahead does on the way down, or a level that asks which way it goes on.

        Args:
            level: Reached by all of the way's states but the last.
            way: A way down a stack, as far as it was needed until now; goes deeper if need be.
            symbol: The terminal.
            keyword: See `root`.

        Raises:
            GrammarBoundError: The lookahead needs more reductions than are followed.
        """
        depth = len(way.states) - 1
        found = _Run(self._tables, way, symbol, keyword).shape()
        for state in way.states[depth:-1]:
            level = level.setdefault(state, {})  # type: ignore[assignment]  # a shape would have ended the way
        entry: Level | Shape = {} if found is None else found
        level[way.states[-1]] = entry
        self._count += 1
        return entry

    def trim(self) -> None:
        """Forget everything when it is much."""
        if self._count > MAX_SHAPES:
            self._roots.clear()
            self._count = 0


class _UncoveredError(Exception):
    """A reduction reached below a place where two stacks meet."""


class _Run:
    """The reductions and shifts for one lookahead on a way down."""

    def __init__(self, tables: Tables, way: Way, symbol: int, keyword: int) -> None:
        self._tables, self._way = tables, way
        self._word = symbol if keyword else 0
        self._symbol, self._keyword = symbol, keyword
        self._shifted: list[Rise] = []
        self._retry: list[Rise] = []
        self._accepted = False
        self._seen: set[tuple[Rise, int]] = set()
        self._work: list[tuple[Rise, int]] = []

    def shape(self) -> Shape | None:
        """The shape; None if it depends on states below a place where the way parts."""
        try:
            self._add(Rise(0, ()), self._choose(self._way.states[0]))
            while self._work:
                self._act(*self._work.pop())
            settled = [top for stack in self._shifted for top in self._settle(stack)]
        except _UncoveredError:
            return None
        return Shape(tuple(dict.fromkeys(settled)), tuple(dict.fromkeys(self._retry)), self._accepted)

    def _choose(self, state: int) -> int:
        """A word is a keyword where the keyword may follow or is reserved."""
        keyword = self._keyword
        if keyword and (self._tables.actions(state, keyword) or self._tables.is_reserved(state, keyword)):
            return keyword
        return self._symbol

    def _state(self, stack: Rise) -> int:
        return stack.states[-1] if stack.states else self._below(stack.taken)

    def _below(self, depth: int) -> int:
        """The state `depth` entries below the top; `BOTTOM` below the first."""
        states = self._way.states
        while depth >= len(states) and states[-1] != BOTTOM:
            if not self._way.deepen():
                raise _UncoveredError
        return states[depth] if depth < len(states) else BOTTOM

    def _add(self, stack: Rise, symbol: int) -> None:
        if (stack, symbol) not in self._seen:
            if len(self._seen) >= MAX_PENDING_STEPS:
                raise GrammarBoundError(f"One token needs more than {MAX_PENDING_STEPS} reductions.")
            self._seen.add((stack, symbol))
            self._work.append((stack, symbol))

    def _act(self, stack: Rise, symbol: int) -> None:
        state = self._state(stack)
        actions = self._tables.actions(state, symbol)
        if not actions and symbol != self._word and self._word and not self._tables.is_reserved(state, symbol):
            symbol = self._word
            actions = self._tables.actions(state, symbol)
        for action in actions:
            if action.kind is ActionKind.SHIFT:
                if not action.repetition:
                    self._shifted.append(stack if action.extra else _push(stack, action.state))
            elif action.kind is ActionKind.REDUCE:
                self._reduce(stack, action, symbol, conflict=len(actions) > 1)
            elif action.kind is ActionKind.ACCEPT:
                self._accepted = True

    def _reduce(self, stack: Rise, action: Action, symbol: int, *, conflict: bool) -> None:
        base = _pop(stack, action.child_count)
        state = self._goto(base, action.symbol)
        if not state:
            return
        reduced = _push(base, state)
        self._add(reduced, symbol)
        if conflict and self._tables.lex_mode(state) != self._tables.lex_mode(self._state(stack)):
            self._retry.append(reduced)

    def _goto(self, base: Rise, symbol: int) -> int:
        state = self._state(base)
        return 0 if state == BOTTOM else self._tables.goto(state, symbol)

    def _settle(self, stack: Rise) -> list[Rise]:
        """A state that ends a non-terminal extra reduces without a lookahead, and the extra leaves no entry."""
        top = self._state(stack)
        if self._tables.lex_mode(top).lex_state != NO_LOOKAHEAD:
            return [stack]
        settled: list[Rise] = []
        for action in self._tables.actions(top, END_SYMBOL):
            if action.kind is not ActionKind.REDUCE:
                continue
            base = _pop(stack, action.child_count)
            state = self._goto(base, action.symbol)
            if state:
                settled += self._settle(base if state == self._state(base) else _push(base, state))
        return settled


def _push(stack: Rise, state: int) -> Rise:
    return Rise(stack.taken, (*stack.states, state))


def _pop(stack: Rise, count: int) -> Rise:
    on_top = len(stack.states)
    if count <= on_top:
        return Rise(stack.taken, stack.states[: on_top - count])
    return Rise(stack.taken + count - on_top, ())
