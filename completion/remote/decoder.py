"""Tokens of an attempt from a model server: constrained as the local decoder does it, corrected where they must be."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np

from completion.cancellation import CancelToken
from completion.decoding.constraints import NO_TOKEN, Constraints, ConstraintState
from completion.decoding.decoder import Step, TopTokens
from completion.errors import RemoteInterruptedError
from completion.model.sampling import draw
from completion.remote.model_server import Generated, ModelServer, Query
from completion.request import Sampling
from drafting.verifier import MODEL

MAX_CORRECTIONS = 8
"""Maximum number of tokens of an attempt that the constraints correct. Each correction costs a request."""

MAX_RESUMPTIONS = 1
"""Maximum number of interrupted replies of an attempt after which it goes on: a second one is no replica's end."""


@dataclass(slots=True)
class RemoteDecoder:
    """Generates the tokens of one attempt on a server.

    A token that the constraints reject is replaced by one that they accept, drawn as the local decoder does it,
    and the server goes on from there. It is one of the likeliest tokens, which the server has named.

    Attributes:
        state: State of the constraints after the tokens so far.
        note_cached: Called with `Generated.cached` when the first token arrives.
    """

    server: ModelServer
    prompt: Sequence[int]
    constraints: Constraints
    sampling: Sampling
    max_tokens: int
    stop_ids: frozenset[int]
    state: ConstraintState
    note_cached: Callable[[int | None], None]
    tokens: list[int] = field(default_factory=list)

    def steps(self, cancel: CancelToken) -> Generator[Step]:
        """Yield a step for each token until a stop token or the limit, or until the caller stops iterating.

        Where a reply is interrupted, the next request goes on after its last token: at an address of several servers,
        another one answers it.

        Raises:
            CancelledError: At once after `cancel`; the connection is closed.
            RemoteServerError: The server failed.
        """
        corrections = resumptions = 0
        while corrections <= MAX_CORRECTIONS:
            try:
                if (yield from self._reply(cancel)):
                    return
                corrections += 1
            except RemoteInterruptedError:
                resumptions += 1
                if resumptions > MAX_RESUMPTIONS:
                    raise
        yield Step((NO_TOKEN,), (MODEL,), (-math.inf,), 0, 0.0)

    def _reply(self, cancel: CancelToken) -> Generator[Step, None, bool]:
        """Yield the steps of one reply; return whether the attempt ends with it, not with a corrected token."""
        left = self.max_tokens - len(self.tokens)
        if not left:  # the reply was interrupted after the last token
            return True
        query = Query([*self.prompt, *self.tokens], left, self.state.forced, self.sampling)
        with closing(self.server.generate(query, cancel)) as generated:
            for each in generated:
                cancel.raise_if_cancelled()
                if not self.tokens:
                    self.note_cached(each.cached)
                step = self._step(each)
                yield step
                if step.tokens[0] in self.stop_ids or step.tokens[0] == NO_TOKEN:
                    return True
                if step.tokens[0] != each.token:
                    return False
        return True

    def _step(self, each: Generated) -> Step:
        before = self.state
        token = self._allowed(each, before)
        self.state = self.constraints.after(before, token)
        self.tokens.append(token)
        if token == NO_TOKEN:
            return Step((NO_TOKEN,), (MODEL,), (-math.inf,), 0, 0.0)
        scores = self._among_candidates(each.log_probabilities, before)
        top = sorted(scores.items(), key=lambda score: -score[1])
        ids = np.array([one for one, _ in top], dtype=np.int32)
        values = np.array([score for _, score in top], dtype=np.float32)
        return Step((token,), (MODEL,), (scores[token],), 0, 0.0, (TopTokens(token, ids, values, before),))

    def _allowed(self, each: Generated, state: ConstraintState) -> int:
        """Return the server's token if the constraints accept it, else one drawn from those that they accept."""
        if not each.log_probabilities or self.constraints.takes(state, each.token):
            return each.token if self.constraints.allow(state, each.token) else NO_TOKEN
        known = sorted(each.log_probabilities)
        row = np.array([each.log_probabilities[token] for token in known], dtype=np.float32)
        position = len(self.prompt) + len(self.tokens)
        cost = (lambda index: self.constraints.cost(state, known[index])) if state.name else None
        drawn = draw(row, self.sampling, position, None, lambda at: self.constraints.allow(state, known[at]), cost)
        return NO_TOKEN if drawn is None else known[drawn]

    def _among_candidates(self, scores: dict[int, float], state: ConstraintState) -> dict[int, float]:
        """Return log-probabilities given the forced bytes, as far as the likeliest tokens tell."""
        candidates = self.constraints.candidates(state)
        if candidates is None:
            return scores
        agreeing = [score for token, score in scores.items() if token in candidates]
        total = math.log(sum(map(math.exp, agreeing)) or 1.0)
        return {token: score - total for token, score in scores.items()}
