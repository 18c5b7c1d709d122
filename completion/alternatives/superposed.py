"""Superposed decoding: each step advances several drafts with one row, a weighted sum of their last tokens' embeddings.

Source: "Superposed Decoding: Multiple Generations from a Single Autoregressive Inference Pass". The mixture only
approximates each draft's own context. So its keys and values are dropped at the end, and an exact pass over the tree
of all drafts gives the probabilities that order them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from completion.cancellation import CancelToken
from completion.decoding.constraints import FREE, Constraints, ConstraintState
from completion.decoding.decoder import log_probability
from completion.decoding.local_task import LocalTask
from completion.decoding.output_text import OutputText
from completion.decoding.stop_rules import StopRules
from completion.model.causal_model import CausalModel, KVCache, Logits
from completion.model.sampling import draw
from completion.request import Sampling
from drafting.arrays import FloatArray
from drafting.sources.ngram_model import NgramModel
from drafting.verifier import MODEL

NGRAM_SHARE = 0.54
"""α, the weight of the n-grams against the model (section 4 of the source)."""

TEMPERATURE = 0.06
"""T, the temperature of the model's distribution (section 4)."""

MIN_SHARE = 1e-3
"""N-gram share of a token that the n-grams never saw; the source uses 0, but a workspace is no large corpus."""

TRIED_TOKENS = 64
"""Number of likeliest tokens that are tried against the constraints before the whole vocabulary is."""

MAX_PASS_ROWS = 192
"""Maximum number of rows of an exact pass; longer drafts are scored in several passes."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One draft of a superposition.

    Attributes:
        tokens: Tokens so far, including a stop token.
        state: State of the constraints after them.
        score: Sum of the interpolated log-probabilities.
    """

    tokens: tuple[int, ...]
    state: ConstraintState
    score: float


@dataclass(frozen=True, slots=True)
class ScoredDraft:
    """A draft with the exact log-probability of each token."""

    tokens: tuple[int, ...]
    log_probabilities: tuple[float, ...]


def superposed_drafts(task: LocalTask, count: int, max_tokens: int, cancel: CancelToken) -> list[ScoredDraft]:
    """Return `count` drafts after the prompt by falling probability; no drafts if the request is hurried.

    A single draft is the greedy text. Each draft has ended, or has `max_tokens` new tokens, or as many as the cache has
    room for. The session must contain the prompt without its last token; it is restored at the end.

    Raises:
        CancelledError: Within a pass after `cancel`.
    """
    session, prompt = task.session, task.prompt.tokens
    trunk = session.reopen(len(prompt) - 1)
    cache = session.cache
    try:
        root = cache.kept
        logits = task.model.score(np.array(prompt[-1:], dtype=np.int32), np.array([-1], dtype=np.int32), cache, cancel)
        cache.keep(range(root + 1))
        drafts = _Superposition(task, count, max_tokens).write(logits, cancel)
        cache.keep(range(root + 1))  # drops the rows of the mixtures
        cancel.raise_if_cancelled()
        if cancel.hurried:
            return []
        scored = _scored(task.model, task.constraints(), cache, drafts, root, logits, cancel)
        return sorted(scored, key=lambda draft: -sum(draft.log_probabilities))
    finally:
        session.commit(range(len(trunk)), trunk)


