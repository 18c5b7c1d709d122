"""Several texts decoded together: each is a path of one tree of scored rows behind the cache's past.

A pass over a few rows costs hardly more than a pass over one, so texts that share their beginning cost about as much
together as the longest of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from completion.cache.kv_session import KVSession
from completion.decoding.attempt import Attempt
from completion.decoding.decoder import Proposal, RowsOf
from completion.model.causal_model import CausalModel
from drafting.drafter import SharedStep

MOST_ROWS = 128
"""Of one step, with a lot to spare."""


@dataclass(slots=True)
class Limb:
    """A text that is being written.

    Attributes:
        attempt: The text; its last token is the anchor, which the next step scores.
        rows: Its rows in the tree, all its tokens behind the past but the anchor.
        anchor: That token.
    """

    attempt: Attempt
    rows: list[int]
    anchor: int


class BranchTree:
    """Grows texts that branch off from one trunk: the end of what is cached, opened again.

    Args:
        model: Scores the tree.
        session: Holds the trunk. It is what it was once `close` is called.
        root: So many of its tokens all texts share.
    """

    def __init__(self, model: CausalModel, session: KVSession, root: int) -> None:
        self._model = model
        self._session = session
        self._trunk = session.reopen(root)
        self._limbs: list[Limb] = []

    def add(self, attempt: Attempt, start: int, anchor: int) -> None:
        """Let a text branch off behind the first `start` tokens of the trunk, with a token of its own."""
        self._limbs.append(Limb(attempt, list(range(start)), anchor))

    def step(self, goes_on: Callable[[Attempt], bool]) -> None:
        """Write some tokens of each text in one pass; those that have ended leave the tree.

        Texts that the cache has no room for leave it unfinished.

        Args:
            goes_on: Whether a text that has not ended is still wanted.
        """
        self._make_room()
        if self._limbs:
            self._step()
        self._limbs = [limb for limb in self._limbs if limb.attempt.stop is None and goes_on(limb.attempt)]
        self._forget_others()

    @property
    def growing(self) -> list[Attempt]:
        """The texts that have not ended."""
        return [limb.attempt for limb in self._limbs]

    def close(self) -> None:
        """Forget the branches; the trunk is part of the past again."""
        self._limbs.clear()
        self._session.commit(range(len(self._trunk)), self._trunk)

    def _step(self) -> None:
        """One forward pass: every text's anchor and guesses behind it, and what is accepted of them."""
        kept = self._session.cache.kept
        proposals = self._proposals()
        tokens, parents, anchors = _laid_out(self._limbs, proposals, kept)
        logits = self._model.score(tokens, parents, self._session.cache)
        for limb, proposal, anchor in zip(self._limbs, proposals, anchors, strict=True):
            own = RowsOf(logits, anchor - kept, 1 + len(proposal.tree))
            step = limb.attempt.decoder.accept(proposal, own, is_usual=len(tokens) == own.count)
            limb.attempt.add(step)
            limb.rows += [anchor + row for row in step.rows]
            limb.anchor = step.tokens[-1]

    def _proposals(self) -> list[Proposal]:
        proposals: list[Proposal] = []
        rows = others = len(self._limbs) - 1
        for limb in self._limbs:
            proposals.append(limb.attempt.decoder.propose(SharedStep(rows, others)))
            rows += len(proposals[-1].tree)
        return proposals

    def _forget_others(self) -> None:
        """Keep the trunk and the rows of unfinished texts."""
        wanted = {row for limb in self._limbs for row in limb.rows}
        kept = sorted(wanted.union(range(len(self._trunk))))
        self._session.cache.keep(kept)
        place = {row: index for index, row in enumerate(kept)}
        for limb in self._limbs:
            limb.rows = [place[row] for row in limb.rows]

    def _make_room(self) -> None:
        """Leave out the last texts if the next step might not fit."""
        cache = self._session.cache
        while self._limbs and cache.length + cache.kept + MOST_ROWS > self._session.room:
            self._limbs.pop()
            self._forget_others()


def _laid_out(
    limbs: Sequence[Limb], proposals: Sequence[Proposal], first: int
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """The next step's rows, numbered from `first` on: tokens, parents, and where each text's anchor lies."""
    tokens: list[int] = []
    parents: list[int] = []
    anchors: list[int] = []
    for limb, proposal in zip(limbs, proposals, strict=True):
        anchor = first + len(tokens)
        anchors.append(anchor)
        tokens += [limb.anchor, *proposal.tree.tokens.tolist()]
        parents += [limb.rows[-1] if limb.rows else -1, *(proposal.tree.parents + anchor + 1).tolist()]
    return np.array(tokens, dtype=np.int32), np.array(parents, dtype=np.int32), anchors
