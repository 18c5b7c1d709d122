"""The cheapest terminals from parser stacks to what may follow them: a search from item to item down the stacks."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import NamedTuple

from completion.grammar.lr.advance import Snapshot
from completion.grammar.lr.cheapest import CheapestRests, WaysTo
from completion.grammar.lr.items import FAR
from completion.grammar.lr.stacks import StackNode, bases_of
from completion.grammar.lr.tables import Tables


class Begun(NamedTuple):
    """A text before an insertion.

    Attributes:
        after: Snapshot after it.
        inserted: End of its last lexeme, as far as it is inserted.
        is_between: Whether it ends between two lexemes.
    """

    after: Snapshot
    inserted: bytes
    is_between: bool


class Way(NamedTuple):
    """Terminals after a stack.

    Attributes:
        cost: Cost of the terminals and of the text's end.
        begun: The text before them.
        terminals: The terminals.
        top: Stack from which the search goes on; None if one of the firsts may follow.
    """

    cost: int
    begun: Begun
    terminals: tuple[int, ...]
    top: StackNode | None


class Ways:
    """A search for the cheapest ways to some terminals, which follows so many visits of the same stack."""

    def __init__(self, tables: Tables, rests: CheapestRests, firsts: Sequence[WaysTo], visits: int) -> None:
        self._tables, self._rests, self._firsts, self._max_visits = tables, rests, firsts, visits
        self._queue: list[tuple[int, int, Way]] = []
        self._order = count()
        self._nodes: dict[tuple[int, StackNode], StackNode] = {}
        self._visits: dict[tuple[bytes, StackNode], set[tuple[int, ...]]] = {}

    def begin(self, cost: int, begun: Begun) -> None:
        """Add a text: as a way without terminals, and with the stacks from which ways go on."""
        heads = begun.after.heads if begun.is_between else ()
        for top in (None, *_in_order(node for head in heads for node in head.stacks.nodes)):
            self._push(Way(cost, begun, (), top))

    def found(self) -> Iterator[Way | None]:
        """Yield ways after which one of the firsts may follow, by cost, and None after each other step."""
        while self._queue:
            _, _, way = heapq.heappop(self._queue)
            if way.top is None:
                yield way
                continue
            if self._is_new(way, way.top):
                for each in chain(self._to_firsts(way, way.top), self._to_rests(way, way.top)):
                    self._push(each)
            yield None

    def level(self, snapshot: Snapshot) -> int:
        """Return the depth of the parser's stack when all that a text has finished is reduced."""
        work = [node for head in snapshot.heads for node in head.stacks.nodes]
        seen = set(work)
        while work:
            top = work.pop()
            for rest in self._rests.rests(top.state):
                if not rest.cost:
                    found = set(self._reduced(top, rest.depth, rest.symbol)) - seen
                    seen |= found
                    work += found
        return min(node.depth for node in seen)

    def _push(self, way: Way) -> None:
        heapq.heappush(self._queue, (way.cost, next(self._order), way))

    def _is_new(self, way: Way, top: StackNode) -> bool:
        """Return whether a stack was reached by fewer than the maximum of terminals, and not by these."""
        visited = self._visits.setdefault((way.begun.inserted, top), set())
        if way.terminals in visited or len(visited) == self._max_visits:
            return False
        visited.add(way.terminals)
        return True

    def _to_firsts(self, way: Way, top: StackNode) -> Iterator[Way]:
        for first in self._firsts:
            cost = way.cost + first.distances[top.state]
            if cost < FAR and (cost > way.cost or way.terminals):
                yield Way(cost, way.begun, way.terminals + first.way(top.state), None)

    def _to_rests(self, way: Way, top: StackNode) -> Iterator[Way]:
        for rest in self._rests.rests(top.state):
            for node in self._reduced(top, rest.depth, rest.symbol):
                yield Way(way.cost + rest.cost, way.begun, way.terminals + rest.terminals, node)

    def _reduced(self, node: StackNode, depth: int, symbol: int) -> list[StackNode]:
        """Return the nodes after a reduction of a stack's top entries to a non-terminal."""
        after = ((self._tables.goto(each.state, symbol), each) for each in _in_order(bases_of(node, depth)))
        return [self._nodes.setdefault((s, each), StackNode(s, (each,), -1)) for s, each in after if s]


def _in_order(nodes: Iterable[StackNode]) -> list[StackNode]:
    """Return stacks in an order that does not depend on which of them a parser made first."""
    return sorted(nodes, key=lambda node: (node.state, node.depth))