class _Superposition:
    """Generates the drafts of one request."""

    def __init__(self, task: LocalTask, count: int, max_tokens: int) -> None:
        self._model, self._cache, self._count = task.model, task.session.cache, count
        self._constraints: Constraints = task.constraints()
        self._stop_ids, self._forced_bytes = task.tokenizer.stop_ids, len(task.prompt.forced)
        self._rules = StopRules(replace(task.request, max_tokens=max_tokens), task.context)
        free = task.session.capacity - self._cache.length - self._cache.kept
        self._max_slots = free // (count + 1) - 1  # the mixtures take as many slots as a draft
        self._before = task.prompt.before_cursor
        self._ngrams: NgramModel = task.drafters.ngrams(task.prompt.tokens, task.request.workspace)

    def write(self, logits: Logits, cancel: CancelToken) -> list[Draft]:
        """Generate until enough drafts have ended.

        Args:
            logits: Logits after the prompt.  # [1]
            cancel: Ends it within a pass.
        """
        growing = [Draft((), self._constraints.start, 0.0)]
        ended: list[Draft] = []
        while growing and len(ended) < self._count and not cancel.hurried:
            cancel.raise_if_cancelled()
            chosen, growing = self._best_continuations(growing, logits), []
            for draft in chosen:
                (ended if self._has_ended(draft) else growing).append(draft)
            if growing and len(ended) < self._count:
                logits = self._superpose(growing, cancel)
        return ended[: self._count]

    def _best_continuations(self, drafts: Sequence[Draft], logits: Logits) -> list[Draft]:
        """Return the best `count` continuations of all drafts, by the model and the n-grams together."""
        best = (logits.top(TRIED_TOKENS)[0][0], logits.row(0))
        found = [each for draft in drafts for each in self._continuations(draft, *best)]
        return sorted(found, key=lambda draft: -draft.score)[: self._count]

    def _continuations(self, draft: Draft, best: Sequence[int], row: FloatArray) -> Iterator[Draft]:
        """Yield a draft with each of its best count² next tokens: log p = (1 − α)·log p_model + α·log p_ngram."""
        tokens = self._candidates(draft, best, row)
        if not tokens:
            return
        scaled = row[tokens].astype(np.float64) / TEMPERATURE
        model = scaled - np.logaddexp.reduce(scaled)
        ngrams = np.maximum(self._ngrams.shares((*self._before, *draft.tokens), tokens), MIN_SHARE)
        scores = (1 - NGRAM_SHARE) * model + NGRAM_SHARE * np.log(ngrams / ngrams.sum())
        for token, score in zip(tokens, scores, strict=True):
            state = self._constraints.advance(draft.state, token) or FREE
            yield Draft((*draft.tokens, token), state, draft.score + float(score))

    def _candidates(self, draft: Draft, best: Sequence[int], row: FloatArray) -> list[int]:
        """Return the likeliest tokens that the constraints allow, at most count²."""
        state, wanted = draft.state, self._count**2
        if state.free:
            return [int(token) for token in best[:wanted]]
        spelled = self._constraints.candidates(state)
        ranked = best if spelled is None else spelled[np.argsort(-row[spelled], kind="stable")]
        allowed: list[int] = []
        for token in ranked[: TRIED_TOKENS * 4]:
            if self._constraints.advance(state, int(token)) is not None:
                allowed.append(int(token))
                if len(allowed) == wanted:
                    return allowed
        if allowed:
            return allowed
        drawn = draw(row, Sampling(), 0, spelled, lambda token: self._constraints.advance(state, token) is not None)
        return [] if drawn is None else [drawn]

    def _superpose(self, drafts: Sequence[Draft], cancel: CancelToken) -> Logits:
        """Compute one row of Σ γ·e(last token), where γ is a draft's share of the probability."""
        scores = np.array([draft.score for draft in drafts])
        weights = np.exp(scores - np.logaddexp.reduce(scores)).astype(np.float32)
        tokens = np.array([[draft.tokens[-1] for draft in drafts]], dtype=np.int32)
        parent = np.array([self._cache.kept - 1], dtype=np.int32)
        logits = self._model.superpose(tokens, weights[None, :], parent, self._cache, cancel)
        self._cache.keep(range(self._cache.kept + 1))
        return logits

    def _has_ended(self, draft: Draft) -> bool:
        if draft.tokens[-1] in self._stop_ids or len(draft.tokens) >= self._max_slots:
            return True
        output = OutputText(self._forced_bytes)
        for token in draft.tokens:
            output.extend(self._constraints.token_bytes(token), MODEL)
        return (self._rules.text_end(output.whole()) or self._rules.size_end(output)) is not None


def _scored(
    model: CausalModel,
    constraints: Constraints,
    cache: KVCache,
    drafts: Sequence[Draft],
    root: int,
    logits: Logits,
    cancel: CancelToken,
) -> Iterator[ScoredDraft]:
    """Yield each draft with exact log-probabilities, from a pass over the tree of all drafts below row `root`.

    As in decoding, a token's probability is that among the tokens that the forced bytes allow.
    """
    rows: dict[tuple[int, ...], int] = {(): root}
    parents: list[int] = []
    for draft in drafts:
        for length in range(1, len(draft.tokens)):
            path = draft.tokens[:length]
            if path not in rows:
                parents.append(rows[path[:-1]])
                rows[path] = root + len(parents)
    tokens = np.array([path[-1] for path in list(rows)[1:]], dtype=np.int32)
    scores = {root: logits.row(0)}
    for start in range(0, len(tokens), MAX_PASS_ROWS):
        chunk = slice(start, start + MAX_PASS_ROWS)
        found = model.score(tokens[chunk], np.array(parents[chunk], dtype=np.int32), cache, cancel)
        scores |= {root + 1 + start + row: found.row(row) for row in range(len(tokens[chunk]))}
        cache.keep(range(root + 1 + start + len(tokens[chunk])))
    for draft in drafts:
        before = [scores[rows[draft.tokens[:length]]] for length in range(len(draft.tokens))]
        allowed = constraints.candidates_along(draft.tokens)
        exact = tuple(map(log_probability, before, draft.tokens, allowed))
        yield ScoredDraft(draft.tokens, exact)
