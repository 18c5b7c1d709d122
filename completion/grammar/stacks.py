"""Sets of LR stacks that share their tails, and the strict (never recovering) steps between them.

A stack node is a parse state over a set of parents; nodes and sets are interned, so that equal sets are one object
and a step, once taken, is a dictionary look-up. Source: Tomita's graph-structured stack, with tree-sitter's actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from completion.grammar.errors import GrammarBoundError
from completion.grammar.tables import END_SYMBOL, NO_LOOKAHEAD, Action, ActionKind, LexMode, Tables

START_STATE = 1  # tree-sitter's state 0 is its error state
MAX_PENDING_STEPS = 256  # reductions for one lookahead; 38 is the most in ten languages' real sources
MAX_INTERNED_NODES = 200_000  # about 60 MB; beyond it the tables start afresh


class StackNode:
    """A parse state on top of every stack of its parents. Immutable; compared by identity, for it is interned."""

    __slots__ = ("parents", "serial", "state")

    def __init__(self, state: int, parents: tuple[StackNode, ...], serial: int) -> None:
        self.state, self.parents, self.serial = state, parents, serial


class StackSet:
    """All stacks that explain the text so far: one node a state. Immutable but for its memory of steps taken."""

    __slots__ = ("groups", "nodes", "steps")

    def __init__(self, nodes: tuple[StackNode, ...]) -> None:
        self.nodes = nodes
        self.groups: list[tuple[LexMode, StackSet]] | None = None
        self.steps: dict[tuple[int, int], Step] = {}


class Step:
    """Where a lookahead leads.

    Attributes:
        after: Stacks after the lookahead was shifted; None if no stack takes it.
        retry: Stacks that were reduced at a conflict and look for their own lexeme from the same offset.
        accepted: The end of the text was accepted.
    """

    __slots__ = ("accepted", "after", "retry")

    def __init__(self, after: StackSet | None, retry: StackSet | None, *, accepted: bool) -> None:
        self.after, self.retry, self.accepted = after, retry, accepted


class StackMachine:
    """Makes and steps stack sets of one grammar."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._nodes: dict[tuple[int, tuple[StackNode, ...]], StackNode] = {}
        self._sets: dict[tuple[StackNode, ...], StackSet] = {}
        self._serial = 0

    def start(self) -> StackSet:
        """The stack before the first token of a file."""
        return self._set([self._node(START_STATE, ())])

    def union(self, one: StackSet, other: StackSet) -> StackSet:
        """Stacks of either set."""
        if one is other:
            return one
        return self._set(one.nodes + other.nodes)

    def groups(self, stacks: StackSet) -> list[tuple[LexMode, StackSet]]:
        """The set split by lexer mode."""
        if stacks.groups is None:
            by_mode: dict[LexMode, list[StackNode]] = {}
            for node in stacks.nodes:
                by_mode.setdefault(self.tables.lex_mode(node.state), []).append(node)
            stacks.groups = [(mode, self._set(nodes)) for mode, nodes in by_mode.items()]
        return stacks.groups

    def step(self, stacks: StackSet, symbol: int, keyword: int = 0) -> Step:
        """Shift a lookahead, after every reduction that it allows.

        Args:
            stacks: Where to start.
            symbol: The terminal.
            keyword: If the terminal is the word token: the keyword that its text is, 0 for none.
        """
        known = stacks.steps.get((symbol, keyword))
        if known is None:
            known = stacks.steps[symbol, keyword] = _StepRun(self, symbol, keyword).run(stacks)
        return known

    def takes_as_extra(self, stacks: StackSet, symbol: int) -> bool:
        """Whether `symbol` leaves the top state of each stack as it is."""
        return all(any(a.extra for a in self.tables.actions(n.state, symbol)) for n in stacks.nodes)

    @property
    def size(self) -> int:
        """How many nodes are interned."""
        return len(self._nodes)

    def trim(self) -> None:
        """Forget interned nodes when there are many; sets that are in use stay valid."""
        if len(self._nodes) > MAX_INTERNED_NODES:
            self._nodes.clear()
            self._sets.clear()

    def _node(self, state: int, parents: tuple[StackNode, ...]) -> StackNode:
        key = (state, parents)
        node = self._nodes.get(key)
        if node is None:
            self._serial += 1
            node = self._nodes[key] = StackNode(state, parents, self._serial)
        return node

    def _set(self, nodes: Iterable[StackNode]) -> StackSet:
        """Intern a set, with the nodes of one state merged into one."""
        by_state: dict[int, StackNode] = {}
        for node in nodes:
            other = by_state.get(node.state)
            if other is not None and other is not node:
                parents = {*other.parents, *node.parents}
                node = self._node(node.state, tuple(sorted(parents, key=_serial_of)))  # noqa: PLW2901
            by_state[node.state] = node
        key = tuple(sorted(by_state.values(), key=_serial_of))
        known = self._sets.get(key)
        if known is None:
            known = self._sets[key] = StackSet(key)
        return known

    def push(self, state: int, base: StackNode) -> StackNode:
        """`state` on top of one stack node."""
        return self._node(state, (base,))

    def optional_set(self, nodes: Sequence[StackNode]) -> StackSet | None:
        """The set of these nodes, None if there are none."""
        return self._set(nodes) if nodes else None


