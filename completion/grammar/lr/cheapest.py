"""The cheapest terminals that end what a parse state has begun, and those after which a terminal can follow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from completion.grammar.lr.advance import LayoutRule
from completion.grammar.lr.items import FAR, MOST_COST, Items, Transitions, read_transitions
from completion.grammar.lr.tables import END_SYMBOL, Numbers, Tables

MAX_COST = 24
"""Maximum cost of a rest; a longer one is not what a person is about to write."""
_WAYS_BYTES = 10  # of a state's distance to one terminal
_LIST = "_repeat"  # in the names that tree-sitter gives to the non-terminals of lists


class Rest(NamedTuple):
    """The cheapest rest of a state's item.

    Attributes:
        depth: Number of stack entries that the item has, which its reduction pops.
        symbol: Non-terminal that the reduction produces.
        cost: Cost of the terminals.
        terminals: The terminals.
    """

    depth: int
    symbol: int
    cost: int
    terminals: tuple[int, ...]


class _Edges(NamedTuple):
    """Transitions in the order of their sources: from which and to which state, the cost of their symbols, and these.

    Attributes:
        starts: The first transition of each state that has any.
    """

    source: Numbers
    target: Numbers
    price: Numbers
    symbol: Numbers
    starts: Numbers


class WaysTo:
    """The cheapest ways from each state to one terminal, which can follow the states `there`.

    Attributes:
        distances: Each state's cost of the cheapest terminals before it; at least `FAR` where nothing leads to it.
    """

    def __init__(
        self, there: Numbers, edges: _Edges, state_count: int, cheapest: Callable[[int], tuple[int, ...]]
    ) -> None:
        self._edges, self._cheapest = edges, cheapest
        sources = edges.source[edges.starts]
        found = np.full(state_count, FAR, dtype=np.int32)
        found[there] = 0
        last = found[:0]
        while not np.array_equal(last, found):
            last = found.copy()
            onward = np.minimum.reduceat(edges.price + last[edges.target], edges.starts)
            found[sources] = np.minimum(last[sources], onward)
        self.distances: list[int] = found.tolist()
        self._known: dict[int, tuple[int, ...]] = {}

    def way(self, state: int) -> tuple[int, ...]:
        """Return the cheapest terminals after which the terminal can follow `state`."""
        found = self._known.get(state)
        if found is None:
            found = self._known[state] = self._way(state)
        return found

    def _way(self, state: int) -> tuple[int, ...]:
        terminals: tuple[int, ...] = ()
        passed = {state}  # what costs nothing may lead back
        while self.distances[state] > 0:
            first, last = np.searchsorted(self._edges.source, (state, state + 1))
            edges = zip(*(each[first:last].tolist() for each in self._edges[1:4]), strict=True)
            onward = (each for each in edges if each[0] not in passed)
            state, _, symbol = min(onward, key=lambda each: (each[1] + self.distances[each[0]], each[1]))
            terminals += self._cheapest(symbol)
            passed.add(state)
        return terminals


class CheapestRests:
    """The cheapest rests of one grammar's items, and the cheapest ways from a state to a terminal.

    The cost of a terminal is negative if it cannot be inserted. The layout rule bars some ways through the tables.
    """

    def __init__(self, tables: Tables, costs: Sequence[int], layout: LayoutRule) -> None:
        self._tables = tables
        graph = read_transitions(tables, costs, layout)
        self._items = items = Items(graph, costs, tables.state_count, tables.symbol_count)
        self._source, self._symbol, self._accepting = graph.source, graph.symbol, graph.accepting
        self._is_list = np.array([_LIST in tables.symbol_name(each) for each in range(tables.symbol_count)])
        price = np.minimum(items.yields, MOST_COST).astype(np.uint8)[graph.symbol]
        self._on_top = graph.on_top(tables.state_count)
        alone = np.flatnonzero((items.cost == 0) & (items.depth == 1))
        self._units: dict[int, set[int]] = {}
        for below, above in zip(self._on_top[items.state[alone]].tolist(), items.symbol[alone].tolist(), strict=True):
            self._units.setdefault(below, set()).add(above)
        by_source = np.argsort(graph.source, kind="stable")
        near = by_source[price[by_source] <= MAX_COST]
        goes_on = near[self._goes_on()[graph.target[near]]]
        self._edges = _edges_of(graph, price, goes_on), _edges_of(graph, price, near)
        self._rests: dict[int, tuple[Rest, ...]] = {}
        self._ways: dict[tuple[int, bool], WaysTo] = {}

    @property
    def size_bytes(self) -> int:
        """Approximate memory of the tables."""
        arrays = (self._source, self._symbol, self._accepting, *self._edges[0], *self._edges[1])
        ways = _WAYS_BYTES * self._tables.state_count * len(self._ways)
        return self._items.size_bytes + sum(each.nbytes for each in arrays) + ways

    def rests(self, state: int) -> tuple[Rest, ...]:
        """Return the cheapest rest of each item of a state."""
        found = self._rests.get(state)
        if found is None:
            near = (each for each in self._items.of_state(state) if self._items.cost[each] <= MAX_COST)
            rests = [self._rest(each) for each in near]
            is_whole = any(each.depth == 1 and not each.cost for each in rests)
            found = tuple(each for each in rests if not (each.cost and self._repeats(state, each, is_whole=is_whole)))
            self._rests[state] = found
        return found

    def ways(self, terminal: int, *, begins: bool) -> WaysTo:
        """Return the cheapest ways from each state to `terminal`, before the state ends; the end of a file is one, too.

        They go on with what the state has begun, and what they begin themselves ends in them unless it `begins` there.
        """
        found = self._ways.get((terminal, begins))
        if found is None:
            there = self._accepting if terminal == END_SYMBOL else self._source[self._symbol == terminal]
            found = WaysTo(there, self._edges[begins], self._tables.state_count, self._items.cheapest)
            self._ways[terminal, begins] = found
        return found

    def _repeats(self, state: int, rest: Rest, *, is_whole: bool) -> bool:
        """Return whether a rest only adds to a list or to a first item that may stand alone: `a.b` is an `a` again."""
        if rest.depth != 1 or (is_whole and self._is_list[rest.symbol]):
            return rest.depth == 1
        seen = waiting = {rest.symbol}
        while waiting and is_whole:
            waiting = set().union(*(self._units.get(each, ()) for each in waiting)) - seen
            seen = seen | waiting
        return int(self._on_top[state]) in seen

    def _rest(self, item: int) -> Rest:
        items = self._items
        depth, symbol, cost = (int(each[item]) for each in (items.depth, items.symbol, items.cost))
        return Rest(depth, symbol, cost, items.terminals(item))

    def _goes_on(self) -> npt.NDArray[np.bool_]:
        """Return for each state whether its top symbol goes on with an item that was begun before it, or with a list.

        What only begins with an insertion must end in it, not with a closer after the cursor.
        """
        items, found = self._items, np.zeros(self._tables.state_count, dtype=np.bool_)
        goes_on = (items.depth > 1) | ((items.depth == 1) & self._is_list[items.symbol])
        found[items.state[goes_on & (items.cost <= MAX_COST)]] = True
        return found


def _edges_of(graph: Transitions, price: Numbers, near: Numbers) -> _Edges:
    """Return some transitions, given in the order of their sources."""
    source, target, symbol = (each[near] for each in (graph.source, graph.target, graph.symbol))
    return _Edges(source, target, price[near], symbol, np.flatnonzero(np.diff(source.astype(np.int32), prepend=-1)))
