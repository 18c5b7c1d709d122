"""First difference between a drafted and a plain completion, and how near a tie the model's choice was there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.model.causal_model import CausalModel
from completion.model.sampling import draw
from completion.request import CompletionEvent, CompletionRequest, Sampling
from drafting.arrays import FloatArray, IntArray
from drafting.draft_budget import ALONE, SharedStep
from drafting.draft_tree import DraftTree
from drafting.session import Drafters, DraftingSession
from drafting.verifier import AcceptedPath

LARGEST_GAP = 100.0
"""Gap that is reported where no change of the logits explains a difference."""

ROUNDS = 30
"""Rounds of bisection."""


class Recorder:
    """A drafter that records the written tokens. Without a session it proposes nothing."""

    def __init__(self, session: DraftingSession | None) -> None:
        self.tokens: list[int] = []
        self._session = session

    def propose(
        self, context: Sequence[int], allowed: Callable[[int], bool] | None = None, shared: SharedStep = ALONE
    ) -> DraftTree:
        """Return the proposal of the session."""
        return DraftTree.empty() if self._session is None else self._session.propose(context, allowed, shared)

    def observe_text(self, before: Sequence[int], tokens: Sequence[int]) -> None:
        """Let the session guess from another text as well."""
        if self._session is not None:
            self._session.observe_text(before, tokens)

    def observe(self, tree: DraftTree, best: IntArray, path: AcceptedPath, step_ms: float) -> None:
        """Record the written tokens."""
        self.tokens += path.tokens
        if self._session is not None:
            self._session.observe(tree, best, path, step_ms)


def gap_at_difference(model: CausalModel, engine: Engine, drafters: Drafters, request: CompletionRequest) -> float:
    """Decode again with and without drafts, and compare the first two tokens that differ.

    Returns:
        Lead of the token of plain decoding over the other token, in logits with sampling noise. 0 if both runs agree
        this time, because the drafters have learned and propose other trees.
    """
    prompt, drafted, _ = recorded(engine, drafters, request, drafting=True)
    _, plain, _ = recorded(engine, drafters, request, drafting=False)
    differing = [i for i, (ours, theirs) in enumerate(zip(plain, drafted, strict=False)) if ours != theirs]
    if not differing:
        return 0.0
    at = differing[0]
    context = np.array([*prompt, *plain[:at]], dtype=np.int32)
    cache = model.new_cache(len(context))
    slots = np.arange(len(context), dtype=np.int32)
    row = model.prefill(context, slots, cache, (len(context) - 1,)).row(0)
    return gap(row, request.sampling, len(context) - 1, plain[at], drafted[at])


def gap(row: FloatArray, sampling: Sampling, position: int, chosen: int, other: int) -> float:
    """Return the least addition to the logit of `other` with which it is drawn instead of `chosen`, by bisection."""
    pair = np.array(sorted((chosen, other)), dtype=np.int32)

    def flips(added: float) -> bool:
        raised = row.copy()
        raised[other] += added
        return draw(raised, sampling, position, pair) == other

    low, high = 0.0, LARGEST_GAP
    if flips(low):
        return 0.0
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (low, middle) if flips(middle) else (middle, high)
    return high


def recorded(
    engine: Engine, drafters: Drafters, request: CompletionRequest, *, drafting: bool
) -> tuple[list[int], list[int], CompletionEvent]:
    """Run a request; return the tokens of the prompt, the written tokens and the last event."""
    recorders: list[tuple[list[int], Recorder]] = []
    make = drafters.session

    def session(
        prompt: Sequence[int], workspace: str = "", tail: Sequence[int] = (), *, single_line: bool = False
    ) -> Recorder:
        recorders.append(
            (list(prompt), Recorder(make(prompt, workspace, tail, single_line=single_line) if drafting else None))
        )
        return recorders[-1][1]

    drafters.session = session  # type: ignore[method-assign, assignment]
    try:
        *_, last = engine.complete(replace(request, drafting=True), CancelToken())
    finally:
        drafters.session = make  # type: ignore[method-assign]
    prompt, recorder = recorders[-1]
    return prompt, recorder.tokens, last
