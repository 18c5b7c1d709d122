"""Sets of LR stacks that share their tails, and the strict (never recovering) steps between them.

A stack node is a parse state over a set of parents; nodes and sets are interned, so that equal sets are one object
and a step, once taken, is a dictionary look-up. Source: Tomita's graph-structured stack, with tree-sitter's actions.
"""

from __future__ import annotations

from collections.abc import Sequence

from completion.errors import GrammarBoundError
from completion.grammar.lr.step_shapes import BOTTOM, Rise, Shape, StepShapes
from completion.grammar.lr.tables import LexMode, Tables

START_STATE = 1  # tree-sitter's state 0 is its error state
MAX_PATHS = 256  # ways down a stack set that one lookahead's reductions take
MAX_INTERNED_NODES = 40_000  # about 12 MB; more would make the collector's pauses long


class StackNode:
    """A parse state on top of every stack of its parents. Immutable; compared by identity, for it is interned.

    Attributes:
        alone: The set of this node only, once somebody asked for it.
    """

    __slots__ = ("alone", "parents", "serial", "state")

    def __init__(self, state: int, parents: tuple[StackNode, ...], serial: int) -> None:
        self.state, self.parents, self.serial = state, parents, serial
        self.alone: StackSet | None = None


class StackSet:
    """All stacks that explain the text so far: one node a state. Immutable but for its memory of steps taken.

    Attributes:
        steps: What is known of lookaheads; None until somebody asks a second time.
    """

    __slots__ = ("asked", "groups", "nodes", "steps")

    def __init__(self, nodes: tuple[StackNode, ...]) -> None:
        self.nodes = nodes
        self.groups: list[tuple[LexMode, StackSet]] | None = None
        self.steps: dict[tuple[int, int], Step] | None = None
        self.asked = False


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


class _WayDown:
    """A way from a stack node down, as far as it was needed until now."""

    __slots__ = ("nodes", "states")

    def __init__(self, nodes: list[StackNode]) -> None:
        self.nodes = nodes
        self.states = [node.state for node in nodes]

    def deepen(self) -> bool:
        """Add the node below, if there is only one."""
        parents = self.nodes[-1].parents
        if len(parents) > 1:
            return False
        below = parents[0] if parents else _BELOW
        self.nodes.append(below)
        self.states.append(below.state)
        return True

    def parted(self) -> list[_WayDown]:
        """The ways on, where there are several."""
        return [_WayDown([*self.nodes, below]) for below in self.nodes[-1].parents]


class StackMachine:
    """Makes and steps stack sets of one grammar."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._shapes = StepShapes(tables)
        self._nodes: dict[int | tuple[int, ...], StackNode] = {}  # keys of numbers: the garbage collector skips them
        self._sets: dict[tuple[int, ...], StackSet] = {}
        self._serial = 0

    def start(self) -> StackSet:
        """The stack before the first token of a file."""
        return self._alone(self._node(START_STATE, ()))

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

        Raises:
            GrammarBoundError: The lookahead needs more reductions, or ways down the stacks, than are followed.
        """
        if stacks.steps is None:
            step = self._step(stacks, symbol, keyword)
            if stacks.asked:
                stacks.steps = {(symbol, keyword): step}
            stacks.asked = True
            return step
        known = stacks.steps.get((symbol, keyword))
        if known is None:
            known = stacks.steps[symbol, keyword] = self._step(stacks, symbol, keyword)
        return known

    def takes_as_extra(self, stacks: StackSet, symbol: int) -> bool:
        """Whether `symbol` leaves the top state of each stack as it is."""
        return all(any(a.extra for a in self.tables.actions(n.state, symbol)) for n in stacks.nodes)

    @property
    def size(self) -> int:
        """How many nodes are interned."""
        return len(self._nodes)

    def trim(self) -> None:
        """Forget interned nodes and learned steps when there are many; sets that are in use stay valid."""
        self._shapes.trim()
        if len(self._nodes) > MAX_INTERNED_NODES:
            self._nodes.clear()
            self._sets.clear()

    def _step(self, stacks: StackSet, symbol: int, keyword: int) -> Step:
        after: list[StackNode] = []
        retry: list[StackNode] = []
        accepted = False
        for node in stacks.nodes:
            for way, shape in self._shapes_of(node, symbol, keyword):
                after += [self._raised(way, rise) for rise in shape.after]
                retry += [self._raised(way, rise) for rise in shape.retry]
                accepted = accepted or shape.accepted
        return Step(self._set(after) if after else None, self._set(retry) if retry else None, accepted=accepted)

    def _shapes_of(self, node: StackNode, symbol: int, keyword: int) -> list[tuple[_WayDown, Shape]]:
        """Every way down from `node` as far as the lookahead's reductions go, with what they do there."""
        found: list[tuple[_WayDown, Shape]] = []
        work = [(_WayDown([node]), self._shapes.root(symbol, keyword))]
        while work:
            way, level = work.pop()
            while True:
                entry = level.get(way.states[-1])
                if entry is None:
                    entry = self._shapes.learn(level, way, symbol, keyword)
                if isinstance(entry, Shape):
                    found.append((way, entry))
                    break
                level = entry
                if not way.deepen():
                    work += [(other, level) for other in way.parted()]
                    if len(work) + len(found) > MAX_PATHS:
                        raise GrammarBoundError(f"One token looks down more than {MAX_PATHS} stacks.")
                    break
        return found

    def _raised(self, way: _WayDown, rise: Rise) -> StackNode:
        node = way.nodes[rise.taken]
        for state in rise.states:
            node = self._node(state, (node,))
        return node

    def _node(self, state: int, parents: tuple[StackNode, ...]) -> StackNode:
        key = parents[0].serial << 16 | state if len(parents) == 1 else (state, *map(_serial_of, parents))
        node = self._nodes.get(key)
        if node is None:
            self._serial += 1
            node = self._nodes[key] = StackNode(state, parents, self._serial)
        return node

    def _set(self, nodes: Sequence[StackNode]) -> StackSet:
        """Intern a set, with the nodes of one state merged into one."""
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
"""What a way down finds below the first state."""


def _serial_of(node: StackNode) -> int:
    return node.serial
