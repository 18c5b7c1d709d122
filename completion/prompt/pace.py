"""Prompt budgets that follow the speed at which this machine computed earlier prompts."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

COLD_PROMPT_S = 0.6
"""Maximum time, in seconds, that a user waits for an uncached prompt, as after opening a file or a far jump."""
FULL_PROMPT_S = 4.0
"""Maximum time, in seconds, for a prompt that is prepared in advance."""
FEWEST_TOKENS = 32
"""Number of tokens of a prompt's first chunk, and the fewest of a later one, except at its end.

With fewer, each takes longer, so the speed of such chunks says nothing of others.
"""
GROWTH = 2
"""Factor on the time of a prompt that a document's budget allows where more of the file stands before the cursor."""
SHARES = (1.0, 0.75, 0.5, 0.25)
"""Possible budgets as shares of the largest. With less than the last one the model sees too little."""

_MAX_SPEEDS = 16  # number of chunks whose speeds are kept


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """Maximum number of tokens of each part of a prompt."""

    prefix_tokens: int = 768
    suffix_tokens: int = 256
    context_tokens: int = 512

    @property
    def tokens(self) -> int:
        """Maximum number of tokens of all parts together."""
        return self.prefix_tokens + self.suffix_tokens + self.context_tokens

    def scaled(self, share: float) -> PromptBudget:
        """Return a budget with a share of each part."""
        parts = (self.prefix_tokens, self.suffix_tokens, self.context_tokens)
        return PromptBudget(*(int(share * part) for part in parts))


SHORT_BUDGET = PromptBudget(prefix_tokens=160, suffix_tokens=64, context_tokens=0)
"""Budget of the short prompt that is used if the full one takes too long: some lines on both sides of the cursor."""


class PromptPace:
    """The speed at which the last chunks of prompts were computed.

    Args:
        largest: Budget of a machine that is fast enough.
        full_prompt_s: Maximum time for a prompt of which nothing is cached, in seconds.
        longer: Maximum factor on `largest` for a machine that computes such a prompt within `COLD_PROMPT_S`.
    """

    def __init__(self, largest: PromptBudget, full_prompt_s: float, longer: int = 1) -> None:
        self._largest = largest
        self._longer = longer
        self._full_prompt_s = full_prompt_s
        self._tokens_per_s: deque[float] = deque(maxlen=_MAX_SPEEDS)

    def note(self, tokens: int, seconds: float) -> None:
        """Record the time of a chunk of a prompt."""
        if tokens >= FEWEST_TOKENS and seconds > 0:
            self._tokens_per_s.append(tokens / seconds)

    def seconds(self, tokens: int) -> float:
        """Return the time for `tokens` tokens; 0 before the first chunk was recorded."""
        return tokens / statistics.median(self._tokens_per_s) if self._tokens_per_s else 0.0

    def budget(
        self, tokens_of: Callable[[PromptBudget], int] = attrgetter("tokens"), most_tokens: float = math.inf
    ) -> PromptBudget:
        """Return the budget for a document with an empty cache, which keeps it so that its cache does not shift.

        It is the largest with which the document's prompt, which has `tokens_of` it, is computed in time: most files
        are too short to fill all its parts. Where the file grows, or the cursor goes on in it, its prompts take at most
        `GROWTH` times as long. There is memory for `most_tokens`.
        """
        pace = statistics.median(self._tokens_per_s) if self._tokens_per_s else 0.0
        longer = self._longer
        while longer > 1 and longer * self._largest.tokens > min(COLD_PROMPT_S * pace, most_tokens):
            longer //= 2
        if longer > 1:
            return self._largest.scaled(longer)
        in_time = self._full_prompt_s * pace if pace else math.inf
        for budget in map(self._largest.scaled, SHARES):
            is_possible = budget.tokens <= min(most_tokens, GROWTH * in_time)
            if is_possible and (budget.tokens <= in_time or tokens_of(budget) <= in_time):
                return budget
        return budget
