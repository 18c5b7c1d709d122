"""Sets of LR stacks that share their tails, and the steps between them, without error recovery.

A stack node is a parse state above a set of parents. Nodes and sets are interned: equal sets are one object, and a
repeated step is a dictionary look-up. Source: Tomita's graph-structured stack, with tree-sitter's actions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from completion.errors import GrammarBoundError
from completion.grammar.lr.tables import END_SYMBOL, NO_LOOKAHEAD, Action, ActionKind, LexMode, Tables

_NODE_BYTES = 470  # of an interned node with its sets and steps: 460 to 500 in eight languages
_SHIFT, _REDUCE = ActionKind.SHIFT, ActionKind.REDUCE
START_STATE = 1  # tree-sitter's state 0 is its error state
MAX_REDUCTIONS = 1_000  # of one lookahead on all stacks
MAX_DEPTH = 1_000  # nodes of a stack, which snapshots keep; real sources of five languages need at most 160
MAX_INTERNED_NODES = 60_000  # about 28 MB; more nodes cause long pauses of the garbage collector


class StackNode:
    """A parse state on top of every stack of its parents. Immutable and interned: compare by identity.

    Attributes:
        depth: Number of nodes of the stack, by the first parents.
        alone: The set that holds only this node; None until it is first needed.
    """

    __slots__ = ("alone", "depth", "parents", "serial", "state")

    def __init__(self, state: int, parents: tuple[StackNode, ...], serial: int) -> None:
        self.state, self.parents, self.serial = state, parents, serial
        self.depth: int = parents[0].depth + 1 if parents else 1
        self.alone: StackSet | None = None


class StackSet:
    """All stacks of one interpretation of the text, one node for each state. Immutable except for its caches.

    Attributes:
        nodes: Top nodes of the stacks.
        groups: The set split by lexer mode; None until it is first needed.
        steps: Cached steps by (symbol, keyword); None until the second step.
        was_stepped: Whether a step was popped from the set.
    """

    __slots__ = ("groups", "nodes", "steps", "was_stepped")

    def __init__(self, nodes: tuple[StackNode, ...]) -> None:
        self.nodes = nodes
        self.groups: list[tuple[LexMode, StackSet]] | None = None
        self.steps: dict[tuple[int, int], Step] | None = None
        self.was_stepped = False


class Step(NamedTuple):
    """The result of a lookahead.

    Attributes:
        after: Stacks after the lookahead was shifted; None if no stack accepts it.
        retry: Stacks that were reduced at a conflict and need their own lexeme at the same offset; None if none were.
        accepted: Whether the end of the text was accepted.
    """

    after: StackSet | None
    retry: StackSet | None
    accepted: bool


class StackMachine:
    """Makes and steps stack sets of one grammar."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._nodes: dict[int | tuple[int, ...], StackNode] = {}  # keys of numbers: the garbage collector skips them
        self._sets: dict[tuple[int, ...], StackSet] = {}
        self._serial = 0

    def start(self) -> StackSet:
        """Return the stack before the first token of a file."""
        return self._alone(self.node(START_STATE, ()))

    def union(self, one: StackSet, other: StackSet) -> StackSet:
        """Return the stacks of both sets."""
        if one is other:
            return one
        return self._set(one.nodes + other.nodes)

    def groups(self, stacks: StackSet) -> list[tuple[LexMode, StackSet]]:
        """Return the set split by lexer mode."""
        if stacks.groups is None:
            by_mode: dict[LexMode, list[StackNode]] = {}
            for node in stacks.nodes:
                by_mode.setdefault(self.tables.lex_mode(node.state), []).append(node)
            stacks.groups = [(mode, self._set(nodes)) for mode, nodes in by_mode.items()]
        return stacks.groups

    def step(self, stacks: StackSet, symbol: int, keyword: int = 0) -> Step:
        """Shift a lookahead after every reduction that it allows; the keyword is that of a word that is also one, or 0.

        Raises:
            GrammarBoundError: The lookahead needs more reductions than the maximum.
        """
        if stacks.steps is None:
            step = self._step(stacks, symbol, keyword)
            if stacks.was_stepped:
                stacks.steps = {(symbol, keyword): step}
            stacks.was_stepped = True
            return step
        known = stacks.steps.get((symbol, keyword))
        if known is None:
            known = stacks.steps[symbol, keyword] = self._step(stacks, symbol, keyword)
        return known

    def takes_as_extra(self, stacks: StackSet, symbol: int) -> bool:
        """Return whether `symbol` is an extra for every stack: it leaves the top state unchanged."""
        return all(any(a.extra for a in self.tables.actions(n.state, symbol)) for n in stacks.nodes)

    @property
    def size_bytes(self) -> int:
        """Approximate memory of the interned nodes, their sets and the cached steps."""
        return _NODE_BYTES * len(self._nodes)

    def trim(self) -> None:
        """Clear interned nodes and cached steps that exceed their maximum; sets in use stay valid."""
        if len(self._nodes) > MAX_INTERNED_NODES:
            self._nodes.clear()
            self._sets.clear()

    def _step(self, stacks: StackSet, symbol: int, keyword: int) -> Step:
        lookahead = _Lookahead(self, symbol, keyword)
        lookahead.read(stacks.nodes)
        after, retry = lookahead.after, lookahead.retry
        return Step(self._set(after) if after else None, self._set(retry) if retry else None, lookahead.accepted)

    def node(self, state: int, parents: tuple[StackNode, ...]) -> StackNode:
        """Return the interned node of a state above its parents."""
        key = parents[0].serial << 16 | state if len(parents) == 1 else (state, *map(_serial_of, parents))
        node = self._nodes.get(key)
        if node is None:
            self._serial += 1
            node = self._nodes[key] = StackNode(state, parents, self._serial)
            if node.depth > MAX_DEPTH:
                raise GrammarBoundError(f"The text nests deeper than {MAX_DEPTH} nodes of the parser's stack.")
        return node

    def _set(self, nodes: Sequence[StackNode]) -> StackSet:
        """Return the interned set of nodes, with nodes of the same state merged."""
        if len(nodes) == 1:
            return self._alone(nodes[0])
        by_state: dict[int, StackNode] = {}
        for node in nodes:
            other = by_state.get(node.state)
            if other is not None and other is not node:
                parents = {*other.parents, *node.parents}
                node = self.node(node.state, tuple(sorted(parents, key=_serial_of)))  # noqa: PLW2901
            by_state[node.state] = node
        if len(by_state) == 1:
            return self._alone(*by_state.values())
        merged = tuple(sorted(by_state.values(), key=_serial_of))
        key = tuple([node.serial for node in merged])
        known = self._sets.get(key)
        if known is None:
            known = self._sets[key] = StackSet(merged)
        return known

    def _alone(self, node: StackNode) -> StackSet:
        if node.alone is None:
            node.alone = StackSet((node,))
        return node.alone


