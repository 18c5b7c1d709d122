"""The decoding loop. A step drafts a tree, prunes it, scores it in one forward pass and accepts a path of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from completion.cache.kv_session import KVSession
from completion.cancellation import CancelToken
from completion.decoding.constraints import NO_TOKEN, Constraints, ConstraintState
from completion.model.causal_model import CausalModel, Logits
from completion.model.sampling import SampledText, draw
from completion.prompt.healing import missing_after
from completion.request import Sampling
from drafting.arrays import FloatArray, IntArray
from drafting.draft_budget import ALONE, SharedStep
from drafting.draft_tree import ROOT, DraftTree
from drafting.session import DraftingSession
from drafting.verifier import ANCHOR_ROW, accept_path

RECYCLED_TOKENS = 8
"""Number of likeliest next tokens of each scored row that the drafters see."""


@dataclass(frozen=True, slots=True)
class TopTokens:
    """The likeliest tokens at one position of a text.

    Attributes:
        tokens: Likeliest tokens, best first.  # [RECYCLED_TOKENS]
        log_probabilities: Log-probability of each under the model, before constraints.  # [RECYCLED_TOKENS]
        state: State of the constraints before the position.
    """

    taken: int
    tokens: IntArray
    log_probabilities: FloatArray
    state: ConstraintState


@dataclass(frozen=True, slots=True)
class Step:
    """Result of one decoding step.

    Attributes:
        tokens: Emitted tokens; the last may be a stop token or NO_TOKEN.
        drafters: Name of the drafter that guessed each token, or "model".
        log_probabilities: Log-probability of each token under the model, given the forced bytes, before the grammar.
        drafted: Number of draft nodes that were scored.
        rows: Scored rows of the anchor and of all tokens except the last, which is the next anchor.
    """

    tokens: tuple[int, ...]
    drafters: tuple[str, ...]
    log_probabilities: tuple[float, ...]
    drafted: int
    drafting_ms: float
    top_tokens: tuple[TopTokens, ...] = ()
    rows: tuple[int, ...] = (ANCHOR_ROW,)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The draft that a step scores after an attempt's last token, the anchor.

    Attributes:
        tree: Draft tree of the guesses that the constraints allow.
        states: State of the constraints after the anchor and after each node.  # [1 + nodes]
        shared: What else the step was expected to score.
        ready: Time when the draft was ready, by `time.perf_counter`.
    """

    tree: DraftTree
    states: Sequence[ConstraintState]
    shared: SharedStep
    drafting_ms: float
    ready: float