def _serial_of(node: StackNode) -> int:
    return node.serial


def pop(node: StackNode, count: int) -> list[StackNode]:
    """The nodes `count` entries below `node`, each once."""
    level = [node]
    for _ in range(count):
        level = list(dict.fromkeys(parent for below in level for parent in below.parents))
    return level


class _StepRun:
    """The reductions and shifts for one lookahead."""

    def __init__(self, machine: StackMachine, symbol: int, keyword: int) -> None:
        self._machine, self._tables = machine, machine.tables
        self._word = symbol if keyword else 0
        self._symbol, self._keyword = symbol, keyword
        self._shifted: list[StackNode] = []
        self._retry: list[StackNode] = []
        self._accepted = False
        self._seen: set[tuple[StackNode, int]] = set()
        self._work: list[tuple[StackNode, int]] = []

    def run(self, stacks: StackSet) -> Step:
        for node in stacks.nodes:
            self._add(node, self._choose(node.state))
        while self._work:
            self._act(*self._work.pop())
        machine = self._machine
        settled = [top for node in self._shifted for top in self._settle(node)]
        return Step(machine.optional_set(settled), machine.optional_set(self._retry), accepted=self._accepted)

    def _choose(self, state: int) -> int:
        """A word is a keyword where the keyword may follow or is reserved."""
        keyword = self._keyword
        if keyword and (self._tables.actions(state, keyword) or self._tables.is_reserved(state, keyword)):
            return keyword
        return self._symbol

    def _add(self, node: StackNode, symbol: int) -> None:
        if (node, symbol) not in self._seen:
            if len(self._seen) >= MAX_PENDING_STEPS:
                raise GrammarBoundError(f"One token needs more than {MAX_PENDING_STEPS} reductions.")
            self._seen.add((node, symbol))
            self._work.append((node, symbol))

    def _act(self, node: StackNode, symbol: int) -> None:
        actions = self._tables.actions(node.state, symbol)
        if not actions and symbol != self._word and self._word and not self._tables.is_reserved(node.state, symbol):
            symbol = self._word
            actions = self._tables.actions(node.state, symbol)
        for action in actions:
            if action.kind is ActionKind.SHIFT:
                if not action.repetition:
                    self._shifted.append(node if action.extra else self._machine.push(action.state, node))
            elif action.kind is ActionKind.REDUCE:
                self._reduce(node, action, symbol, conflict=len(actions) > 1)
            elif action.kind is ActionKind.ACCEPT:
                self._accepted = True

    def _reduce(self, node: StackNode, action: Action, symbol: int, *, conflict: bool) -> None:
        for base in pop(node, action.child_count):
            state = self._tables.goto(base.state, action.symbol)
            if not state:
                continue
            reduced = self._machine.push(state, base)
            self._add(reduced, symbol)
            if conflict and self._tables.lex_mode(state) != self._tables.lex_mode(node.state):
                self._retry.append(reduced)

    def _settle(self, node: StackNode) -> list[StackNode]:
        """A state that ends a non-terminal extra reduces without a lookahead, and the extra leaves no entry."""
        if self._tables.lex_mode(node.state).lex_state != NO_LOOKAHEAD:
            return [node]
        settled: list[StackNode] = []
        for action in self._tables.actions(node.state, END_SYMBOL):
            if action.kind is not ActionKind.REDUCE:
                continue
            for base in pop(node, action.child_count):
                state = self._tables.goto(base.state, action.symbol)
                if state:
                    below = base if state == base.state else self._machine.push(state, base)
                    settled += self._settle(below)
        return settled
