"""Which cached keys and values serve a new prompt: kept where they are, shifted by a rotation, or computed anew.

A plan is a value: it can be printed and tested without a model. Source of the idea: "Let the Code LLM Edit Itself When
You Edit the Code" (PIE), section 3; repair of the first tokens of a reused run: "EPIC: Efficient Position-Independent
Context Caching for Serving Large Language Models", section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from drafting.arrays import IntArray

_ANCHOR_TOKENS = 8  # a run is found by this many equal tokens; shorter ones cost more repair than they save
_MOST_PLACES = 16  # of a run that stands in many places (rows of a table) only so many are compared


@dataclass(frozen=True, slots=True)
class Run:
    """`count` cached tokens from `source` on that serve the new prompt from `destination` on."""

    source: int
    destination: int
    count: int

    @property
    def shift(self) -> int:
        """Δ, by how many positions the run moves; 0 keeps it in place."""
        return self.destination - self.source


@dataclass(frozen=True, slots=True)
class CachePlan:
    """How a cache becomes the cache of a new prompt.

    Attributes:
        sources: Old slot for each new one, −1 where none serves.  # [new length]
        compute: New slots to compute, ascending.  # [computed]
    """

    sources: IntArray
    compute: IntArray

    @property
    def computed(self) -> int:
        """Tokens that go through the model."""
        return len(self.compute)

    @property
    def shifted(self) -> int:
        """Tokens whose keys are rotated and that are not computed anew."""
        reused = self._reused()
        return int(np.count_nonzero(reused & (self.sources != np.arange(len(self.sources)))))

    @property
    def kept(self) -> int:
        """Tokens that serve as they are."""
        return int(np.count_nonzero(self._reused())) - self.shifted

    def _reused(self) -> npt.NDArray[np.bool_]:
        reused = self.sources >= 0
        reused[self.compute] = False
        return reused

    def __str__(self) -> str:
        """One line for a person."""
        return f"{self.kept} kept, {self.shifted} shifted, {self.computed} computed"


def plan_exact(cached: Sequence[int], new: Sequence[int]) -> CachePlan:
    """Keep the longest common prefix, compute the rest: the same logits as without a cache."""
    common = common_prefix(np.asarray(cached, dtype=np.int32), np.asarray(new, dtype=np.int32))
    sources = np.full(len(new), -1, dtype=np.int32)
    sources[:common] = np.arange(common)
    return CachePlan(sources, np.arange(common, len(new), dtype=np.int32))


def plan_pie(
    cached: Sequence[int], new: Sequence[int], *, repair_tokens: int, always_compute: Sequence[int] = ()
) -> CachePlan:
    """Keep the common prefix and reuse every other run of equal tokens, wherever it stood.

    Args:
        cached: Tokens in the cache.
        new: Tokens of the new prompt.
        repair_tokens: So many first tokens of every reused run behind the common prefix are computed again: their
            hidden states depend most on what stood before them.
        always_compute: Positions in `new` that are computed wherever they lie behind the common prefix (the format's
            special tokens, which gather the most attention).
    """
    old_tokens, new_tokens = np.asarray(cached, dtype=np.int32), np.asarray(new, dtype=np.int32)
    common = common_prefix(old_tokens, new_tokens)
    sources = np.full(len(new_tokens), -1, dtype=np.int32)
    sources[:common] = np.arange(common)
    compute = np.ones(len(new_tokens), dtype=np.bool_)
    compute[:common] = False
    for run in matching_runs(old_tokens, new_tokens, common):
        end = run.destination + run.count
        sources[run.destination : end] = np.arange(run.source, run.source + run.count)
        compute[min(run.destination + repair_tokens, end) : end] = False
    compute[[position for position in always_compute if common <= position < len(new_tokens)]] = True
    return CachePlan(sources, np.flatnonzero(compute).astype(np.int32))


def common_prefix(first: IntArray, second: IntArray) -> int:
    """How many leading tokens agree."""
    shorter = min(len(first), len(second))
    different = np.flatnonzero(first[:shorter] != second[:shorter])
    return int(different[0]) if len(different) else shorter


def matching_runs(old: IntArray, new: IntArray, start: int) -> list[Run]:
    """Disjoint runs of `new` behind `start` that stand somewhere in `old`, found left to right, longest match first.

    Of several old places the one that continues the previous run's shift is taken, else the nearest.
    """
    if len(new) - start < _ANCHOR_TOKENS:  # a key at the prompt's end
        return []
    places: dict[bytes, list[int]] = {}
    for source in range(len(old) - _ANCHOR_TOKENS + 1):
        places.setdefault(old[source : source + _ANCHOR_TOKENS].tobytes(), []).append(source)
    runs: list[Run] = []
    position, shift = start, 0
    while position <= len(new) - _ANCHOR_TOKENS:
        found = places.get(new[position : position + _ANCHOR_TOKENS].tobytes())
        if found is None:
            position += 1
            continue
        best = max(found[-_MOST_PLACES:], key=lambda source: _preference(old, new, source, position, shift))
        run = _extend(old, new, best, position, runs[-1].destination + runs[-1].count if runs else start)
        runs.append(run)
        position, shift = run.destination + run.count, run.shift
    return runs


def _preference(old: IntArray, new: IntArray, source: int, position: int, shift: int) -> tuple[int, int]:
    """Longest match first, then the least change of shift."""
    return common_prefix(old[source:], new[position:]), -abs(position - source - shift)


def _extend(old: IntArray, new: IntArray, source: int, position: int, floor: int) -> Run:
    """Grow a match to both sides as far as the tokens agree; to the left no further than `floor`."""
    before = 0
    while position - before > floor and source - before > 0 and old[source - before - 1] == new[position - before - 1]:
        before += 1
    count = before + common_prefix(old[source:], new[position:])
    return Run(source - before, position - before, count)