@dataclass(slots=True)
class Decoder:
    """Generates the tokens of one attempt after a prompt.

    Attributes:
        session: KV session with the prompt, of which the last token and perhaps a few before it are missing.
        drafter: Source of guesses; None for plain decoding.
        forced_tokens: Tokenises the forced bytes, whose tokens are the first guesses.
        state: State of the constraints after the tokens so far.
        company: Returns what other requests' rows the next step is expected to score.
        text: What is known of the dead ends of the grammar; None unless the text is sampled within one.
    """

    model: CausalModel
    session: KVSession
    prompt: Sequence[int]
    constraints: Constraints
    drafter: DraftingSession | None
    forced_tokens: Callable[[bytes], Sequence[int]]
    sampling: Sampling
    stop_ids: frozenset[int]
    state: ConstraintState
    company: Callable[[], SharedStep] = lambda: ALONE
    text: SampledText | None = None
    tokens: list[int] = field(default_factory=list)

    def steps(self, cancel: CancelToken) -> Generator[Step]:
        """Yield decoding steps until a stop token, or until the caller stops iterating.

        Raises:
            CancelledError: Within a step, whose tokens are not emitted then.
        """
        while True:
            cancel.raise_if_cancelled()
            step = self._step(cancel)
            yield step
            if step.tokens[-1] in self.stop_ids or step.tokens[-1] == NO_TOKEN:
                return

    def _step(self, cancel: CancelToken) -> Step:
        """Generate the next tokens. Its logits, up to 10 MB, are freed before another step computes its own."""
        proposal = self.propose(self.company())
        pending = self._pending()
        logits = self._forward(pending, proposal.tree, cancel)
        step = self.accept(proposal, logits)
        before = len(pending) - 1
        rows = (*range(before), *(before + row for row in step.rows))
        self.session.commit(rows, [*pending, *step.tokens[:-1]])
        return step

    def propose(self, shared: SharedStep) -> Proposal:
        """Draft and prune a tree for a step, which may score other attempts and requests as well."""
        started = time.perf_counter()
        guesses = self._guess(self.state, shared)
        proposed = time.perf_counter()
        tree, states = self.constraints.prune(guesses, self.state)
        return Proposal(tree, states, shared, 1e3 * (proposed - started), time.perf_counter())

    def accept(self, proposal: Proposal, logits: Logits) -> Step:
        """Emit the accepted path of a proposal by the logits of the anchor and of each node.  # [1 + nodes]."""
        tree, states = proposal.tree, proposal.states
        path = accept_path(tree, self._chooser(logits, tree, states), self.stop_ids | {NO_TOKEN})
        verified = time.perf_counter()
        if self.drafter is not None:
            scored_alone = logits.pass_rows == 1 + len(tree)  # so that its time is the cost of such a step
            ran_alone = proposal.shared == self.company() == ALONE  # no other request ran between
            step_ms = 1e3 * (verified - proposal.ready) if scored_alone and ran_alone else 0.0
            self.drafter.observe(tree, logits.top(RECYCLED_TOKENS)[0], path, step_ms)
        drafting_ms = proposal.drafting_ms + 1e3 * (time.perf_counter() - verified)
        emitted = zip(path.rows, path.tokens, strict=True)
        scored = [self._scored(logits, row, token, states[row]) for row, token in emitted]
        log_probabilities = tuple(log_probability for log_probability, _ in scored)
        top_tokens = tuple(top for _, top in scored if top is not None)
        self.state = self.constraints.after(states[path.rows[-1]], path.tokens[-1])
        self.tokens += path.tokens
        return Step(path.tokens, path.drafters, log_probabilities, len(tree), drafting_ms, top_tokens, path.rows)

    def _scored(self, logits: Logits, row: int, token: int, state: ConstraintState) -> tuple[float, TopTokens | None]:
        """Return the log-probability of an emitted token less its cost, and the likeliest tokens there.

        Only tokens that agree with the text before the cursor count, because the user has typed that text, however
        unlikely the model finds it.
        """
        if token == NO_TOKEN:
            return -math.inf, None
        total, (ids, scores) = log_sum(logits, row, self.constraints.candidates(state)), logits.top(RECYCLED_TOKENS)
        likely = scores[row] - total
        if state.name:
            likely -= np.array([self.constraints.cost(state, each) for each in ids[row].tolist()], dtype=np.float32)
        at = np.flatnonzero(ids[row] == token)  # one of the best tokens needs no copy of the row
        score = float(scores[row][at[0]] if len(at) else logits.row(row)[token])
        return score - total - self.constraints.cost(state, token), TopTokens(token, ids[row], likely, state)

    def _guess(self, state: ConstraintState, shared: SharedStep) -> DraftTree:
        """Draft a tree: first the most likely tokens of the forced bytes, then the drafters' guesses."""
        if self.drafter is None:
            return DraftTree.empty()
        certain = self.forced_tokens(state.forced)[:-1] if state.forced else ()
        after: ConstraintState | None = state
        for token in certain:
            after = self.constraints.advance(after, token, is_guess=True) if after else None
        if after is None:
            certain, after = (), state
        forced, data = after.forced, self.constraints.token_bytes
        allowed = (lambda token: missing_after(data(token), forced) is not None) if forced else None
        guesses = self.drafter.propose([*self.prompt, *self.tokens, *certain], allowed, shared)
        return guesses.after(certain, "healing") if certain else guesses

    def _pending(self) -> list[int]:
        """Return the tokens that are not in the cache: the anchor, and perhaps a few before it."""
        return [*self.prompt, *self.tokens][len(self.session.tokens) :]

    def _forward(self, pending: Sequence[int], tree: DraftTree, cancel: CancelToken) -> Logits:
        """Score the pending tokens as a chain and the tree below them; return logits from the anchor on.

        The result has 1 + nodes rows.
        """
        chain = np.arange(ROOT, len(pending) - 1, dtype=np.int32)
        tokens = np.concatenate((np.asarray(pending, dtype=np.int32), tree.tokens))
        parents = np.concatenate((chain, tree.parents + len(pending)))
        return self.model.score(tokens, parents, self.session.cache, cancel, len(pending) - 1)

    def _chooser(self, logits: Logits, tree: DraftTree, states: Sequence[ConstraintState]) -> Callable[[int], int]:
        greedy = logits.argmax() if self.sampling.temperature <= 0 else None
        length = len(self.prompt) + len(self.tokens)

        def choose(row: int) -> int:
            state = states[row]
            if greedy is not None and (state.free or self.constraints.takes(state, int(greedy[row]))):
                return int(greedy[row])
            depth = 0 if row == ANCHOR_ROW else int(tree.depths[row - 1])
            allowed = None if state.grammar is None else partial(self.constraints.allow, state)
            candidates = self.constraints.candidates(state)
            cost = partial(self.constraints.cost, state) if state.name else None
            drawn = draw(logits.row(row), self.sampling, length + depth, candidates, allowed, cost, self.text)
            return NO_TOKEN if drawn is None else drawn

        return choose


def log_sum(logits: Logits, row: int, candidates: IntArray | None) -> float:
    """Return log Σ exp of the logits of a row, of the candidates if there are some."""
    if candidates is None:
        return logits.log_sum(row)
    allowed = logits.row(row)[candidates]
    best = allowed.max()
    return float(best + np.log(np.exp(allowed - best).sum()))
