"""Sets of LR stacks that share their tails, and the steps between them, without error recovery.

A stack node is a parse state above a set of parents. Nodes and sets are interned: equal sets are one object, and a
repeated step is a dictionary look-up. Source: Tomita's graph-structured stack, with tree-sitter's actions.
"""

from __future__ import annotations

from collections.abc import Sequence

from completion.errors import GrammarBoundError
from completion.grammar.lr.step_shapes import BOTTOM, Shape, StackChange, StepShapes
from completion.grammar.lr.tables import LexMode, Tables

_NODE_BYTES = 450  # of an interned node with its sets and steps: 400 to 520 in nine languages
START_STATE = 1  # tree-sitter's state 0 is its error state
MAX_PATHS = 256  # paths down a stack set that the reductions of one lookahead follow
MAX_DEPTH = 1_000  # nodes of a stack, which snapshots keep; real sources of five languages need at most 160
MAX_INTERNED_NODES = 40_000  # about 18 MB; more nodes cause long pauses of the garbage collector


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


class Step:
    """The result of a lookahead.

    Attributes:
        after: Stacks after the lookahead was shifted; None if no stack accepts it.
        retry: Stacks that were reduced at a conflict and need their own lexeme at the same offset; None if none were.
        accepted: Whether the end of the text was accepted.
    """

    __slots__ = ("accepted", "after", "retry")

    def __init__(self, after: StackSet | None, retry: StackSet | None, *, accepted: bool) -> None:
        self.after, self.retry, self.accepted = after, retry, accepted


class _NodePath:
    """A path from a stack node down, as far as it was needed so far."""

    __slots__ = ("nodes", "states")

    def __init__(self, nodes: list[StackNode]) -> None:
        self.nodes = nodes
        self.states = [node.state for node in nodes]

    def deepen(self) -> bool:
        """Add the node below if there is exactly one; return whether there was."""
        parents = self.nodes[-1].parents
        if len(parents) > 1:
            return False
        below = parents[0] if parents else _BELOW
        self.nodes.append(below)
        self.states.append(below.state)
        return True

    def branches(self) -> list[_NodePath]:
        """Return one path for each of several nodes below."""
        return [_NodePath([*self.nodes, below]) for below in self.nodes[-1].parents]


class StackMachine:
    """Makes and steps stack sets of one grammar."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._shapes = StepShapes(tables)
        self._nodes: dict[int | tuple[int, ...], StackNode] = {}  # keys of numbers: the garbage collector skips them
        self._sets: dict[tuple[int, ...], StackSet] = {}
        self._serial = 0

    def start(self) -> StackSet:
        """Return the stack before the first token of a file."""
        return self._alone(self._node(START_STATE, ()))

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
        """Shift a lookahead after every reduction that it allows.

        Args:
            stacks: Stacks to start from.
            symbol: Terminal symbol.
            keyword: Keyword symbol of a word token that is also a keyword; 0 otherwise.

        Raises:
            GrammarBoundError: The lookahead needs more reductions or paths than the maximum.
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
    def size(self) -> int:
        """Number of interned nodes."""
        return len(self._nodes)

    @property
    def size_bytes(self) -> int:
        """Approximate memory of the interned nodes, their sets and the cached steps."""
        return self._shapes.size_bytes + _NODE_BYTES * len(self._nodes)

    def trim(self) -> None:
        """Clear interned nodes and cached steps that exceed their maximum; sets in use stay valid."""
        self._shapes.trim()
        if len(self._nodes) > MAX_INTERNED_NODES:
            self._nodes.clear()
            self._sets.clear()

    def _step(self, stacks: StackSet, symbol: int, keyword: int) -> Step:
        after: list[StackNode] = []
        retry: list[StackNode] = []
        accepted = False
        for node in stacks.nodes:
            for path, shape in self._shapes_of(node, symbol, keyword):
                after += [self._changed(path, change) for change in shape.after]
                retry += [self._changed(path, change) for change in shape.retry]
                accepted = accepted or shape.accepted
        return Step(self._set(after) if after else None, self._set(retry) if retry else None, accepted=accepted)

    def _shapes_of(self, node: StackNode, symbol: int, keyword: int) -> list[tuple[_NodePath, Shape]]:
        """Return every path from `node` down to the depth that the reductions need, with the step's shape there."""
        found: list[tuple[_NodePath, Shape]] = []
        work = [(_NodePath([node]), self._shapes.root(symbol, keyword))]
        while work:
            path, level = work.pop()
            while True:
                entry = level.get(path.states[-1])
                if entry is None:
                    entry = self._shapes.learn(level, path, symbol, keyword)
                if isinstance(entry, Shape):
                    found.append((path, entry))
                    break
                level = entry
                if not path.deepen():
                    work += [(other, level) for other in path.branches()]
                    if len(work) + len(found) > MAX_PATHS:
                        raise GrammarBoundError(f"The reductions for one token follow more than {MAX_PATHS} stacks.")
                    break
        return found

    def _changed(self, path: _NodePath, change: StackChange) -> StackNode:
        node = path.nodes[change.popped]
        for state in change.states:
            node = self._node(state, (node,))
        return node

    def _node(self, state: int, parents: tuple[StackNode, ...]) -> StackNode:
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
                node = self._node(node.state, tuple(sorted(parents, key=_serial_of)))  # noqa: PLW2901
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


_BELOW = StackNode(BOTTOM, (), 0)
"""The node below the first state of every stack."""


def _serial_of(node: StackNode) -> int:
    return node.serial
