"""How large a prompt this machine can afford: budgets follow the speed at which earlier prompts were computed."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass

COLD_PROMPT_S = 0.6
"""Bound for a person who waits: nothing is cached when a file opens and after a far jump."""
FULL_PROMPT_S = 4.0
"""Bound for a prompt that is prepared while nobody waits."""
SHARES = (1.0, 0.75, 0.5, 0.25)
"""Budgets that are considered, as shares of the largest; less than the last one shows the model too little."""

_FEWEST_TOKENS = 64  # smaller pieces cost much more a token
_REMEMBERED = 16


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """How many tokens each part of a prompt may take."""

    prefix_tokens: int = 768
    suffix_tokens: int = 256
    context_tokens: int = 512

    @property
    def tokens(self) -> int:
        """Of a whole prompt."""
        return self.prefix_tokens + self.suffix_tokens + self.context_tokens

    def scaled(self, share: float) -> PromptBudget:
        """A budget with a share of each part."""
        parts = (self.prefix_tokens, self.suffix_tokens, self.context_tokens)
        return PromptBudget(*(int(share * part) for part in parts))


SHORT_BUDGET = PromptBudget(prefix_tokens=160, suffix_tokens=64, context_tokens=0)
"""Some lines on both sides of the cursor: what answers first where the full prompt takes too long."""


class PromptPace:
    """Remembers how fast the last pieces of prompts were computed.

    Args:
        largest: The budget of a machine that is fast enough.
        full_prompt_s: A prompt of which nothing is cached may take so long.
    """

    def __init__(self, largest: PromptBudget, full_prompt_s: float) -> None:
        self._largest = largest
        self._full_prompt_s = full_prompt_s
        self._tokens_per_s: deque[float] = deque(maxlen=_REMEMBERED)

    def note(self, tokens: int, seconds: float) -> None:
        """A piece of a prompt was computed."""
        if tokens >= _FEWEST_TOKENS and seconds > 0:
            self._tokens_per_s.append(tokens / seconds)

    def seconds(self, tokens: int) -> float:
        """How long so many tokens take; 0 as long as that is not known."""
        return tokens / statistics.median(self._tokens_per_s) if self._tokens_per_s else 0.0

    def budget(self) -> PromptBudget:
        """What a document gets whose cache is empty; it should keep it, for another window would shift the cache."""
        if not self._tokens_per_s:
            return self._largest
        affordable = self._full_prompt_s * statistics.median(self._tokens_per_s)
        share = next((share for share in SHARES if share * self._largest.tokens <= affordable), SHARES[-1])
        return self._largest.scaled(share)
