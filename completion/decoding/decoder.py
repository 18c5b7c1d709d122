"""The decoding loop. A step drafts a tree, prunes it, scores it in one forward pass and accepts a path of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from completion.cache.kv_session import KVSession
from completion.cancellation import CancelToken
from completion.decoding.constraints import NO_TOKEN, Constraints, ConstraintState
from completion.model.causal_model import CausalModel, Logits
from completion.model.dead_ends import SampledText
from completion.model.sampling import draw
from completion.prompt.healing import missing_after
from completion.request import Sampling
from drafting.arrays import FloatArray, IntArray
from drafting.draft_tree import ROOT, DraftTree
from drafting.drafter import ALONE, Drafter, SharedStep
from drafting.verifier import ANCHOR_ROW, AcceptedPath, accept_path

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
    drafter: Drafter | None
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
        log_probabilities = self._log_probabilities(logits, path, states)
        top_tokens = _top_tokens(logits, path, states, log_probabilities)
        log_probabilities = self._charged(log_probabilities, top_tokens)
        top_tokens = tuple(self._with_costs(top) if top.state.name else top for top in top_tokens)
        self.state = self.constraints.after(states[path.rows[-1]], path.tokens[-1])
        self.tokens += path.tokens
        return Step(path.tokens, path.drafters, log_probabilities, len(tree), drafting_ms, top_tokens, path.rows)

    def _log_probabilities(
        self, logits: Logits, path: AcceptedPath, states: Sequence[ConstraintState]
    ) -> tuple[float, ...]:
        """Return the log-probability of each emitted token among those that the forced bytes allow."""

        def of(row: int, token: int) -> float:
            candidates = self.constraints.candidates(states[row])
            if candidates is None and token != NO_TOKEN:
                return _score(logits, row, token) - logits.log_sum(row)
            return log_probability(logits.row(row), token, candidates)

        return tuple(of(row, token) for row, token in zip(path.rows, path.tokens, strict=True))

    def _charged(self, values: Sequence[float], tops: Sequence[TopTokens]) -> tuple[float, ...]:
        """Return the log-probability of each emitted token less its cost. NO_TOKEN has no top."""
        costs = [self.constraints.cost(top.state, top.taken) for top in tops]
        return (*(value - cost for value, cost in zip(values, costs, strict=False)), *values[len(tops) :])

    def _with_costs(self, top: TopTokens) -> TopTokens:
        costs = [self.constraints.cost(top.state, token) for token in top.tokens.tolist()]
        return replace(top, log_probabilities=top.log_probabilities - np.array(costs, dtype=np.float32))

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


def _top_tokens(
    logits: Logits, path: AcceptedPath, states: Sequence[ConstraintState], log_probabilities: Sequence[float]
) -> tuple[TopTokens, ...]:
    """Return the likeliest tokens at the position of each token of a path, except NO_TOKEN."""
    ids, scores = logits.top(RECYCLED_TOKENS)
    return tuple(
        TopTokens(token, ids[row], scores[row] - (_score(logits, row, token) - log_probability), states[row])
        for row, token, log_probability in zip(path.rows, path.tokens, log_probabilities, strict=True)
        if token != NO_TOKEN
    )


def _score(logits: Logits, row: int, token: int) -> float:
    """Return the logit of a token. One of the best tokens needs no copy of the row."""
    ids, scores = logits.top(RECYCLED_TOKENS)
    found = np.flatnonzero(ids[row] == token)
    return float(scores[row][found[0]] if len(found) else logits.row(row)[token])


def log_probability(row: FloatArray, token: int, candidates: IntArray | None = None) -> float:
    """Return the log-probability of a token among the candidates; minus infinity for NO_TOKEN.

    Args:
        row: Logits.  # [vocabulary]
        token: One of the candidates.
        candidates: Tokens that agree with the text before the cursor, None for all tokens. Other tokens do not count,
            because the user has typed that text, however unlikely the model finds it.  # [candidates]
    """
    if token == NO_TOKEN:
        return -np.inf
    allowed = row if candidates is None else row[candidates]
    best = allowed.max()
    return float(row[token] - best - np.log(np.exp(allowed - best).sum()))
