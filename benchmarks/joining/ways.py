"""The cheapest terminals from parser stacks to what may follow them: a search from item to item down the stacks."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from benchmarks.joining.cheapest import FAR, CheapestRests, Numbers
from completion.grammar.lr.stacks import MAX_PATHS, StackNode
from completion.grammar.lr.tables import Tables

Origin = TypeVar("Origin")


@dataclass(frozen=True, slots=True)
class Way(Generic[Origin]):
    """Terminals after a stack.

    Attributes:
        cost: Cost of the terminals and of the origin.
        origin: What the way begins with.
        terminals: The terminals.
        top: Stack from which the search goes on; None if one of the firsts may follow.
    """

    cost: int
    origin: Origin
    terminals: tuple[int, ...]
    top: StackNode | None


class Reductions:
    """Reduces the stacks of an acceptor, and keeps one node for each state above another node."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._nodes: dict[tuple[int, StackNode], StackNode] = {}

    def reduced(self, node: StackNode, count: int, symbol: int) -> list[StackNode]:
        """Return the nodes after a reduction of a stack's `count` top entries to a non-terminal."""
        below = [node]
        for _ in range(count):
            found = dict.fromkeys(parent for each in below[:MAX_PATHS] for parent in each.parents)
            below = in_order(found)
        after = ((self._tables.goto(each.state, symbol), each) for each in below)
        return [self._node(state, each) for state, each in after if state]

    def _node(self, state: int, below: StackNode) -> StackNode:
        node = self._nodes.get((state, below))
        if node is None:
            node = self._nodes[state, below] = StackNode(state, (below,), -1)
        return node


def in_order(nodes: Iterable[StackNode]) -> list[StackNode]:
    """Return stacks in an order that does not depend on which of them a parser made first."""
    return sorted(nodes, key=lambda node: (node.state, node.depth))


class Ways(Generic[Origin]):
    """A search for the cheapest ways to some terminals.

    Args:
        rests: The cheapest rests of the grammar's items.
        reductions: Reduces the stacks of the search.
        firsts: Terminals that may follow a way, each with the states' distances to it.
        visits: Maximum number of ways to the same stack that are followed.
    """

    def __init__(
        self, rests: CheapestRests, reductions: Reductions, firsts: Mapping[int, Numbers], visits: int
    ) -> None:
        self._rests, self._reductions, self._firsts, self._max_visits = rests, reductions, firsts, visits
        self._queue: list[tuple[int, int, Way[Origin]]] = []
        self._order = itertools.count()
        self._visits: dict[tuple[Origin, StackNode], set[tuple[int, ...]]] = {}

    def begin(self, origin: Origin, cost: int, tops: Iterable[StackNode]) -> None:
        """Add an origin: as a way without terminals, and with the stacks from which ways go on."""
        for top in (None, *in_order(tops)):
            self._push(Way(cost, origin, (), top))

    def found(self) -> Iterator[Way[Origin] | None]:
        """Yield ways after which one of the firsts may follow, by cost, and None after each other step."""
        while self._queue:
            _, _, way = heapq.heappop(self._queue)
            if way.top is None:
                yield way
                continue
            if self._is_new(way, way.top):
                for each in itertools.chain(self._to_firsts(way, way.top), self._to_rests(way, way.top)):
                    self._push(each)
            yield None

    def _push(self, way: Way[Origin]) -> None:
        if way.cost < FAR:
            heapq.heappush(self._queue, (way.cost, next(self._order), way))

    def _is_new(self, way: Way[Origin], top: StackNode) -> bool:
        """Return whether a stack was reached by fewer than the maximum of terminals, and not by these."""
        visited = self._visits.setdefault((way.origin, top), set())
        if way.terminals in visited or len(visited) == self._max_visits:
            return False
        visited.add(way.terminals)
        return True

    def _to_firsts(self, way: Way[Origin], top: StackNode) -> Iterator[Way[Origin]]:
        for terminal, distances in self._firsts.items():
            cost = way.cost + int(distances[top.state])
            if cost < FAR and (cost > way.cost or way.terminals):
                terminals = way.terminals + self._rests.way(top.state, terminal)
                yield Way(cost, way.origin, terminals, None)

    def _to_rests(self, way: Way[Origin], top: StackNode) -> Iterator[Way[Origin]]:
        for rest in self._rests.rests(top.state):
            for node in self._reductions.reduced(top, rest.depth, rest.symbol):
                yield Way(way.cost + rest.cost, way.origin, way.terminals + rest.terminals, node)
