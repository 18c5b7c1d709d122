"""Superposed decoding: each step advances several drafts with one row, a weighted sum of their last tokens' embeddings.

Source: "Superposed Decoding: Multiple Generations from a Single Autoregressive Inference Pass". A mixture of one token
is that token. So as long as the mixtures are the tokens of the first suggestion, its passes have computed their rows.
Later mixtures are guessed as tokens are, and one pass computes the rows of several. The keys and values of mixtures are
dropped at the end. A draft's log-probabilities are those after the mixtures, which approximate its own context.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from completion.alternatives.branch_tree import MAX_STEP_ROWS
from completion.cancellation import CancelToken
from completion.decoding.attempt import Attempt
from completion.decoding.constraints import ConstraintState
from completion.decoding.decoder import RECYCLED_TOKENS
from completion.decoding.local_task import LocalTask
from completion.decoding.output_text import OutputText
from completion.decoding.stop_rules import StopRules
from completion.model.causal_model import Logits
from drafting.arrays import FloatArray, IntArray
from drafting.draft_tree import ROOT, DraftTree
from drafting.session import DraftingSession
from drafting.verifier import MODEL

NGRAM_SHARE = 0.54
"""α, the weight of the n-grams against the model (section 4 of the source)."""

TEMPERATURE = 0.06
"""T, the temperature of the model's distribution (section 4)."""

MIN_SHARE = 1e-3
"""N-gram share of a token that the n-grams never saw; the source uses 0, but a workspace is no large corpus."""

MIN_WEIGHT = 0.01
"""Minimum weight of a token in a mixture; the source has none. With it, most mixtures are one token."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One draft of a superposition.

    Attributes:
        tokens: Tokens so far, including a stop token.
        log_probabilities: Log-probability of each token after the mixtures before it.
        score: Sum of the interpolated log-probabilities.
    """

    tokens: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    state: ConstraintState
    score: float


def superposed_drafts(task: LocalTask, first: Attempt, count: int, max_tokens: int, cancel: CancelToken) -> list[Draft]:
    """Return at most `count` drafts after the prompt, of which one is usually the first attempt, which has ended.

    Each draft has ended, or has `max_tokens` new tokens, or as many as the cache has room for; there are none if the
    request is hurried. The session must contain the first attempt; it is restored at the end.

    Raises:
        CancelledError: Within a pass after `cancel`.
    """
    if not first.top_tokens:  # the constraints allowed no token
        return []
    mixtures = _Mixtures(task, first)
    try:
        return _Superposition(task, first, count, max_tokens, mixtures).write(cancel)
    finally:
        mixtures.close()


