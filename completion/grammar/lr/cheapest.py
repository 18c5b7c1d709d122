"""The cheapest terminals that end what a parse state has begun, computed once for a grammar's tables.

An item of a state is a production of which some symbols are on the stack. Its rest costs the cheapest terminals of each
missing symbol. All rests are known together: costs are lowered over all transitions at once until nothing changes.
Source: Knuth, "A Generalization of Dijkstra's Algorithm", over the items of an LR automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from completion.grammar.lr.advance import LayoutRule
from completion.grammar.lr.tables import END_SYMBOL, ActionKind, Tables

MAX_COST = 24
"""Maximum cost of a rest; a longer one is not what a person is about to write."""
FAR = 1_000_000
"""Cost of what no terminals reach."""
_UNIT = 1024  # of a cost while rests are compared: of two that cost the same, the one with fewer symbols is taken
_WAYS_BYTES = 10  # of a state's distance to one terminal
_LIST = "_repeat"  # in the names that tree-sitter gives to the non-terminals of lists

Numbers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


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


class _Transitions(NamedTuple):
    """Transitions by target; all reductions by state, child count and symbol; the states that accept a file's end."""

    source: Numbers
    symbol: Numbers
    target: Numbers
    reductions: list[tuple[int, int, int]]
    accepting: list[int]


class WaysTo:
    """The cheapest ways from each state to one terminal.

    Args:
        there: States that the terminal can follow.
        edges: Transitions in order: the states from and to which they lead, the cost of their symbols, and these.
        state_count: Number of states.
        cheapest: Returns the cheapest terminals of a symbol.

    Attributes:
        distances: Each state's cost of the cheapest terminals before it; at least `FAR` where nothing leads to it.
    """

    def __init__(
        self,
        there: Sequence[int],
        edges: tuple[Numbers, Numbers, Numbers, Numbers],
        state_count: int,
        cheapest: Callable[[int], tuple[int, ...]],
    ) -> None:
        self._edges, self._cheapest = edges, cheapest
        source, target, price, _ = edges
        found = np.full(state_count, FAR)
        found[there] = 0
        last = found[:0]
        while not np.array_equal(last, found):
            last = found.copy()
            np.minimum.at(found, source, price + last[target])
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
            first, last = np.searchsorted(self._edges[0], (state, state + 1))
            edges = zip(*(each[first:last].tolist() for each in self._edges), strict=True)
            onward = (each[1:] for each in edges if each[1] not in passed)
            state, _, symbol = min(onward, key=lambda each: (each[1] + self.distances[each[0]], each[1]))
            terminals += self._cheapest(symbol)
            passed.add(state)
        return terminals


