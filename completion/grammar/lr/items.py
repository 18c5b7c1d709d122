"""The items of an LR automaton, read back from its parse table, with the cheapest terminals that end each of them.

An item of a state is a production of which some symbols are on the stack. Its rest costs the cheapest terminals of each
missing symbol. All rests are known together: costs are lowered over all transitions at once until nothing changes.
Source: Knuth, "A Generalization of Dijkstra's Algorithm", over the items of an LR automaton. Building them takes 1 to
130 ms, by the size of the grammar's table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from completion.grammar.lr.advance import LayoutRule
from completion.grammar.lr.tables import ActionKind, Numbers, Tables, spread

FAR = 1_000_000
"""Cost of what no terminals reach."""
MOST_COST = 255
"""Cost of a rest that has this cost or a higher one."""
_UNIT = 1024  # of a cost while rests are compared: of two that cost the same, the one with fewer symbols is taken


class Transitions(NamedTuple):
    """The transitions and reductions of a grammar.

    Attributes:
        source: States, in the order of their targets and symbols.  # [transitions]
        symbol: Symbols with which they are left.
        target: States after them.
        reductions: State, child count and symbol of each reduction, once for each terminal.  # [3, reductions]
        accepting: The states that accept a file's end.
    """

    source: Numbers
    symbol: Numbers
    target: Numbers
    reductions: Numbers
    accepting: Numbers

    def on_top(self, state_count: int) -> Numbers:
        """Return the symbol on top of each state; -1 for none."""
        found = np.full(state_count, -1)
        found[self.target[::-1]] = self.symbol[::-1]
        return found


class Items:
    """The items of a grammar, those with the most symbols on the stack first, then by state and symbol.

    The cost of a terminal is negative if it cannot be inserted.

    Attributes:
        state: State of each item.  # [items]
        depth: Number of its symbols that are on the stack.
        symbol: Non-terminal that it produces.
        cost: Cost of its rest, at most `MOST_COST`.
        yields: Cost of the cheapest terminals of each symbol.  # [symbols]
    """

    def __init__(self, graph: Transitions, costs: Sequence[int], state_count: int, symbol_count: int) -> None:
        self._token_count, self._width = len(costs), np.int32(symbol_count)
        self._first = np.searchsorted(graph.target, np.arange(state_count + 1)).astype(np.int32)  # into each state
        self._levels = list[Numbers]()  # of each depth: its items, as numbers of state and symbol
        before, symbol, after = self._edges(graph)
        keys = np.concatenate(self._levels)
        depths = np.arange(len(self._levels), dtype=np.uint8)[::-1]
        self.depth = np.repeat(depths, [len(level) for level in self._levels])
        self.state, self.symbol = (each.astype(np.uint16) for each in np.divmod(keys, self._width))
        yields = np.full(self._width + 1, FAR * _UNIT, dtype=np.int32)
        yields[: self._token_count] = [each * _UNIT + 1 if each >= 0 else FAR * _UNIT for each in costs]
        yields[-1] = 0
        self._lower(yields, before, symbol, after)
        self.yields = yields[:-1] // _UNIT

    @property
    def size_bytes(self) -> int:
        """Memory of the items."""
        of_items: list[Numbers] = [self.depth, self.state, self.symbol, self.cost, self._next_symbol, self._next_item]
        return sum(each.nbytes for each in [*self._levels, self._first, *of_items])

    def of_state(self, state: int) -> Iterator[int]:
        """Yield the numbers of a state's items with symbols on the stack, by how many, then by their non-terminals."""
        last = len(self.state) - len(self._levels[-1])
        for level in self._levels[-2::-1]:
            first, end = np.searchsorted(level, (state * self._width, (state + 1) * self._width)).tolist()
            last -= len(level)
            yield from range(last + first, last + end)

    def terminals(self, item: int) -> tuple[int, ...]:
        """Return the terminals of an item's rest."""
        found: tuple[int, ...] = ()
        while self._next_symbol[item] < self._width:
            found += self.cheapest(int(self._next_symbol[item]))
            item = int(self._next_item[item])
        return found

    def cheapest(self, symbol: int) -> tuple[int, ...]:
        """Return the cheapest terminals of a symbol."""
        return (symbol,) if symbol < self._token_count else self.terminals(self._begins[symbol])

    def _edges(self, graph: Transitions) -> tuple[Numbers, Numbers, Numbers]:
        """Find all items, from the reductions back along the transitions, and how each may go on.

        Returns:
            Items in order, the symbol with which they go on, and the item after it. A reduction goes on with a symbol
            and to an item after the last one, which cost nothing. All are narrow: a grammar has up to a million.
            # [edges] each
        """
        depths, made = graph.reductions[1], graph.reductions[0] * self._width + graph.reductions[2]
        found = list[tuple[Numbers, Numbers, Numbers]]()
        above, number = made[:0], 0
        for depth in range(int(depths.max()), -1, -1):
            own = _distinct(made[depths == depth])
            first, last = self._first[above // self._width], self._first[above // self._width + 1]
            at = spread(first, last - first)
            onward = np.repeat(np.arange(len(above), dtype=np.int32), last - first)
            keys = np.concatenate((own, graph.source[at] * self._width + above[onward] % self._width))
            symbol = np.concatenate((np.full(len(own), self._width, np.uint16), graph.symbol[at]))
            after = np.concatenate((np.full(len(own), -1, np.int32), onward + np.int32(number - len(above))))
            order = np.argsort(keys, kind="stable").astype(np.int32)
            keys = keys[order]
            is_new = np.diff(keys, prepend=np.int32(-1)) > 0
            found.append((np.cumsum(is_new, dtype=np.int32) + np.int32(number - 1), symbol[order], after[order]))
            above = keys[is_new]
            self._levels.append(above)
            number += len(above)
        before, symbol, after = (np.concatenate(each) for each in zip(*found, strict=True))
        after[after < 0] = number
        return before, symbol, after

    def _lower(self, yields: Numbers, before: Numbers, symbol: Numbers, after: Numbers) -> None:
        """Lower all costs until nothing changes, and note how the cheapest rest of each item begins.

        An item goes on to one of the level before, so one pass over the levels knows all rests if it knows the symbols.
        """
        firsts = np.flatnonzero(np.diff(before, prepend=np.int32(-1)))
        ends = np.cumsum([0, *map(len, self._levels)])
        bounds = zip(ends.tolist(), np.append(firsts, len(before))[ends].tolist(), strict=True)
        spans = [
            (slice(item, next_item), slice(edge, next_edge))
            for (item, edge), (next_item, next_edge) in pairwise(bounds)
        ]
        whole = np.arange(ends[-2], ends[-1])
        costs, rests = np.full(len(firsts) + 1, FAR * _UNIT, dtype=np.int32), np.empty(len(before), dtype=np.int32)
        costs[-1] = 0
        last = yields[:0]
        while not np.array_equal(last, yields):
            last = yields.copy()
            for level, edges in spans:
                rests[edges] = np.minimum(yields[symbol[edges]] + costs[after[edges]], FAR * _UNIT)
                costs[level] = np.minimum.reduceat(rests[edges], firsts[level] - edges.start)
            np.minimum.at(yields, self.symbol[whole], costs[whole] + 1)
        self.cost = np.minimum(costs[:-1] // _UNIT, MOST_COST).astype(np.uint8)
        best = np.flatnonzero(rests == costs[before]).astype(np.int32)
        best = best[np.diff(before[best], prepend=np.int32(-1)) > 0]  # the first of each item
        self._next_symbol, self._next_item = symbol[best], after[best]
        cheapest = whole[costs[whole] + 1 == yields[self.symbol[whole]]][::-1]
        self._begins = dict(zip(self.symbol[cheapest].tolist(), cheapest.tolist(), strict=True))


def read_transitions(tables: Tables, costs: Sequence[int], layout: LayoutRule) -> Transitions:
    """Return the transitions and reductions that the language's layout and the terminals' costs allow."""
    source, symbol, target, reductions, accepting = whole = _all_transitions(tables)
    kept = np.ones(len(source), dtype=np.bool_)
    for first, second in layout.barred:
        kept &= ~((symbol == second) & np.isin(source, target[(symbol == first) & kept]))
    on_top = whole._replace(symbol=symbol[kept], target=target[kept]).on_top(tables.state_count)
    for construct, last in layout.unfinished:
        reductions = reductions[:, (reductions[2] != construct) | (on_top[reductions[0]] != last)]
    kept &= ~np.isin(symbol, np.flatnonzero(np.array(costs) < 0))
    return Transitions(source[kept], symbol[kept], target[kept], reductions, accepting)


def _all_transitions(tables: Tables) -> Transitions:
    source, symbol, value = tables.cells()
    target = np.where(symbol < tables.token_count, np.uint16(0), value)
    cells = np.flatnonzero(symbol < tables.token_count).astype(np.int32)
    reductions, accepting, number = list[Numbers](), list[Numbers](), 0
    while len(cells):
        kinds, children, results, goes_nowhere = tables.nth_actions(int(value[cells].max()), number)
        entry = value[cells]
        kind = kinds[entry]
        shifts = (kind == ActionKind.SHIFT) & (goes_nowhere[entry] == 0)
        target[cells[shifts]] = results[entry[shifts]]
        reduced = kind == ActionKind.REDUCE
        made = (source[cells[reduced]], children[entry[reduced]], results[entry[reduced]])
        reductions.append(np.array([each.astype(np.uint16) for each in made]))
        accepting.append(source[cells[kind == ActionKind.ACCEPT]])
        cells, number = cells[kind >= 0], number + 1
    there = target > 0
    keys = (target[there] * np.int64(tables.symbol_count) + symbol[there]) * tables.state_count + source[there]
    target_symbol, source = np.divmod(np.sort(keys), tables.state_count)
    target, symbol = np.divmod(target_symbol, tables.symbol_count)
    found = source, symbol, target, np.concatenate(reductions, axis=1), np.concatenate(accepting)
    return Transitions(*(each.astype(np.uint16) for each in found))  # as wide as in the grammar's own tables


def _distinct(keys: Numbers) -> Numbers:
    """Return what `np.unique` does, which imports numpy's masked arrays for it."""
    ordered = np.sort(keys)
    return ordered[np.diff(ordered, prepend=ordered[:1] - 1) > 0]
