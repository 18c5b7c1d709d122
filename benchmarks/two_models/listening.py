"""A model and its drafters that tell what happens inside a request, and draft a given text first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
GIVEN = "given text"
"""Name of a given text among the drafters."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a model says to a text after a prompt, by one pass.

    Attributes:
        log_probability: Log-probability of its tokens.
        ms: Time of the pass.
    """

    log_probability: float
    ms: float


class ListeningModel:
    """A `CausalModel` that keeps the cache of its last step, and judges texts at the start of a request.

    Attributes:
        model: Computes the passes.
        cache: Cache of the last step.
        asked: Texts to judge in the next step, which must score a chain, for example of a request without drafts.
        judgements: Judgements of the last texts.
    """

    def __init__(self, model: CausalModel) -> None:
        self.model, self.shape, self.joint_requests = model, model.shape, model.joint_requests
        self.cache: KVCache | None = None
        self.asked: Sequence[Sequence[int]] = ()
        self.judgements: list[Judgement] = []

    def score(
        self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER, skipped: int = 0
    ) -> Logits:
        """See `CausalModel`."""
        self.cache = cache
        if self.asked:
            self.judgements = [self._judge(tokens, text, cache) for text in self.asked]
            self.asked = ()
        return self.model.score(tokens, parents, cache, cancel, skipped)

    def _judge(self, before: IntArray, text: Sequence[int], cache: KVCache) -> Judgement:
        started = time.perf_counter()
        logits = self.model.score(*chain((*before.tolist(), *text)), cache)
        logits.argmax()
        ms = 1e3 * (time.perf_counter() - started)
        rows = range(len(before) - 1, len(before) - 1 + len(text))
        found = [float(logits.row(row)[token]) - logits.log_sum(row) for row, token in zip(rows, text, strict=True)]
        return Judgement(sum(found), ms)

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


def agreed(tokens: Sequence[int], others: Sequence[int]) -> int:
    """Return the number of first tokens that are the same."""
    same = 0
    for one, other in zip(tokens, others, strict=False):
        if one != other:
            break
        same += 1
    return same


class ListeningSession(DraftingSession):
    """Drafts of an attempt whose steps are noted; a given text comes first as long as it is written.

    Attributes:
        prompt: Tokens of the prompt.
        tokens: Tokens that were written.
        steps: Nodes and written tokens of each step.
    """

    def __init__(self, session: DraftingSession, prompt: Sequence[int], given: Sequence[int]) -> None:
        self.prompt, self.tokens, self.steps = tuple(prompt), list[int](), list[tuple[int, int]]()
        self._session, self._given = session, tuple(given)

    def propose(
        self, context: Sequence[int], allowed: Callable[[int], bool] | None = None, shared: SharedStep = ALONE
    ) -> DraftTree:
        """Return the rest of the given text, else what the session guesses."""
        guesses = self._session.propose(context, allowed, shared)  # always, because it learns from its own guesses
        written = tuple(context[len(self.prompt) :])
        rest = self._given[len(written) :]
        if not rest or self._given[: len(written)] != written:
            return guesses
        tokens, parents = chain(rest)
        return DraftTree(tokens, parents, np.zeros(len(rest), dtype=np.int32), (GIVEN,))

    def observe(self, tree: DraftTree, best: IntArray, path: AcceptedPath, step_ms: float) -> None:
        """Note a step, and let the session learn from it."""
        self.tokens += path.tokens
        self.steps.append((len(tree), len(path.tokens)))
        self._session.observe(tree, best, path, step_ms)


class ListeningDrafters(Drafters):
    """The drafters of a model as at their first start.

    Attributes:
        given: Text that the next request drafts first.
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
        self.given: Sequence[int] = ()
        self.first: ListeningSession | None = None
        self.warm_up()

    def listen(self, given: Sequence[int] = ()) -> None:
        """Start to listen to the next request, which drafts a text first."""
        self.given, self.first = given, None

    def session(
        self, prompt: Sequence[int], workspace: str = "", tail: Sequence[int] = (), *, single_line: bool = False
    ) -> DraftingSession:
        """Return a listening session for a request's first attempt, then those of its branches."""
        session = super().session(prompt, workspace, tail, single_line=single_line)
        if self.first is not None:
            return session
        self.first = ListeningSession(session, prompt, self.given)
        return self.first