class CheapestRests:
    """The cheapest rests of one grammar's items, and the cheapest ways from a state to a terminal.

    Args:
        tables: The grammar's tables.
        costs: Cost of each terminal; negative for one that cannot be inserted.
        layout: The language's layout rule, which bars some ways through the tables.
    """

    def __init__(self, tables: Tables, costs: Sequence[int], layout: LayoutRule) -> None:
        self._tables, self._width = tables, tables.symbol_count
        found = _usable(_transitions(tables), costs, layout, tables.token_count)
        self._source, self._symbol, self._target, reductions, self._accepting = found
        self._first = np.searchsorted(self._target, np.arange(tables.state_count + 1))  # edges into a state
        self._depths = 1 + max(count for _, count, _ in reductions)
        self._yields = np.full(self._width, FAR * _UNIT)  # of a symbol: cost of its cheapest terminals
        self._yields[: tables.token_count] = [each * _UNIT + 1 if each >= 0 else FAR * _UNIT for each in costs]
        self._grow(np.array([self._key(*each) for each in reductions]))
        self._is_list = np.array([_LIST in tables.symbol_name(each) for each in range(self._width)])
        self._price = self._yields[self._symbol] // _UNIT
        self._on_top = np.full(tables.state_count, -1)
        self._on_top[self._target[::-1]] = self._symbol[::-1]
        item, symbol = np.divmod(self._keys[self._costs == 0], self._width)
        state, depth = np.divmod(item, self._depths)
        self._units: dict[int, set[int]] = {}
        for below, above in zip(self._on_top[state[depth == 1]].tolist(), symbol[depth == 1].tolist(), strict=True):
            self._units.setdefault(below, set()).add(above)
        by_source = np.argsort(self._source, kind="stable")
        self._all_edges = by_source[self._price[by_source] <= MAX_COST]
        self._onward = self._all_edges[self._goes_on()[self._target[self._all_edges]]]
        self._rests: dict[int, tuple[Rest, ...]] = {}
        self._ways: dict[tuple[int, bool], WaysTo] = {}

    @property
    def size_bytes(self) -> int:
        """Approximate memory of the tables."""
        arrays = (self._source, self._symbol, self._target, self._keys, self._costs, self._edge, self._after)
        return sum(each.nbytes for each in arrays) + _WAYS_BYTES * self._tables.state_count * len(self._ways)

    def rests(self, state: int) -> tuple[Rest, ...]:
        """Return the cheapest rest of each item of a state."""
        found = self._rests.get(state)
        if found is None:
            first, last = np.searchsorted(self._keys, (self._key(state, 1, 0), self._key(state + 1, 0, 0)))
            near = [index for index in range(first, last) if self._costs[index] <= MAX_COST * _UNIT + _UNIT - 1]
            rests = [self._rest(index) for index in near]
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
            edges = self._all_edges if begins else self._onward
            there = self._accepting if terminal == END_SYMBOL else self._source[self._symbol == terminal].tolist()
            source, target, price, symbol = (self._source, self._target, self._price, self._symbol)
            columns = source[edges], target[edges], price[edges], symbol[edges]
            found = WaysTo(there, columns, self._tables.state_count, self._cheapest)
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

    def _rest(self, index: int) -> Rest:
        item, symbol = divmod(int(self._keys[index]), self._width)
        return Rest(item % self._depths, symbol, int(self._costs[index]) // _UNIT, self._terminals(index))

    def _terminals(self, index: int) -> tuple[int, ...]:
        """Return the terminals of an item's rest."""
        terminals: tuple[int, ...] = ()
        while self._edge[index] >= 0:
            terminals += self._cheapest(int(self._symbol[self._edge[index]]))
            index = self._after[index]
        return terminals

    def _cheapest(self, symbol: int) -> tuple[int, ...]:
        """Return the cheapest terminals of a symbol."""
        return (symbol,) if symbol < self._tables.token_count else self._terminals(self._begins[symbol])

    def _goes_on(self) -> _Flags:
        """Return for each state whether its top symbol goes on with an item that was begun before it, or with a list.

        What only begins with an insertion must end in it, not with a closer after the cursor.
        """
        item, symbol = np.divmod(self._keys[self._costs <= MAX_COST * _UNIT + _UNIT - 1], self._width)
        state, depth = np.divmod(item, self._depths)
        found = np.zeros(self._tables.state_count, dtype=np.bool_)
        found[state[(depth > 1) | ((depth == 1) & self._is_list[symbol])]] = True
        return found

    def _key(self, state: int, depth: int, symbol: int) -> int:
        return (state * self._depths + depth) * self._width + symbol

    def _grow(self, reductions: Numbers) -> None:
        """Find all items from the reductions back along the transitions, then lower their costs until nothing changes.

        Sets the items' keys in order, their costs, the transition with which each rest begins, -1 for none, and the
        item after that; and the item with which the cheapest terminals of each non-terminal begin.
        """
        levels, edges = _items(reductions, self._source, self._first, self._depths, self._width)
        self._keys = np.sort(np.concatenate(levels))
        before, after, edge = (np.concatenate(each) for each in zip(*edges, strict=True))
        before, after = np.searchsorted(self._keys, before), np.searchsorted(self._keys, after)
        order = np.argsort(before, kind="stable")
        before, after, edge = before[order], after[order], edge[order]
        heads, starts = np.unique(before, return_index=True)
        own = np.full(len(self._keys), FAR * _UNIT)
        own[np.searchsorted(self._keys, reductions)] = 0
        whole = np.flatnonzero(self._keys // self._width % self._depths == 0)
        symbols = self._keys[whole] % self._width
        costs, last = own.copy(), own[:0]
        while not np.array_equal(last, costs):
            last = costs.copy()
            rests = np.minimum(self._yields[self._symbol[edge]] + costs[after], FAR * _UNIT)
            costs[heads] = np.minimum(own[heads], np.minimum.reduceat(rests, starts))
            np.minimum.at(self._yields, symbols, costs[whole] + 1)
        is_best = np.flatnonzero(rests == costs[before])[::-1]
        self._costs, self._edge = costs.astype(np.int32), np.full(len(costs), -1, np.int32)
        self._after = self._edge.copy()
        is_best = is_best[own[before[is_best]] > 0]
        self._edge[before[is_best]], self._after[before[is_best]] = edge[is_best], after[is_best]
        cheapest = np.flatnonzero(costs[whole] + 1 == self._yields[symbols])[::-1]
        self._begins = dict(zip(symbols[cheapest].tolist(), whole[cheapest].tolist(), strict=True))


def _items(
    reductions: Numbers, source: Numbers, first: Numbers, depths: int, width: int
) -> tuple[list[Numbers], list[tuple[Numbers, Numbers, Numbers]]]:
    """Return the keys of all items by depth, and between those of two depths: keys before and after, transitions."""
    own = reductions // width % depths
    levels, edges = [_distinct(reductions[own == depths - 1])], []
    for depth in range(depths - 1, 0, -1):
        keys = levels[-1]
        state = keys // (width * depths)
        counts = first[state + 1] - first[state]
        at = np.repeat(first[state] - np.concatenate(([0], np.cumsum(counts)[:-1])), counts) + np.arange(counts.sum())
        after = np.repeat(keys, counts)
        before = (source[at] * depths + depth - 1) * width + after % width
        edges.append((before, after, at))
        levels.append(_distinct(np.concatenate((before, reductions[own == depth - 1]))))
    return levels, edges


def _distinct(keys: Numbers) -> Numbers:
    """Return what `np.unique` does, which imports numpy's masked arrays for it."""
    ordered = np.sort(keys)
    return ordered[np.diff(ordered, prepend=ordered[:1] - 1) > 0]


def _transitions(tables: Tables) -> _Transitions:
    """Return all transitions of a grammar by target, its reductions, and the states that accept the end of a file."""
    source, symbol, value = tables.cells()
    is_token = symbol < tables.token_count
    shift = np.zeros(int(value.max()) + 1, dtype=np.int64)
    reductions: set[tuple[int, int, int]] = set()
    accepting: list[int] = []
    for index, states in _states_by_entry(value[is_token], source[is_token]):
        for action in tables.entry(index):
            if action.kind is ActionKind.REDUCE:
                reductions.update((state, action.child_count, action.symbol) for state in states)
            elif action.kind is ActionKind.ACCEPT:
                accepting += states
            elif action.kind is ActionKind.SHIFT and not (action.extra or action.repetition):
                shift[index] = action.state
    target = np.where(is_token, shift[value], value)
    order = np.lexsort((source, symbol, target))
    order = order[target[order] > 0]
    return _Transitions(source[order], symbol[order], target[order], sorted(reductions), accepting)


def _states_by_entry(value: Numbers, source: Numbers) -> Iterator[tuple[int, list[int]]]:
    """Yield each entry of the parse table with the states that have it."""
    order = np.argsort(value, kind="stable")
    found, starts = np.unique(value[order], return_index=True)
    for index, states in zip(found.tolist(), np.split(source[order], starts[1:]), strict=True):
        yield index, list(dict.fromkeys(states.tolist()))


def _usable(found: _Transitions, costs: Sequence[int], layout: LayoutRule, token_count: int) -> _Transitions:
    """Return the transitions and reductions that the language's layout and the terminals' costs allow."""
    source, symbol, target, reductions, accepting = found
    kept = np.ones(len(source), dtype=np.bool_)
    for first, second in layout.barred:
        kept &= ~((symbol == second) & np.isin(source, target[(symbol == first) & kept]))
    on_top = dict(zip(target[kept][::-1].tolist(), symbol[kept][::-1].tolist(), strict=True))
    reductions = [each for each in reductions if (each[2], on_top.get(each[0])) not in layout.unfinished]
    can_be_inserted = np.array([*(each >= 0 for each in costs), *[True] * (int(symbol.max()) + 1 - token_count)])
    kept &= can_be_inserted[symbol]
    return _Transitions(source[kept], symbol[kept], target[kept], reductions, accepting)