class _Lookahead:
    """The reductions and shifts for one lookahead.

    Attributes:
        after: Stacks after the lookahead was shifted.
        retry: Stacks that were reduced at a conflict and need their own lexeme at the same offset.
        accepted: Whether the end of the text was accepted.
    """

    def __init__(self, machine: StackMachine, symbol: int, keyword: int) -> None:
        self._tables, self._node = machine.tables, machine.node
        self._symbol, self._keyword, self._word = symbol, keyword, symbol if keyword else 0
        self._seen: set[tuple[StackNode, int]] = set()
        self._work: list[tuple[StackNode, int]] = []
        self.after: list[StackNode] = []
        self.retry: list[StackNode] = []
        self.accepted = False

    def read(self, nodes: Sequence[StackNode]) -> None:
        """Follow every reduction that the lookahead allows after the nodes."""
        for node in nodes:
            self._work.append((node, self._choose(node.state) if self._keyword else self._symbol))
        while self._work:
            each = self._work.pop()
            if each not in self._seen:
                if len(self._seen) >= MAX_REDUCTIONS:
                    raise GrammarBoundError(f"A token needs more than {MAX_REDUCTIONS} reductions of the stacks.")
                self._seen.add(each)
                self._act(*each)

    def _choose(self, state: int) -> int:
        """Return the keyword for a word where the keyword can follow or is reserved; else the symbol."""
        can_follow = self._tables.actions(state, self._keyword) or self._tables.is_reserved(state, self._keyword)
        return self._keyword if can_follow else self._symbol

    def _act(self, node: StackNode, symbol: int) -> None:
        tables, state = self._tables, node.state
        actions = tables.actions(state, symbol)
        if not actions and symbol != self._word and self._word and not tables.is_reserved(state, symbol):
            symbol = self._word
            actions = tables.actions(state, symbol)
        for action in actions:
            if action.kind is _REDUCE:
                for reduced in self._reduced(node, action):
                    self._work.append((reduced, symbol))
                    if len(actions) > 1 and tables.lex_mode(reduced.state) != tables.lex_mode(state):
                        self.retry.append(reduced)
            elif action.kind is _SHIFT:
                if not action.repetition:
                    shifted = node if action.extra else self._node(action.state, (node,))
                    self.after += self._settled(shifted)
            elif action.kind is ActionKind.ACCEPT:
                self.accepted = True

    def _reduced(self, node: StackNode, reduction: Action, *, is_extra: bool = False) -> list[StackNode]:
        """Return the nodes after a reduction; an extra leaves no entry."""
        found: list[StackNode] = []
        for base in bases_of(node, reduction.child_count):
            state = self._tables.goto(base.state, reduction.symbol)
            if state:
                found.append(base if is_extra and state == base.state else self._node(state, (base,)))
        return found

    def _settled(self, node: StackNode) -> list[StackNode]:
        """Reduce a state that ends a non-terminal extra, which needs no lookahead."""
        if self._tables.lex_mode(node.state).lex_state != NO_LOOKAHEAD:
            return [node]
        actions = [each for each in self._tables.actions(node.state, END_SYMBOL) if each.kind is _REDUCE]
        reduced = (each for action in actions for each in self._reduced(node, action, is_extra=True))
        return [settled for each in reduced for settled in self._settled(each)]


def bases_of(node: StackNode, count: int) -> Collection[StackNode]:
    """Return the nodes that lie `count` entries below a node."""
    bases: Collection[StackNode] = (node,)
    while count and len(bases) == 1:
        (node,) = bases
        bases, count = node.parents, count - 1
    for _ in range(count):
        bases = dict.fromkeys(parent for each in bases for parent in each.parents)
    return bases


def _serial_of(node: StackNode) -> int:
    return node.serial
