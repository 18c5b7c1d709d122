"""Decodes several branches together: on the local model each is a path of one tree of scored rows after the past.

A pass over a few rows costs hardly more than a pass over one row, so branches that share their start cost about as
much together as the longest of them alone. On a server each is a request of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from completion.cache.kv_session import KVSession
from completion.cancellation import NEVER, CancelToken
from completion.decoding.attempt import Attempt, Branch
from completion.decoding.decoder import Decoder, Proposal, Step
from completion.decoding.joint_passes import JointPasses
from completion.decoding.local_task import LocalTask
from completion.model.logits import RowSlice
from drafting.draft_budget import SharedStep

MAX_STEP_ROWS = 128
"""Number of free slots that a step requires; it uses far fewer."""


@dataclass(slots=True)
class GrowingBranch:
    """A branch that is generated.

    Attributes:
        rows: Rows of its tokens after the past, except the anchor's.
    """

    attempt: Attempt
    decoder: Decoder
    rows: list[int]


class BranchTree:
    """Grows branches of one trunk: the end of the cached tokens, turned into rows again.

    Args:
        model: The model, whose passes other requests may share.
        session: KV session with the trunk; `close` restores it.
        root: Number of its tokens that all branches share.
    """

    def __init__(self, model: JointPasses, session: KVSession, root: int, cancel: CancelToken = NEVER) -> None:
        self._model = model
        self._cancel = cancel
        self._session = session
        self._trunk = session.reopen(root)
        self._branches: list[GrowingBranch] = []

    @classmethod
    def of(
        cls, task: LocalTask, first: Attempt, branches: Sequence[tuple[Branch, Attempt]], cancel: CancelToken
    ) -> BranchTree:
        """Make the tree of these branches of the first attempt. Its root is the end of the tokens that all share."""
        shared = min(branch.start for branch, _ in branches)
        drafter = task.drafter_of_branches(first)
        tree = cls(task.model, task.session, len(task.prompt.tokens) + shared, cancel)
        for branch, attempt in branches:
            written = (*first.source.tokens[: branch.start], branch.token)
            decoder = tree.add(attempt, branch.start - shared)
            decoder.drafter = None if drafter is None else drafter.branch(written)
        return tree

    def add(self, attempt: Attempt, start: int) -> Decoder:
        """Add a branch that shares the first `start` tokens of the trunk, and return its decoder."""
        decoder = cast("Decoder", attempt.source)  # the model is local
        self._branches.append(GrowingBranch(attempt, decoder, list(range(start))))
        return decoder

    def step(self, goes_on: Callable[[Attempt], bool]) -> None:
        """Generate tokens of each branch in one pass, and remove the branches that ended.

        Branches for which the cache has no room are removed unfinished, and those that are no longer wanted, as
        `goes_on` tells.

        Raises:
            CancelledError: Within the pass; no branch has changed.
        """
        self._make_room()
        if self._branches:
            self._step()
        self._branches = [each for each in self._branches if each.attempt.stop is None and goes_on(each.attempt)]
        self._drop_rows()

    @property
    def growing(self) -> list[Attempt]:
        """The branches that have not ended."""
        return [branch.attempt for branch in self._branches]

    def close(self) -> None:
        """Drop the branches and make the trunk part of the past again."""
        self._branches.clear()
        self._session.commit(range(len(self._trunk)), self._trunk)

    def _step(self) -> None:
        """Score each branch's anchor and draft in one forward pass, and add what is accepted to the branch."""
        kept = self._session.cache.kept
        proposals = self._proposals()
        tokens, parents, anchors = _layout(self._branches, proposals, kept)
        logits = self._model.score(tokens, parents, self._session.cache, self._cancel)
        for branch, proposal, anchor in zip(self._branches, proposals, anchors, strict=True):
            own = RowSlice(logits, anchor - kept, 1 + len(proposal.tree))
            step = branch.decoder.accept(proposal, own)
            branch.attempt.add(step)
            branch.rows += [anchor + row for row in step.rows]

    def _proposals(self) -> list[Proposal]:
        proposals: list[Proposal] = []
        company, own = self._model.company(), len(self._branches) - 1
        rows, others = company.rows + own, company.attempts + own
        for branch in self._branches:
            proposals.append(branch.decoder.propose(SharedStep(rows, others)))
            rows += len(proposals[-1].tree)
        return proposals

    def _drop_rows(self) -> None:
        """Drop all rows except those of the trunk and of unfinished branches."""
        wanted = {row for branch in self._branches for row in branch.rows}
        kept = sorted(wanted.union(range(len(self._trunk))))
        self._session.cache.keep(kept)
        new_row = {row: index for index, row in enumerate(kept)}
        for branch in self._branches:
            branch.rows = [new_row[row] for row in branch.rows]

    def _make_room(self) -> None:
        """Remove the last branches if the next step might not fit."""
        while self._branches and not self._session.has_room(MAX_STEP_ROWS):
            self._branches.pop()
            self._drop_rows()


def _layout(
    branches: Sequence[GrowingBranch], proposals: Sequence[Proposal], first: int
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return the next step's tokens and parents, and each branch's anchor row; rows are numbered from `first` on."""
    tokens: list[int] = []
    parents: list[int] = []
    anchors: list[int] = []
    for branch, proposal in zip(branches, proposals, strict=True):
        anchor = first + len(tokens)
        anchors.append(anchor)
        last = (branch.decoder.tokens or branch.decoder.prompt)[-1]
        tokens += [last, *proposal.tree.tokens.tolist()]
        parents += [branch.rows[-1] if branch.rows else -1, *(proposal.tree.parents + anchor + 1).tolist()]
    return np.array(tokens, dtype=np.int32), np.array(parents, dtype=np.int32), anchors


class SeparateBranches:
    """Branches that are generated side by side. Their sources run from the first step on."""

    def __init__(self, attempts: Sequence[Attempt], cancel: CancelToken) -> None:
        self._steps: dict[Attempt, Generator[Step]] = {each: each.source.steps(cancel) for each in attempts}

    @property
    def growing(self) -> list[Attempt]:
        """The branches that have not ended."""
        return list(self._steps)

    def step(self, goes_on: Callable[[Attempt], bool]) -> None:
        """Add the next token of each branch, and remove the branches that ended or are no longer wanted.

        Raises:
            CancelledError: Between two steps.
        """
        for attempt, steps in list(self._steps.items()):
            step = next(steps, None)
            attempt.end() if step is None else attempt.add(step)
            if attempt.stop is not None or not goes_on(attempt):
                self._drop(attempt)

    def close(self) -> None:
        """End the sources of all branches."""
        for attempt in self.growing:
            self._drop(attempt)

    def _drop(self, attempt: Attempt) -> None:
        self._steps.pop(attempt).close()
