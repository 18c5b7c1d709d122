"""Several drafts from one pass a step: the model reads the weighted sum of their last tokens' embeddings.

Source: "Superposed Decoding: Multiple Generations from a Single Autoregressive Inference Pass". The mixture is only an
approximation of what each draft has before it, so its keys and values are thrown away, and one exact pass over the
tree of all drafts gives the probabilities by which they are ordered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from completion.cancellation import CancelToken
from completion.decoding.constraints import FREE, Constraints, ConstraintState
from completion.decoding.decoder import log_probability
from completion.decoding.task import Task
from completion.model.causal_model import CausalModel, KVCache, Logits
from completion.model.sampling import draw
from completion.request import Sampling
from completion.stopping.output_text import OutputText
from completion.stopping.rules import StopRules
from drafting.arrays import FloatArray
from drafting.sources.ngram_model import NgramModel
from drafting.verifier import MODEL

NGRAM_SHARE = 0.54
"""α: how much n-grams count against the model (section 4 of the source)."""

TEMPERATURE = 0.06
"""T, of the model's distribution (section 4)."""

LEAST_SHARE = 1e-3
"""Of a continuation that n-grams never saw. The source takes 0, on 200,000 documents; a workspace is no such corpus."""

LOOKED_AT = 64
"""Best tokens that are tried against the constraints before the whole vocabulary is."""

ROWS_AT_ONCE = 192
"""Of an exact pass; more drafts than that are scored in several."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One text of a superposition.

    Attributes:
        tokens: What was written, a stop token included.
        state: Where it stands within the constraints.
        score: Sum of interpolated log-probabilities.
    """

    tokens: tuple[int, ...]
    state: ConstraintState
    score: float


@dataclass(frozen=True, slots=True)
class ScoredDraft:
    """A draft with the exact log-probability of each token."""

    tokens: tuple[int, ...]
    log_probabilities: tuple[float, ...]


def superposed_drafts(task: Task, count: int, most_tokens: int, cancel: CancelToken) -> list[ScoredDraft]:
    """`count` drafts behind the prompt, the likeliest first; with one it is the greedy text. None in a hurry.

    Each has ended, or has `most_tokens` tokens, or fewer where the cache has no room for as many. The session holds at
    least the prompt but its last token, and in the end what it held before.

    Raises:
        CancelledError: Between two passes.
    """
    session, prompt = task.session, task.prompt.tokens
    trunk = session.reopen(len(prompt) - 1)
    cache = session.cache
    try:
        root = cache.kept
        logits = task.model.score(np.array(prompt[-1:], dtype=np.int32), np.array([-1], dtype=np.int32), cache)
        cache.keep(range(root + 1))
        drafts = _Superposition(task, count, most_tokens).write(logits, cancel)
        cache.keep(range(root + 1))  # the mixtures go
        cancel.raise_if_cancelled()
        if cancel.hurried:
            return []
        return sorted(_scored(task.model, cache, drafts, root, logits), key=lambda draft: -sum(draft.log_probabilities))
    finally:
        session.commit(range(len(trunk)), trunk)


