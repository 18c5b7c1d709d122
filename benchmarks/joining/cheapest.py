"""The cheapest terminals that end what a parse state has begun, computed once for a grammar's tables.

An item of a state is a production of which some symbols are on the stack. Its rest costs the cheapest terminals of each
missing symbol. Costs grow from the reductions back along the transitions, the cheapest first, until nothing changes.
Source: Knuth, "A Generalization of Dijkstra's Algorithm", over the items of an LR automaton.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.joining.grammar import InsertionGrammar
from completion.grammar.lr.tables import END_SYMBOL, ActionKind

MAX_COST = 24
"""Maximum cost of a rest; a longer one is not what a person is about to write."""
_LIST = "_repeat"  # in the names that tree-sitter gives to the non-terminals of lists
FAR = 1_000_000
"""Cost of what no terminals reach."""

Numbers = npt.NDArray[np.int64]


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


class CheapestRests:
    """The cheapest rests of one grammar's items, and the cheapest ways from a state to a terminal."""

    def __init__(self, grammar: InsertionGrammar, costs: Sequence[int]) -> None:
        """Compute the costs, which is the build of a grammar's table.

        Args:
            grammar: The grammar, whose layout rule bars some ways through the tables.
            costs: Cost of each terminal; negative for one that cannot be inserted.
        """
        tables = grammar.tables
        self._tables, self._width = tables, grammar.symbol_count
        into, reductions, self._accepting = _transitions(grammar, costs)
        self._top = [each[0][0] if each else -1 for each in into]
        self._depths = 1 + max(count for _, count, _ in reductions)
        self._yields = [*costs, *[-1] * (self._width - tables.token_count)]
        self._starts: dict[int, int] = {}
        known = self._grow(into, [self._key(*each) for each in reductions])
        self._keys = np.array(sorted(known))
        found = np.array([known[key] for key in self._keys.tolist()])
        self._costs, self._next, self._after = found[:, 0].astype(np.int16), found[:, 1].astype(np.int32), found[:, 2]
        edges = [(source, symbol, target) for target, each in enumerate(into) for symbol, source in each]
        self._source, self._symbol, self._target = np.array(sorted(edges), dtype=np.int32).T.copy()
        self._first = np.searchsorted(self._source, np.arange(tables.state_count + 1))
        price = np.array([each if each >= 0 else FAR for each in self._yields])[self._symbol]
        self._price = np.where(self._goes_on()[self._target], price, FAR)
        self._rests: dict[int, tuple[Rest, ...]] = {}
        self._distances: dict[int, Numbers] = {}
        self._ways: dict[tuple[int, int], tuple[int, ...]] = {}

    def rests(self, state: int) -> tuple[Rest, ...]:
        """Return the cheapest rest of each item of a state."""
        found = self._rests.get(state)
        if found is None:
            first, last = np.searchsorted(self._keys, (self._key(state, 1, 0), self._key(state + 1, 0, 0)))
            rests = [self._rest(index) for index in range(first, last)]
            is_whole = any(each.depth == 1 and not each.cost for each in rests)
            found = tuple(each for each in rests if not (each.cost and self._repeats(state, each, is_whole=is_whole)))
            self._rests[state] = found
        return found

    def _repeats(self, state: int, rest: Rest, *, is_whole: bool) -> bool:
        """Return whether a rest only adds an item to a list, or to a first item that may stand alone."""
        is_list = is_whole and _LIST in self._tables.symbol_name(rest.symbol)
        return rest.depth == 1 and (is_list or rest.symbol == self._top[state])

    def _rest(self, index: int) -> Rest:
        key = int(self._keys[index])
        item, symbol = divmod(key, self._width)
        return Rest(item % self._depths, symbol, int(self._costs[index]), self._terminals(key))

    def distances(self, terminal: int) -> Numbers:
        """Return each state's cost of the cheapest terminals after which `terminal` can follow, before the state ends.

        They go on with what the state has begun. The end of the file counts as a terminal. The cost is at least `FAR`
        where nothing leads to it.
        """
        found = self._distances.get(terminal)
        if found is None:
            found = np.full(self._tables.state_count, FAR)
            found[self._accepting if terminal == END_SYMBOL else self._source[self._symbol == terminal]] = 0
            last = found[:0]
            while not np.array_equal(last, found):
                last = found.copy()
                np.minimum.at(found, self._source, self._price + last[self._target])
            self._distances[terminal] = found
        return found

    def _goes_on(self) -> npt.NDArray[np.bool_]:
        """Return for each state whether its top symbol goes on with an item that was begun before it, or with a list.

        What only begins with an insertion must end in it, not with a closer after the cursor.
        """
        item, symbol = np.divmod(self._keys, self._width)
        state, depth = np.divmod(item, self._depths)
        is_list = np.array([_LIST in self._tables.symbol_name(each) for each in range(self._width)])[symbol]
        found = np.zeros(self._tables.state_count, dtype=np.bool_)
        found[state[(depth > 1) | ((depth == 1) & is_list)]] = True
        return found

    def way(self, state: int, terminal: int) -> tuple[int, ...]:
        """Return the cheapest terminals after which `terminal` can follow `state`."""
        found = self._ways.get((state, terminal))
        if found is None:
            found = self._ways[state, terminal] = self._way(state, self.distances(terminal))
        return found

    def _way(self, state: int, distances: Numbers) -> tuple[int, ...]:
        terminals: tuple[int, ...] = ()
        passed = {state}  # what costs nothing may lead back
        while distances[state] > 0:
            ways = (
                (price + int(distances[target]), price, symbol, target)
                for price, symbol, target in self._edges_from(state)
                if target not in passed
            )
            _, _, symbol, state = min(ways)
            terminals += self._cheapest(symbol)
            passed.add(state)
        return terminals

    def _edges_from(self, state: int) -> Iterator[tuple[int, int, int]]:
        """Yield cost, symbol and target of a state's transitions."""
        edges = slice(self._first[state], self._first[state + 1])
        return zip(*(each[edges].tolist() for each in (self._price, self._symbol, self._target)), strict=True)

    def _key(self, state: int, depth: int, symbol: int) -> int:
        return (state * self._depths + depth) * self._width + symbol

    def _grow(self, into: list[list[tuple[int, int]]], reductions: list[int]) -> dict[int, tuple[int, int, int]]:
        """Return for each item's key the cost of its rest, the rest's first symbol, and the item after that symbol."""
        buckets: list[list[tuple[int, int, int]]] = [[] for _ in range(MAX_COST + 1)]
        buckets[0] = [(key, -1, -1) for key in reductions]
        known: dict[int, tuple[int, int, int]] = {}
        waiting: dict[int, list[tuple[int, int, int]]] = {}  # by a symbol whose cost is not known yet
        for cost, bucket in enumerate(buckets):
            for key, first, after in bucket:  # grows meanwhile, by rests of the same cost
                if key in known:
                    continue
                known[key] = cost, first, after
                for price, *item in self._before(key, cost, into, waiting):
                    if price <= MAX_COST and item[0] not in known:
                        buckets[price].append((item[0], item[1], item[2]))
            bucket.clear()
        return known

    def _before(
        self, key: int, cost: int, into: list[list[tuple[int, int]]], waiting: dict[int, list[tuple[int, int, int]]]
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield the items that a new one makes known: the rest's cost, key, first symbol, and the item after that."""
        item, symbol = divmod(key, self._width)
        state, depth = divmod(item, self._depths)
        if not depth:
            if self._yields[symbol] < 0:
                self._yields[symbol], self._starts[symbol] = cost, key
                for before, after, so_far in waiting.pop(symbol, ()):
                    yield cost + so_far, before, symbol, after
            return
        for between, source in into[state]:
            before, price = self._key(source, depth - 1, symbol), self._yields[between]
            if price < 0:
                waiting.setdefault(between, []).append((before, key, cost))
            else:
                yield cost + price, before, between, key

    def _terminals(self, key: int) -> tuple[int, ...]:
        """Return the terminals of an item's rest."""
        terminals: tuple[int, ...] = ()
        while True:
            index = bisect_left(self._keys, key)
            if self._next[index] < 0:
                return terminals
            terminals += self._cheapest(int(self._next[index]))
            key = int(self._after[index])

    def _cheapest(self, symbol: int) -> tuple[int, ...]:
        return (symbol,) if symbol < self._tables.token_count else self._terminals(self._starts[symbol])


_Edges = list[list[tuple[int, int]]]


def _transitions(
    grammar: InsertionGrammar, costs: Sequence[int]
) -> tuple[_Edges, set[tuple[int, int, int]], list[int]]:
    """Return the usable transitions into each state (symbol, source), and what else the tables hold.

    That is all reductions (state, child count, symbol), and the states that accept the end of a file.
    """
    into, reductions, accepting = _all_transitions(grammar)
    layout = grammar.layout
    for first, second in layout.barred:
        after = {state for state, each in enumerate(into) if any(symbol == first for symbol, _ in each)}
        into = [[edge for edge in each if edge[0] != second or edge[1] not in after] for each in into]
    last_child = {state: each[0][0] for state, each in enumerate(into) if each}
    reductions = {each for each in reductions if (each[2], last_child.get(each[0])) not in layout.unfinished}
    usable = [[edge for edge in each if edge[0] >= len(costs) or costs[edge[0]] >= 0] for each in into]
    return usable, reductions, accepting


def _all_transitions(grammar: InsertionGrammar) -> tuple[_Edges, set[tuple[int, int, int]], list[int]]:
    tables = grammar.tables
    into: _Edges = [[] for _ in range(tables.state_count)]
    reductions: set[tuple[int, int, int]] = set()
    accepting: list[int] = []
    for state in range(tables.state_count):
        for symbol in grammar.symbols_after(state):
            if symbol >= tables.token_count:
                into[tables.goto(state, symbol)].append((symbol, state))
                continue
            for action in tables.actions(state, symbol):
                if action.kind is ActionKind.REDUCE:
                    reductions.add((state, action.child_count, action.symbol))
                elif action.kind is ActionKind.SHIFT and not (action.extra or action.repetition):
                    into[action.state].append((symbol, state))
                elif action.kind is ActionKind.ACCEPT:
                    accepting.append(state)
    return into, reductions, accepting
