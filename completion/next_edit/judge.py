"""The model's judgement of a candidate: how likely it finds the changed lines, and the lines as they are.

Both texts are branches of one tree after the same prompt: the edit history as a diff, then the document around the
lines, suffix first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from completion.cache.kv_session import BACKGROUND_TOKENS, KVSession
from completion.cancellation import CancelToken
from completion.edits import NextEditRequest, changed_span, common_length
from completion.model.causal_model import CausalModel, Logits
from completion.model.tokenizer import CodeTokenizer
from completion.next_edit.rewrites import Candidate
from completion.prompt.pace import PromptBudget
from completion.prompt.planner import Prompt, PromptPlanner
from completion.request import CacheMode, CompletionRequest
from drafting.arrays import FloatArray

BUDGET = PromptBudget(prefix_tokens=256, suffix_tokens=96, context_tokens=512)
"""Maximum number of tokens of each part of a prompt; half of the context's is for the edit history."""

MAX_SCORED_TOKENS = 128
"""Maximum number of tokens that are scored: what both texts begin with, and the rest of each."""
_SCORED_END = 8  # tokens of the end that both texts have, which tell whether it fits the difference


@dataclass(frozen=True, slots=True)
class Judgement:
    """Log-probabilities of the tokens of two texts after one prompt, natural logarithm.

    Attributes:
        new: Of the changed lines.  # [tokens]
        old: Of the lines as they are.  # [tokens]
        shared: Number of tokens that both begin with.
    """

    new: FloatArray
    old: FloatArray
    shared: int

    @property
    def ratio(self) -> float:
        """Log-likelihood ratio of the change."""
        return float(self.new.sum() - self.old.sum())


@dataclass(frozen=True, slots=True)
class Question:
    """The prompt of a candidate, and the two texts that it compares."""

    prompt: Prompt
    new: tuple[int, ...]
    old: tuple[int, ...]

    @property
    def is_too_long(self) -> bool:
        """Whether the texts have more than `MAX_SCORED_TOKENS` tokens, so that they are not scored."""
        return len(self.new) + len(self.old) - _shared(self.new, self.old) > MAX_SCORED_TOKENS


class Judge:
    """Scores candidates with one model."""

    def __init__(self, model: CausalModel, tokenizer: CodeTokenizer, planner: PromptPlanner) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._planner = planner

    def question(self, asked: NextEditRequest, candidate: Candidate) -> Question:
        """Return the prompt of a candidate and the tokens of both texts, without lines that both begin or end with."""
        lines = asked.elsewhere or asked.lines
        start, old_end, new_end = changed_span(list(candidate.old), list(candidate.new))
        first, end = candidate.line + start, candidate.line + old_end
        texts = candidate.new[start:new_end], candidate.old[start:old_end]
        shown = end if all(texts) else min(end + 1, len(lines))  # without text the next line tells
        request = CompletionRequest(
            prefix="".join(f"{line}\n" for line in lines[:first]),
            suffix="\n".join(lines[shown:]),
            language=asked.language,
            path="" if asked.elsewhere else asked.path,
            history="".join(edit.hunk() for edit in asked.edits),
            outline=False,
            healing=False,
        )
        prompt = self._planner.plan(request, BUDGET)
        new, old = ("".join(f"{line}\n" for line in (*text, *lines[end:shown])) for text in texts)
        return Question(prompt, *_without_end(*(self._tokenizer.encode(text or "\n") for text in (new, old))))

    def judge(self, question: Question, session: KVSession, cancel: CancelToken) -> Judgement:
        """Score both texts as one tree; the session has the prompt afterwards.

        Raises:
            CancelledError: Soon after `cancel`.
            PromptTooLongError: The prompt does not fit the session.
        """
        session.prepare(question.prompt, CacheMode.PIE, cancel)
        shared = _shared(question.new, question.old)
        tokens = [question.prompt.tokens[-1], *question.new[:-1], *question.old[shared:-1]]
        parents = np.arange(-1, len(tokens) - 1, dtype=np.int32)
        if len(question.old) > shared + 1:
            parents[len(question.new)] = shared  # the row of the last shared token
        chances = np.zeros(len(tokens), np.float32)  # log-probability of what follows each row
        divergence = 0.0  # that of the token of the old text after row `shared`
        targets = [*question.new, *question.old[shared + 1 :]]
        try:
            for start in range(0, len(tokens), BACKGROUND_TOKENS):
                rows = range(start, min(start + BACKGROUND_TOKENS, len(tokens)))
                chunk = np.array(tokens[start : rows.stop], dtype=np.int32)
                logits = self._model.score(chunk, parents[start : rows.stop], session.cache, cancel)
                session.cache.keep(range(rows.stop))
                for row in rows:
                    chances[row] = _log_probability(logits, row - start, targets[row])
                if shared in rows:
                    divergence = _log_probability(logits, shared - start, question.old[shared])
        finally:
            session.truncate(len(question.prompt.tokens) - 1)  # drops the scored rows
        new, old = chances[: len(question.new)], [*chances[:shared], divergence, *chances[len(question.new) :]]
        return Judgement(new, np.array(old, np.float32), shared)


def _without_end(one: list[int], other: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return both texts without what is the same far behind their difference."""
    cut = max(0, common_length(one[::-1], other[::-1]) - _SCORED_END)
    return tuple(one[: len(one) - cut]), tuple(other[: len(other) - cut])


def _shared(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Return the number of tokens that both begin with; the last token of neither counts."""
    return common_length(one[:-1], other[:-1])


def _log_probability(logits: Logits, row: int, token: int) -> float:
    return float(logits.row(row)[token]) - logits.log_sum(row)