class _Superposition:
    """Generates the drafts of one request."""

    def __init__(self, task: LocalTask, first: Attempt, count: int, max_tokens: int, mixtures: _Mixtures) -> None:
        self._task, self._count, self._mixtures = task, count, mixtures
        self._constraints = first.source.constraints
        self._rules = StopRules(replace(task.request, max_tokens=max_tokens), task.context)
        self._ngrams = task.drafters.ngrams(task.prompt.tokens, task.request.workspace)

    def write(self, cancel: CancelToken) -> list[Draft]:
        """Generate until enough drafts have ended."""
        growing, ended = [Draft((), (), self._constraints.start, 0.0)], list[Draft]()
        while growing and len(ended) < self._count and not cancel.hurried:
            cancel.raise_if_cancelled()
            self._mixtures.advance(growing, cancel)
            chosen, growing = self._best_continuations(growing), []
            for draft in chosen:
                (ended if self._has_ended(draft) else growing).append(draft)
        return [] if cancel.hurried else ended[: self._count]

    def _best_continuations(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Return the best `count` continuations of all drafts: log p = (1 − α)·log p_model + α·log p_ngram."""
        found = list[tuple[float, Draft, int, float]]()
        for draft in drafts:
            tokens, likely = self._mixtures.best_after(draft)
            scaled = likely.astype(np.float64) / TEMPERATURE
            ngrams = self._ngrams.shares((*self._task.prompt.before_cursor, *draft.tokens), tokens.tolist())
            ngrams = np.maximum(ngrams, MIN_SHARE)
            model = scaled - np.logaddexp.reduce(scaled)
            scores = draft.score + (1 - NGRAM_SHARE) * model + NGRAM_SHARE * np.log(ngrams / ngrams.sum())
            for score, token, log_probability in zip(scores.tolist(), tokens.tolist(), likely.tolist(), strict=True):
                found.append((score, draft, token, log_probability))
        return list(islice(self._allowed(sorted(found, key=lambda each: -each[0])), self._count))

    def _allowed(self, found: Sequence[tuple[float, Draft, int, float]]) -> Iterator[Draft]:
        for score, draft, token, log_probability in found:
            if (state := self._constraints.advance(draft.state, token)) is not None:
                yield Draft((*draft.tokens, token), (*draft.log_probabilities, log_probability), state, score)

    def _has_ended(self, draft: Draft) -> bool:
        if draft.tokens[-1] in self._task.tokenizer.stop_ids or not self._task.session.has_room(MAX_STEP_ROWS):
            return True
        output = OutputText(len(self._task.prompt.forced))
        for token in draft.tokens:
            output.extend(self._constraints.token_bytes(token), MODEL)
        return (self._rules.text_end(output.whole()) or self._rules.size_end(output)) is not None


class _Mixtures:
    """The mixtures of the drafts' last tokens, and the likeliest tokens after each.

    The rows of the first attempt, and later those of the last pass, are a tree of tokens. A mixture of one token may be
    the next node of it. Any other is computed by a pass, with a tree of tokens that may follow.
    """

    def __init__(self, task: LocalTask, first: Attempt) -> None:
        self._task, self._first = task, first
        self._drafter: DraftingSession | None = None
        self._tree = DraftTree.empty().after(first.source.tokens[: len(first.top_tokens) - 1], MODEL)
        self._path = [ROOT]  # nodes of the tree that were mixtures
        self._trunk: list[int] | None = None  # tokens of the first attempt that computed mixtures do not see
        self._kept = 0
        self._logits: Logits | None = None  # of the last pass
        self._best = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
        self._scores: FloatArray | None = None

    def advance(self, drafts: Sequence[Draft], cancel: CancelToken) -> None:
        """Go on to the mixture of the drafts' last tokens."""
        if drafts[0].tokens:
            mixture = _mixture(drafts)
            node = self._tree.child(self._path[-1], next(iter(mixture))) if len(mixture) == 1 else None
            if node is None:
                self._compute(mixture, drafts[0].tokens, cancel)
            else:
                self._path.append(node)
        row = self._path[-1] + 1
        logits = self._logits
        if logits is None:
            known = self._first.top_tokens[row]
            if not any(state.forced for state in (known.state, *(draft.state for draft in drafts))):
                self._best, self._scores = (known.tokens, known.log_probabilities), None
                return
            logits, row = self._scored_again(row, cancel), 0
        tokens, scores = logits.top(RECYCLED_TOKENS)
        self._best, self._scores = (tokens[row], scores[row] - logits.log_sum(row)), logits.row(row)

    def best_after(self, draft: Draft) -> tuple[IntArray, FloatArray]:
        """Return the likeliest tokens after a draft and its log-probabilities.  # [≤ RECYCLED_TOKENS] twice.

        A token's probability is that among the tokens that the forced bytes allow.
        """
        allowed = self._first.source.constraints.candidates(draft.state)
        if allowed is None or self._scores is None:
            return self._best
        scores = self._scores[allowed]
        best = np.argsort(-scores, kind="stable")[:RECYCLED_TOKENS]
        return allowed[best], scores[best] - np.logaddexp.reduce(scores)

    def _scored_again(self, row: int, cancel: CancelToken) -> Logits:
        """Compute a row of the first attempt again, which kept few of the tokens that the forced bytes allow."""
        session, prompt = self._task.session, self._task.prompt.tokens
        token = [*prompt, *self._first.source.tokens][len(prompt) + row - 1]
        trunk = session.reopen(len(prompt) + row - 1)
        try:
            anchor, parent = np.array([token], dtype=np.int32), np.array([ROOT], dtype=np.int32)
            return self._task.model.score(anchor, parent, session.cache, cancel)
        finally:
            session.commit(range(len(trunk)), trunk)

    def _compute(self, mixture: Mapping[int, float], likeliest: Sequence[int], cancel: CancelToken) -> None:
        """Compute the row of a mixture after those so far, and rows of what may follow the likeliest draft."""
        session, prompt = self._task.session, self._task.prompt.tokens
        if self._trunk is None:
            self._trunk = session.reopen(len(prompt) + len(self._path) - 1)
            self._drafter = self._task.drafter_of_branches(self._first)
            rows, parent = list(range(len(self._trunk))), ROOT
        else:
            rows = [*range(self._kept), *(self._kept + 1 + node for node in self._path)]
            parent = len(rows) - 1
        session.cache.keep(rows)
        self._kept, self._path = len(rows), [ROOT]
        self._logits = self._scores = None  # up to 10 MB, which the next pass computes anew
        guesses = self._drafter and self._drafter.branch(likeliest).propose([*prompt, *likeliest])
        self._tree = guesses or DraftTree.empty()
        tokens = np.zeros((1 + len(self._tree), len(mixture)), dtype=np.int32)
        weights = np.zeros(tokens.shape, dtype=np.float32)
        tokens[0], weights[0] = list(mixture), list(mixture.values())
        tokens[1:, 0], weights[1:, 0] = self._tree.tokens, 1.0
        parents = np.array([parent, *(self._tree.parents + self._kept + 1)], dtype=np.int32)
        self._logits = self._task.model.superpose(tokens, weights, parents, session.cache, cancel)

    def close(self) -> None:
        """Drop the rows of mixtures."""
        if self._trunk is not None:
            self._task.session.commit(range(len(self._trunk)), self._trunk)


def _mixture(drafts: Sequence[Draft]) -> dict[int, float]:
    """Return γ of each last token, the share of its drafts in the probability, without those that weigh little."""
    scores = np.array([draft.score for draft in drafts])
    weights = dict.fromkeys((draft.tokens[-1] for draft in drafts), 0.0)
    for draft, weight in zip(drafts, np.exp(scores - np.logaddexp.reduce(scores)).tolist(), strict=True):
        weights[draft.tokens[-1]] += weight
    heavy = {token: weight for token, weight in weights.items() if weight >= MIN_WEIGHT}
    return {token: weight / sum(heavy.values()) for token, weight in heavy.items()}