class _Superposition:
    """Writes the drafts of one request."""

    def __init__(self, task: Task, count: int, most_tokens: int) -> None:
        self._model, self._cache, self._count = task.model, task.session.cache, count
        self._constraints: Constraints = task.constraints()
        self._ends, self._forced_bytes = task.tokenizer.stop_ids, len(task.prompt.forced)
        self._rules = StopRules(task.request, task.context)
        free = task.session.room - self._cache.length - self._cache.kept
        self._most = min(most_tokens, free // (count + 1) - 1)  # the mixtures take as many slots as a draft
        self._before = task.prompt.before_cursor
        self._ngrams: NgramModel = task.drafters.ngrams(task.prompt.tokens, task.request.workspace)

    def write(self, logits: Logits, cancel: CancelToken) -> list[Draft]:
        """Go on until enough drafts have ended.  logits: behind the prompt.  # [1]."""
        alive = [Draft((), self._constraints.start, 0.0)]
        ended: list[Draft] = []
        while alive and len(ended) < self._count and not cancel.hurried:
            cancel.raise_if_cancelled()
            chosen, alive = self._continued(alive, logits), []
            for draft in chosen:
                (ended if self._has_ended(draft) else alive).append(draft)
            if alive and len(ended) < self._count:
                logits = self._superpose(alive)
        return ended[: self._count]

    def _continued(self, drafts: Sequence[Draft], logits: Logits) -> list[Draft]:
        """The best `count` continuations of all drafts, by the model and n-grams together; each text once."""
        best = (logits.top(LOOKED_AT)[0][0], logits.row(0))
        found = [each for draft in drafts for each in self._continuations(draft, *best)]
        return sorted(found, key=lambda draft: -draft.score)[: self._count]

    def _continuations(self, draft: Draft, best: Sequence[int], row: FloatArray) -> Iterator[Draft]:
        """A draft with each of its best count² next tokens: log p = (1 − α)·log p_model + α·log p_ngram."""
        tokens = self._candidates(draft, best, row)
        if not tokens:
            return
        scaled = row[tokens].astype(np.float64) / TEMPERATURE
        model = scaled - np.logaddexp.reduce(scaled)
        ngrams = np.maximum(self._ngrams.shares((*self._before, *draft.tokens), tokens), LEAST_SHARE)
        scores = (1 - NGRAM_SHARE) * model + NGRAM_SHARE * np.log(ngrams / ngrams.sum())
        for token, score in zip(tokens, scores, strict=True):
            state = self._constraints.advance(draft.state, token) or FREE
            yield Draft((*draft.tokens, token), state, draft.score + float(score))

    def _candidates(self, draft: Draft, best: Sequence[int], row: FloatArray) -> list[int]:
        """The likeliest tokens that the constraints allow, at most count² of them."""
        state, wanted = draft.state, self._count**2
        if not self._constraints.bind(state):
            return [int(token) for token in best[:wanted]]
        spelled = self._constraints.candidates(state)
        ranked = best if spelled is None else spelled[np.argsort(-row[spelled], kind="stable")]
        allowed: list[int] = []
        for token in ranked[: LOOKED_AT * 4]:
            if self._constraints.advance(state, int(token)) is not None:
                allowed.append(int(token))
                if len(allowed) == wanted:
                    return allowed
        if allowed:
            return allowed
        drawn = draw(row, Sampling(), 0, spelled, lambda token: self._constraints.advance(state, token) is not None)
        return [] if drawn is None else [drawn]

    def _superpose(self, drafts: Sequence[Draft]) -> Logits:
        """One pass over Σ γ·e(last token), γ a draft's share of the probability."""
        scores = np.array([draft.score for draft in drafts])
        weights = np.exp(scores - np.logaddexp.reduce(scores)).astype(np.float32)
        tokens = np.array([[draft.tokens[-1] for draft in drafts]], dtype=np.int32)
        parent = np.array([self._cache.kept - 1], dtype=np.int32)
        logits = self._model.superpose(tokens, weights[None, :], parent, self._cache)
        self._cache.keep(range(self._cache.kept + 1))
        return logits

    def _has_ended(self, draft: Draft) -> bool:
        if draft.tokens[-1] in self._ends or len(draft.tokens) >= self._most:
            return True
        output = OutputText(self._forced_bytes)
        for token in draft.tokens:
            output.extend(self._constraints.token_bytes(token), MODEL)
        return (self._rules.text_end(output.whole()) or self._rules.size_end(output)) is not None


def _scored(
    model: CausalModel, cache: KVCache, drafts: Sequence[Draft], root: int, logits: Logits
) -> Iterator[ScoredDraft]:
    """Each draft with its exact log-probabilities, by a pass over the tree of all of them below row `root`."""
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
    for start in range(0, len(tokens), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        found = model.score(tokens[some], np.array(parents[some], dtype=np.int32), cache)
        scores |= {root + 1 + start + row: found.row(row) for row in range(len(tokens[some]))}
        cache.keep(range(root + 1 + start + len(tokens[some])))
    for draft in drafts:
        behind = [scores[rows[draft.tokens[:length]]] for length in range(len(draft.tokens))]
        exact = tuple(log_probability(row, token) for row, token in zip(behind, draft.tokens, strict=True))
        yield ScoredDraft(draft.tokens, exact)
