"""Runs the passes of several requests as one: a request waits in its own greenlet until the others have theirs ready.

A pass of a few rows takes little longer than a pass of one, because it reads the same weights. Rows are independent, so
a request gets the logits that it would get alone. Code of requests reads as without it: a greenlet can wait in the
middle of any call. Source of the idea, batches that are put together anew for each step: "Orca: A Distributed Serving
System for Transformer-Based Generative Models", section 3.1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextvars import copy_context

from greenlet import getcurrent, greenlet

from completion.cancellation import NEVER, CancelToken
from completion.model.causal_model import CausalModel, KVCache, Logits, ScorePass
from drafting.arrays import IntArray
from drafting.draft_budget import ALONE, SharedStep

_log = logging.getLogger(__name__)


class _Request(greenlet):
    """A request.

    Attributes:
        cancel: Ends its wait.
        wanted: The pass that it waits for; None if it only waits for its turn.
        scored: That pass's logits; None if it was not computed with those of others, so the request computes it.
    """

    cancel: CancelToken = NEVER
    wanted: ScorePass | None = None
    scored: Logits | None = None

    def wait(self, cancel: CancelToken) -> None:
        """Let who runs the requests go on, until it is this one's turn again."""
        assert self.parent is not None  # noqa: S101 - only a thread's main greenlet has none
        self.cancel = cancel
        self.parent.switch()


class JointPasses:
    """A `CausalModel` whose `score` waits until the other requests have theirs ready. Not thread-safe.

    Whatever calls it outside a request that was started here gets a pass of its own at once.

    Attributes:
        joint_requests: Maximum number of requests that are worth running together.
    """

    def __init__(self, model: CausalModel) -> None:
        self.model = model
        self._requests: list[_Request] = []  # in the order of their start; all wait unless one runs
        self.shape, self.joint_requests = model.shape, model.joint_requests
        self.held_weights, self.new_cache, self.superpose = model.held_weights, model.new_cache, model.superpose
        self.score_together, self.prefill = model.score_together, model.prefill  # `take_turn` should be called before

    def start(self, work: Callable[[], None]) -> None:
        """Run a request, which must raise nothing, until it waits for the first time, or to its end."""
        request = _Request(work)
        request.gr_context = copy_context()
        self._requests.append(request)
        self._go_on(request)

    def run(self) -> None:
        """Compute the passes that requests wait for, and let each go on until it waits again, or to its end.

        Of those that wait for their turn, the oldest goes on. If some were cancelled, only they go on, so that newer
        requests of their documents can start before the next pass.
        """
        if cancelled := [request for request in self._requests if request.cancel.cancelled]:
            for request in cancelled:
                self._go_on(request)
            return
        scoring = [request for request in self._requests if request.wanted is not None]
        waiting = [request for request in self._requests if request.wanted is None]
        self._score(scoring)
        for request in (*scoring, *waiting[:1]):
            self._go_on(request)

    def take_turn(self, cancel: CancelToken = NEVER) -> None:
        """Let the other requests run before a computation of several passes, of which one goes on at a time.

        The caller checks `cancel` afterwards.
        """
        request = self._current()
        if request is not None:
            request.wait(cancel)

    def company(self) -> SharedStep:
        """Return what the calling request's next pass is expected to score for others."""
        request = self._current()
        others = [other for other in self._requests if request is not None and other is not request]
        if not others:
            return ALONE
        return SharedStep(sum(1 if other.wanted is None else len(other.wanted.tokens) for other in others), len(others))

    def score(
        self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER, skipped: int = 0
    ) -> Logits:
        """Score rows together with those of the other requests; see `CausalModel.score`."""
        request = self._current()
        if request is None:
            return self.model.score(tokens, parents, cache, cancel, skipped)
        request.wanted = ScorePass(tokens, parents, cache, skipped)
        request.wait(cancel)
        scored, request.wanted, request.scored = request.scored, None, None
        cancel.raise_if_cancelled()
        return self.model.score(tokens, parents, cache, cancel, skipped) if scored is None else scored

    def __len__(self) -> int:
        """Return the number of requests that have not ended."""
        return len(self._requests)

    def _current(self) -> _Request | None:
        """Return the request that calls; None if the caller is none of these."""
        caller = getcurrent()
        return next((request for request in self._requests if request is caller), None)

    def _go_on(self, request: _Request) -> None:
        request.switch()
        if request.dead:
            self._requests.remove(request)

    def _score(self, requests: Sequence[_Request]) -> None:
        """Compute the passes of requests together, if there are several."""
        passes = [request.wanted for request in requests if request.wanted is not None]
        if len(passes) < 2:
            return
        try:
            scored = self.model.score_together(passes)
        # It belongs to one of the requests, of which each computes its own pass then, and gets its own error.
        except Exception as error:  # noqa: BLE001
            _log.warning("%d passes are computed one by one: %s", len(passes), type(error).__name__)
            return
        for request, logits in zip(requests, scored, strict=True):
            request.scored = logits
