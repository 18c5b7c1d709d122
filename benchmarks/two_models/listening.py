"""A model and its drafters that tell what happens inside a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from completion.cancellation import NEVER, CancelToken
from completion.decoding.step_costs import load_or_measure_costs
from completion.memory import Held
from completion.model.causal_model import CausalModel, KVCache, Logits, ScorePass
from completion.model.loading import LoadedModel
from drafting.arrays import FloatArray, IntArray
from drafting.calibration import default_calibration
from drafting.draft_budget import ALONE, SharedStep
from drafting.draft_tree import ROOT, DraftTree
from drafting.session import Drafters, DraftingSession
from drafting.sources.token_recycling import common_recycling
from drafting.verifier import AcceptedPath

MAX_NODES = 16
"""Maximum number of nodes in a draft tree, as in the product."""


class ListeningModel:
    """A `CausalModel` that keeps the cache of its last step.

    Attributes:
        model: Computes the passes.
        cache: Cache of the last step.
    """

    def __init__(self, model: CausalModel) -> None:
        self.model, self.shape, self.joint_requests = model, model.shape, model.joint_requests
        self.cache: KVCache | None = None

    def score(
        self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER, skipped: int = 0
    ) -> Logits:
        """See `CausalModel`."""
        self.cache = cache
        return self.model.score(tokens, parents, cache, cancel, skipped)

    def held_weights(self) -> Held:
        """See `CausalModel`."""
        return self.model.held_weights()

    def new_cache(self, capacity: int) -> KVCache:
        """See `CausalModel`."""
        return self.model.new_cache(capacity)

    def prefill(
        self,
        tokens: IntArray,
        slots: IntArray,
        cache: KVCache,
        logits_rows: Sequence[int] = (),
        cancel: CancelToken = NEVER,
    ) -> Logits:
        """See `CausalModel`."""
        return self.model.prefill(tokens, slots, cache, logits_rows, cancel)

    def score_together(self, passes: Sequence[ScorePass]) -> Sequence[Logits]:
        """See `CausalModel`."""
        return self.model.score_together(passes)

    def superpose(
        self, tokens: IntArray, weights: FloatArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER
    ) -> Logits:
        """See `CausalModel`."""
        return self.model.superpose(tokens, weights, parents, cache, cancel)


def chain(tokens: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Return tokens and their parents as a chain."""
    return np.asarray(tokens, dtype=np.int32), np.arange(ROOT, len(tokens) - 1, dtype=np.int32)


class ListeningSession(DraftingSession):
    """Drafts of an attempt whose steps are noted.

    Attributes:
        prompt: Tokens of the prompt.
        tokens: Tokens that were written.
        steps: Nodes and written tokens of each step.
    """

    def __init__(self, session: DraftingSession, prompt: Sequence[int]) -> None:
        self.prompt, self.tokens, self.steps = tuple(prompt), list[int](), list[tuple[int, int]]()
        self._session = session

    def propose(
        self, context: Sequence[int], allowed: Callable[[int], bool] | None = None, shared: SharedStep = ALONE
    ) -> DraftTree:
        """Return what the session guesses."""
        return self._session.propose(context, allowed, shared)

    def observe(self, tree: DraftTree, best: IntArray, path: AcceptedPath, step_ms: float) -> None:
        """Note a step, and let the session learn from it."""
        self.tokens += path.tokens
        self.steps.append((len(tree), len(path.tokens)))
        self._session.observe(tree, best, path, step_ms)


class ListeningDrafters(Drafters):
    """The drafters of a model as at their first start.

    Attributes:
        first: Session of the last request's first attempt.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        tokenizer = loaded.tokenizer
        super().__init__(
            default_calibration(),
            load_or_measure_costs(loaded, MAX_NODES),
            tokenizer.vocabulary_size,
            special=sorted(tokenizer.special.values()),
            line_ends=tokenizer.tokens_with_byte(b"\n"),
            common=partial(common_recycling, tokenizer.digest),
        )
        self.first: ListeningSession | None = None
        self.warm_up()

    def listen(self) -> None:
        """Start to listen to the next request."""
        self.first = None

    def session(
        self, prompt: Sequence[int], workspace: str = "", tail: Sequence[int] = (), *, single_line: bool = False
    ) -> DraftingSession:
        """Return a listening session for a request's first attempt, then those of its branches."""
        session = super().session(prompt, workspace, tail, single_line=single_line)
        if self.first is not None:
            return session
        self.first = ListeningSession(session, prompt)
        return self.first
