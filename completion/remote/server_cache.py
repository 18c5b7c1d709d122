"""What a model server has probably cached of each document's prompts, and how long it takes for what it lacks.

A server tells neither before it is asked. Its cache serves prompts that begin like an earlier one, and it stands on a
graphics card or on somebody's laptop. So prompts are compared here, and first tokens are timed.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from completion.cache.kv_plan import common_prefix
from completion.prompt.pace import PromptBudget, PromptPace
from drafting.arrays import IntArray

_MAX_DOCUMENTS = 256  # some clients close none
_MAX_PROMPTS = 2  # of a document: the full one that was prepared, and a short one
_FEW_TOKENS = 64  # number of tokens whose time is that of the way there and back; servers cache blocks of up to 32
_MANY_TOKENS = 128  # tokens whose time says how quick the server is
_MAX_TIMES = 16  # number of first tokens of each of these kinds whose times are kept


@dataclass(slots=True)
class _Document:
    """A document of which prompts were sent.

    Attributes:
        budget: Maximum number of tokens of each part of its prompts; None before the first.
        prompts: The last prompts that the server has computed.  # int32 [tokens] each
    """

    language: str = ""
    budget: PromptBudget | None = None
    prompts: deque[IntArray] = field(default_factory=lambda: deque(maxlen=_MAX_PROMPTS))


@dataclass(slots=True)
class ServerCache:
    """The state of a server's cache, as far as this engine's requests tell.

    Attributes:
        largest: Budget of prompts for a server that is quick enough.
        full_prompt_s: Maximum time for a prompt that is prepared in advance, in seconds.
        cold_prompt_s: Maximum time for a prompt that somebody waits for, in seconds.
    """

    largest: PromptBudget
    full_prompt_s: float
    cold_prompt_s: float
    clock: Callable[[], float] = time.perf_counter
    _waits: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_TIMES))
    _computed: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_MAX_TIMES))  # tokens, all seconds
    _documents: dict[str, _Document] = field(default_factory=dict)  # the one that was used last at the end

    @property
    def languages(self) -> set[str]:
        """Languages of the documents."""
        return {document.language for document in self._documents.values()}

    def open(self, name: str, language: str) -> None:
        """Note a request for a document."""
        document = self._documents.pop(name, None) or _Document()
        document.language = language
        self._documents[name] = document
        if len(self._documents) > _MAX_DOCUMENTS:
            del self._documents[next(iter(self._documents))]

    def close(self, names: Iterable[str]) -> None:
        """Forget documents."""
        for name in names:
            self._documents.pop(name, None)

    def budget(self, name: str) -> PromptBudget:
        """Return the budget of an open document's prompts, which it keeps so that what is cached does not shift."""
        document = self._documents[name]
        if document.budget is None:
            document.budget = self._pace().budget()
        return document.budget

    def renew_budget(self, name: str, prompt: Sequence[int], tokens_of: Callable[[PromptBudget], int]) -> bool:
        """Give a document the budget for the server's speed if its prompt is mostly computed anyway.

        With another budget, the prompt has `tokens_of` it.

        Returns:
            Whether it is another one.
        """
        document = self._documents[name]
        before = document.budget
        if self._is_mostly_lacking(name, prompt):
            document.budget = self._pace().budget(tokens_of)
        return document.budget != before

    def is_cold(self, name: str, prompt: Sequence[int]) -> bool:
        """Return whether a prompt is mostly uncached, and computing it takes longer than somebody may wait."""
        is_slow = self._pace().seconds(self.lacking(name, prompt)) > self.cold_prompt_s
        return is_slow and self._is_mostly_lacking(name, prompt)

    def lacking(self, name: str, prompt: Sequence[int]) -> int:
        """Return how many tokens of a prompt the server has probably not cached."""
        tokens, document = np.asarray(prompt, dtype=np.int32), self._documents.get(name)
        cached = [common_prefix(tokens, each) for each in document.prompts] if document else []
        return len(tokens) - max(cached, default=0)

    def sent(self, name: str, prompt: Sequence[int]) -> Callable[[int | None], int]:
        """Note that a prompt is sent now.

        Returns:
            A function to call when the server has computed it, with the number of tokens that it had cached, None if it
            does not tell. It returns that number, or what it probably was.
        """
        sent_s, probably = self.clock(), len(prompt) - self.lacking(name, prompt)

        def computed(cached: int | None) -> int:
            known = probably if cached is None else cached
            self._note(len(prompt) - known, self.clock() - sent_s)
            if name in self._documents:
                self._documents[name].prompts.append(np.asarray(prompt, dtype=np.int32))
            return known

        return computed

    def _note(self, tokens: int, seconds: float) -> None:
        if tokens <= _FEW_TOKENS:
            self._waits.append(seconds)
        elif tokens >= _MANY_TOKENS:
            self._computed.append((tokens, seconds))

    def _pace(self) -> PromptPace:
        """Return the server's speed: what it takes for few tokens, it takes for each request."""
        pace, wait_s = PromptPace(self.largest, self.full_prompt_s), statistics.median(self._waits or (0.0,))
        for tokens, seconds in self._computed:
            pace.note(tokens, seconds - wait_s)
        return pace

    def _is_mostly_lacking(self, name: str, prompt: Sequence[int]) -> bool:
        return 2 * self.lacking(name, prompt) > len(prompt)
