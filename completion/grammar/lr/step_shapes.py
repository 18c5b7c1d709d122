"""A cache of what a lookahead does to the top of a stack, by the states that it depends on.

A step reduces and then shifts. It depends only on the states that its reductions uncover, never on those below. So a
cached step is valid in every file and at every depth.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from completion.errors import GrammarBoundError
from completion.grammar.lr.tables import END_SYMBOL, NO_LOOKAHEAD, Action, ActionKind, Tables

MAX_PENDING_STEPS = 256  # reductions for one lookahead; real sources of ten languages need at most 38
MAX_SHAPES = 100_000  # about 60 MB
_SHAPE_BYTES = 600  # of a shape with its levels: 540 to 660 in nine languages
BOTTOM = -1  # state below the first state of a stack


class StackChange(NamedTuple):
    """A change of a stack: entries are popped, then states are pushed.

    Attributes:
        popped: Number of entries to pop.
        states: States to push, the top one last.
    """

    popped: int
    states: tuple[int, ...]


class Shape(NamedTuple):
    """The result of a lookahead for some states at the top of a stack.

    Attributes:
        after: Stacks after the lookahead was shifted.
        retry: Stacks that were reduced at a conflict and need their own lexeme at the same offset.
        accepted: Whether the end of the text was accepted.
    """

    after: tuple[StackChange, ...]
    retry: tuple[StackChange, ...]
    accepted: bool


Level: TypeAlias = "dict[int, Level | Shape]"


class StackPath(Protocol):
    """A path down a stack.

    Attributes:
        states: States from the top down, as far as they were needed so far.
    """

    states: list[int]

    def deepen(self) -> bool:
        """Add the state below (`BOTTOM` below the first) if there is exactly one; return whether there was."""


class StepShapes:
    """A tree of the shapes of one grammar's steps: by lookahead, then by the stack's states from the top down."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._roots: dict[tuple[int, int], Level] = {}
        self._count = 0

    def root(self, symbol: int, keyword: int) -> Level:
        """Return the root of a lookahead's tree.

        Args:
            symbol: Terminal symbol.
            keyword: Keyword symbol of a word token that is also a keyword; 0 otherwise.
        """
        level = self._roots.get((symbol, keyword))
        if level is None:
            level = self._roots[symbol, keyword] = {}
        return level

    def learn(self, level: Level, path: StackPath, symbol: int, keyword: int) -> Level | Shape:
        """Compute and cache the shape for a path; return a new level where the shape depends on how the path goes on.

        Args:
            level: Level of the path's states without the last.
            path: A path down a stack; it is deepened as far as the reductions need.
            symbol: Terminal symbol.
            keyword: See `root`.

        Raises:
            GrammarBoundError: The lookahead needs more reductions than the maximum.
        """
        depth = len(path.states) - 1
        found = _Run(self._tables, path, symbol, keyword).shape()
        for state in path.states[depth:-1]:
            level = level.setdefault(state, {})  # type: ignore[assignment]  # no shape lies above this one
        entry: Level | Shape = {} if found is None else found
        level[path.states[-1]] = entry
        self._count += 1
        return entry

    @property
    def size_bytes(self) -> int:
        """Approximate memory of the shapes."""
        return _SHAPE_BYTES * self._count

    def trim(self) -> None:
        """Clear all shapes if there are more than the maximum."""
        if self._count > MAX_SHAPES:
            self._roots.clear()
            self._count = 0


class _UncoveredError(Exception):
    """A reduction needs states below a node with several parents."""


class _Run:
    """The reductions and shifts for one lookahead on a path."""

    def __init__(self, tables: Tables, path: StackPath, symbol: int, keyword: int) -> None:
        self._tables, self._path = tables, path
        self._word = symbol if keyword else 0
        self._symbol, self._keyword = symbol, keyword
        self._shifted: list[StackChange] = []
        self._retry: list[StackChange] = []
        self._accepted = False
        self._seen: set[tuple[StackChange, int]] = set()
        self._work: list[tuple[StackChange, int]] = []

    def shape(self) -> Shape | None:
        """Return the shape; None if it depends on states below a node with several parents."""
        try:
            self._add(StackChange(0, ()), self._choose(self._path.states[0]))
            while self._work:
                self._act(*self._work.pop())
            settled = [top for stack in self._shifted for top in self._settle(stack)]
        except _UncoveredError:
            return None
        return Shape(tuple(dict.fromkeys(settled)), tuple(dict.fromkeys(self._retry)), self._accepted)

    def _choose(self, state: int) -> int:
        """Return the keyword for a word where the keyword can follow or is reserved; else the symbol."""
        keyword = self._keyword
        if keyword and (self._tables.actions(state, keyword) or self._tables.is_reserved(state, keyword)):
            return keyword
        return self._symbol

    def _state(self, stack: StackChange) -> int:
        return stack.states[-1] if stack.states else self._below(stack.popped)

    def _below(self, depth: int) -> int:
        """Return the state `depth` entries below the top; `BOTTOM` below the first."""
        states = self._path.states
        while depth >= len(states) and states[-1] != BOTTOM:
            if not self._path.deepen():
                raise _UncoveredError
        return states[depth] if depth < len(states) else BOTTOM

    def _add(self, stack: StackChange, symbol: int) -> None:
        if (stack, symbol) not in self._seen:
            if len(self._seen) >= MAX_PENDING_STEPS:
                raise GrammarBoundError(f"A token needs more than {MAX_PENDING_STEPS} reductions.")
            self._seen.add((stack, symbol))
            self._work.append((stack, symbol))

    def _act(self, stack: StackChange, symbol: int) -> None:
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

    def _reduce(self, stack: StackChange, action: Action, symbol: int, *, conflict: bool) -> None:
        base = _pop(stack, action.child_count)
        state = self._goto(base, action.symbol)
        if not state:
            return
        reduced = _push(base, state)
        self._add(reduced, symbol)
        if conflict and self._tables.lex_mode(state) != self._tables.lex_mode(self._state(stack)):
            self._retry.append(reduced)

    def _goto(self, base: StackChange, symbol: int) -> int:
        state = self._state(base)
        return 0 if state == BOTTOM else self._tables.goto(state, symbol)

    def _settle(self, stack: StackChange) -> list[StackChange]:
        """Reduce a state that ends a non-terminal extra, which needs no lookahead; the extra leaves no entry."""
        top = self._state(stack)
        if self._tables.lex_mode(top).lex_state != NO_LOOKAHEAD:
            return [stack]
        settled: list[StackChange] = []
        for action in self._tables.actions(top, END_SYMBOL):
            if action.kind is not ActionKind.REDUCE:
                continue
            base = _pop(stack, action.child_count)
            state = self._goto(base, action.symbol)
            if state:
                settled += self._settle(base if state == self._state(base) else _push(base, state))
        return settled


def _push(stack: StackChange, state: int) -> StackChange:
    return StackChange(stack.popped, (*stack.states, state))


def _pop(stack: StackChange, count: int) -> StackChange:
    on_top = len(stack.states)
    if count <= on_top:
        return StackChange(stack.popped, stack.states[: on_top - count])
    return StackChange(stack.popped + count - on_top, ())
