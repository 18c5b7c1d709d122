"""Plans which cached keys and values a new prompt keeps, which it shifts by a rotation, and which it computes.

Sources: "Let the Code LLM Edit Itself When You Edit the Code" (PIE), section 3, for the shift; "EPIC: Efficient
Position-Independent Context Caching for Serving Large Language Models", section 4, for computing the first tokens of a
reused run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from drafting.arrays import IntArray

_SEED_TOKENS = 8  # minimum length of a run: a shorter one costs more repair than it saves
_MAX_SOURCES = 16  # maximum number of occurrences of a run that are compared, such as the rows of a table


@dataclass(frozen=True, slots=True)
class Run:
    """`count` cached tokens from position `source` on that the new prompt has from position `destination` on."""

    source: int
    destination: int
    count: int

    @property
    def shift(self) -> int:
        """Δ, the number of positions by which the run moves."""
        return self.destination - self.source


@dataclass(frozen=True, slots=True)
class CachePlan:
    """The changes that turn a cache into the cache of a new prompt.

    Attributes:
        sources: Old slot of each new one, −1 for none.  # [new length]
        compute: New slots to compute, ascending.  # [computed]
    """

    sources: IntArray
    compute: IntArray

    @property
    def computed(self) -> int:
        """Number of tokens that the model computes."""
        return len(self.compute)

    @property
    def shifted(self) -> int:
        """Number of tokens that are reused with rotated keys."""
        reused = self._reused()
        return int(np.count_nonzero(reused & (self.sources != np.arange(len(self.sources)))))

    @property
    def kept(self) -> int:
        """Number of tokens that are reused unchanged."""
        return int(np.count_nonzero(self._reused())) - self.shifted

    def _reused(self) -> npt.NDArray[np.bool_]:
        reused = self.sources >= 0
        reused[self.compute] = False
        return reused


def plan_exact(cached: Sequence[int], new: Sequence[int]) -> CachePlan:
    """Keep the longest common prefix and compute the rest, which gives the same logits as no cache."""
    common = common_prefix(np.asarray(cached, dtype=np.int32), np.asarray(new, dtype=np.int32))
    sources = np.full(len(new), -1, dtype=np.int32)
    sources[:common] = np.arange(common)
    return CachePlan(sources, np.arange(common, len(new), dtype=np.int32))


def plan_pie(
    cached: Sequence[int], new: Sequence[int], *, repair_tokens: int, always_compute: Sequence[int] = ()
) -> CachePlan:
    """Keep the common prefix, and reuse every other run of equal tokens, whatever its position in the cache.

    The first `repair_tokens` of each run after the common prefix are computed again, because their hidden states depend
    most on the tokens before the run; so are the positions to compute always: those of the FIM format's special tokens,
    which get the most attention.
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
    """Return the number of leading tokens that are equal."""
    shorter = min(len(first), len(second))
    different = np.flatnonzero(first[:shorter] != second[:shorter])
    return int(different[0]) if len(different) else shorter


def matching_runs(old: IntArray, new: IntArray, start: int) -> list[Run]:
    """Return disjoint runs of `new` from `start` on that `old` contains, from left to right.

    If a run occurs several times in `old`, the longest match is taken, then the one whose shift is closest to the
    previous run's.
    """
    if len(new) - start < _SEED_TOKENS:  # the usual case: the user typed at the prompt's end
        return []
    sources_by_seed: dict[bytes, list[int]] = {}
    for source in range(len(old) - _SEED_TOKENS + 1):
        sources_by_seed.setdefault(old[source : source + _SEED_TOKENS].tobytes(), []).append(source)
    runs: list[Run] = []
    position, shift = start, 0
    while position <= len(new) - _SEED_TOKENS:
        sources = sources_by_seed.get(new[position : position + _SEED_TOKENS].tobytes())
        if sources is None:
            position += 1
            continue
        best = max(sources[-_MAX_SOURCES:], key=lambda source: _preference(old, new, source, position, shift))
        run = _extend(old, new, best, position, runs[-1].destination + runs[-1].count if runs else start)
        runs.append(run)
        position, shift = run.destination + run.count, run.shift
    return runs


def _preference(old: IntArray, new: IntArray, source: int, position: int, shift: int) -> tuple[int, int]:
    """Return a sort key: the length of the match, then the negative change of shift."""
    return common_prefix(old[source:], new[position:]), -abs(position - source - shift)


def _extend(old: IntArray, new: IntArray, source: int, position: int, floor: int) -> Run:
    """Extend a match to both sides while the tokens are equal, to the left at most to position `floor`."""
    before = 0
    while position - before > floor and source - before > 0 and old[source - before - 1] == new[position - before - 1]:
        before += 1
    count = before + common_prefix(old[source:], new[position:])
    return Run(source - before, position - before, count)
