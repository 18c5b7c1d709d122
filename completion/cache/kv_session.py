"""The cached keys and values of one document, updated for each prompt with little work."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from completion.cache.kv_plan import CachePlan, plan_exact, plan_pie
from completion.cancellation import NEVER, CancelToken
from completion.errors import PromptTooLongError, UnsupportedModelError
from completion.model.causal_model import CausalModel, KVCache
from completion.model.sampling import DeadEnds
from completion.prompt.pace import FEWEST_TOKENS, PromptBudget
from completion.prompt.planner import Prompt
from completion.request import CacheMode
from drafting.arrays import IntArray

logger = logging.getLogger(__name__)

HOLE = -1
"""Entry of `KVSession.tokens` for a slot that a cancelled request did not compute; it equals no token."""

BACKGROUND_TOKENS = 16
"""Number of tokens that a session in the background computes at a time, and loses when it is cancelled."""

NoteChunk = Callable[[int, float], None]
"""Callback with the number of tokens and the seconds of each chunk of a prompt that was computed."""

TakeTurn = Callable[[CancelToken], None]
"""Callback that returns once a prompt may be computed, or soon after the request's token is cancelled."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Bounds of the KV sessions.

    Attributes:
        capacity: Maximum number of slots of a session, for the prompt and the tokens generated and drafted after it.
        spare_slots: Number of slots that a prompt leaves free for those tokens.
        budget_bytes: Maximum memory of all sessions when a request opens one. The default has room for five documents
            with full prompts of the default model, of which four are rounded, or forty with short ones.
        shared: Whether several users type at once: their documents share the memory, and the largest loses its own.
            One user's documents lose it in turn, the least recently used first.
        chunk_tokens: Maximum number of tokens computed between two checks of the cancel token.
        chunk_s: Time that they may take, in seconds, as far as the fewest tokens of a chunk do: whoever needs the model
            waits for a chunk of another document's prompt.
        abandons_chunks: Whether a cancelled prompt abandons the chunk that is being computed instead of completing it.
            Most requests are cancelled by one that needs the same tokens.
        repair_tokens: Number of first tokens of a reused run that are computed again.
        max_edits: Number of edits after which a reused token is computed again.
    """

    capacity: int = 4096
    spare_slots: int = 512
    budget_bytes: int = 64 << 20
    shared: bool = False
    chunk_tokens: int = 128
    chunk_s: float = 0.05
    abandons_chunks: bool = False
    repair_tokens: int = 16
    max_edits: int = 32

    def longer(self, factor: int) -> SessionSettings:
        """Return settings for prompts that are longer by a factor, computed in chunks that are, too."""
        return replace(self, capacity=factor * self.capacity, chunk_tokens=factor * self.chunk_tokens)

    def max_prompt_tokens(self, max_positions: int) -> int:
        """Return the maximum length of a prompt that leaves room for a completion, in a model with `max_positions`."""
        return min(self.capacity, max_positions) - self.spare_slots + 1


class KVSession:
    """The cache of one document and the tokens in it.

    Attributes:
        dead_ends: What texts that were sampled after the last prompt taught of the grammar's dead ends.
        tokens: Token of each slot; HOLE for a slot with no valid content.
        edits: Number of edits before its slot that each reused token has outlived, at least 1 if it was rounded; 0 is
            exact.  # [len(tokens)]
        budget: Budget of the document's prompts, chosen while the cache is empty; None before.
        in_background: Whether nobody waits for it, so that it is closed before the others.
        longest_chunk_ms: Time of the slowest chunk of the last prompt.
        used_s: Time of its last opening, in seconds.
    """

    def __init__(
        self,
        model: CausalModel,
        settings: SessionSettings,
        note_chunk: NoteChunk = lambda _tokens, _seconds: None,
        take_turn: TakeTurn = lambda _cancel: None,
    ) -> None:
        self._model = model
        self._settings = settings
        self._note_chunk, self._take_turn = note_chunk, take_turn
        self.budget: PromptBudget | None = None
        self.cache: KVCache = model.new_cache(settings.capacity)
        self.dead_ends = DeadEnds()
        self._movable = True
        self._is_exact = False
        self.tokens: list[int] = []
        self.edits: IntArray = np.zeros(0, dtype=np.int32)
        self.language = ""
        self.in_background = False
        self.longest_chunk_ms = self.used_s = 0.0

    def prepare(self, prompt: Prompt, cache_mode: CacheMode, cancel: CancelToken, leave_tokens: int = 0) -> CachePlan:
        """Update the cache to the prompt without its last token, which the first decoding step scores.

        If at most `leave_tokens` tokens are missing, all at the end, that step computes them as well. A pass over few
        rows costs hardly more than a pass over one row, so this saves a pass. The plan counts them as computed.

        Raises:
            CancelledError: What is computed until then stays in the cache and is valid.
            PromptTooLongError: The prompt does not fit the session.
        """
        self.longest_chunk_ms, self._is_exact = 0.0, cache_mode is not CacheMode.PIE
        wanted = prompt.tokens[:-1]
        if len(wanted) + self._settings.spare_slots > self.cache.capacity:
            raise PromptTooLongError(
                f"The prompt has {len(prompt.tokens)} tokens, but only "
                f"{self.cache.capacity - self._settings.spare_slots} fit together with a completion. "
                "Lower the prompt's budgets (prefix, suffix, context)."
            )
        self.cache.reserve(len(prompt.tokens))
        plan = self.plan(prompt, cache_mode)
        try:
            self._reuse(plan, wanted)
        except UnsupportedModelError as error:  # raised before anything is moved
            logger.warning("%s The text after an edit is computed again.", error)
            self._movable = False
            plan = self.plan(prompt, cache_mode)
            self._reuse(plan, wanted)
        if 0 < plan.computed <= leave_tokens and plan.compute[0] == len(wanted) - plan.computed:
            self.truncate(int(plan.compute[0]))
        else:
            self._compute(plan.compute, wanted, cancel)
        return plan

    def plan(self, prompt: Prompt, cache_mode: CacheMode) -> CachePlan:
        """Return what `prepare` would do, and change nothing."""
        wanted = prompt.tokens[:-1]
        if cache_mode is CacheMode.OFF:
            return plan_exact((), wanted)
        if cache_mode is CacheMode.EXACT or not self._movable:
            inexact = np.flatnonzero(self.edits)
            return plan_exact(self.tokens[: inexact[0]] if len(inexact) else self.tokens, wanted)
        plan = plan_pie(
            self.tokens, wanted, repair_tokens=self._settings.repair_tokens, always_compute=prompt.special_positions
        )
        anew = self._edits_of(plan.sources) >= self._settings.max_edits
        anew[plan.compute] = True
        return CachePlan(plan.sources, np.flatnonzero(anew).astype(np.int32))

    def refresh(self, cancel: CancelToken) -> int:
        """Compute all slots again from the first inexact one on, in place; return their number.

        Raises:
            CancelledError: The slots computed until then are exact, the others unchanged.
        """
        inexact = np.flatnonzero(self.edits)
        if not len(inexact):
            return 0
        end = self.tokens.index(HOLE) if HOLE in self.tokens else len(self.tokens)
        slots = np.arange(inexact[0], end, dtype=np.int32)
        self._compute(slots, tuple(self.tokens), cancel)
        return len(slots)

    def compress(self) -> bool:
        """Keep the cache in less memory until it is needed, rounded; return whether that was done now.

        A session whose requests want an exact cache is never rounded.
        """
        if self._is_exact or not self.cache.compress():
            return False
        self.edits = np.maximum(self.edits, np.int32(1))
        return True

    def commit(self, rows: Sequence[int], tokens: Sequence[int]) -> None:
        """Make rows of the last scored tree part of the past; `tokens` are their tokens."""
        self.cache.commit(rows)
        self.tokens += tokens
        inexact = np.int32(self.edits.any())
        self.edits = np.append(self.edits, np.full(len(tokens), inexact, dtype=np.int32))

    def has_room(self, rows: int) -> bool:
        """Return whether that many more rows fit after the kept ones."""
        return self.cache.length + self.cache.kept + rows <= self.cache.capacity

    def reopen(self, length: int) -> list[int]:
        """Turn the slots from `length` on into a chain of rows again; return their tokens."""
        opened = self.tokens[length:]
        self.cache.reopen(length)
        del self.tokens[length:]
        self.edits = self.edits[:length]
        return opened

    def truncate(self, length: int) -> None:
        """Forget everything from slot `length` on."""
        self.cache.truncate(min(length, self.cache.length))
        del self.tokens[length:]
        self.edits = self.edits[:length]

    def _edits_of(self, sources: IntArray) -> IntArray:
        return np.append(self.edits, np.int32(0))[sources]  # −1 reads the zero at the end

    def _reuse(self, plan: CachePlan, wanted: Sequence[int]) -> None:
        """Move every reused slot to its new position; slots without an old one become holes."""
        unmoved = int(np.argmax(np.append(plan.sources != np.arange(len(plan.sources)), True)))
        edits = self._edits_of(plan.sources)
        edits[unmoved:] += 1  # encoded with other text before it
        if np.any(plan.sources[unmoved:] >= 0):
            self.cache.rearrange(plan.sources)
        else:
            self.cache.truncate(unmoved)
        self.tokens = [token if plan.sources[slot] >= 0 else HOLE for slot, token in enumerate(wanted)]
        self.edits = edits

    def _compute(self, slots: IntArray, wanted: Sequence[int], cancel: CancelToken) -> None:
        if len(slots):
            self._take_turn(cancel)
        first_inexact = int(np.argmax(np.append(self._inexact_without(slots), True)))  # of truths: the first one
        start, most = 0, self._settings.chunk_tokens
        size = min(FEWEST_TOKENS, most)
        while start < len(slots):
            cancel.raise_if_cancelled()
            chunk = slots[start : start + size]
            tokens = [wanted[slot] for slot in chunk]
            started = time.perf_counter()
            for slot in chunk:
                self.tokens[slot] = HOLE
            self._model.prefill(
                np.asarray(tokens, dtype=np.int32),
                chunk,
                self.cache,
                cancel=cancel if self._settings.abandons_chunks else NEVER,
            )
            seconds = time.perf_counter() - started
            self._note_chunk(len(chunk), seconds)
            self.longest_chunk_ms = max(self.longest_chunk_ms, 1e3 * seconds)
            for slot, token in zip(chunk, tokens, strict=True):
                self.tokens[slot] = token
            self.edits[chunk] = chunk > first_inexact  # what is computed after an inexact slot is inexact as well
            start += len(chunk)
            in_time = int(self._settings.chunk_s * len(chunk) / max(seconds, 1e-6))
            size = min(max(FEWEST_TOKENS, in_time), most)

    def _inexact_without(self, slots: IntArray) -> npt.NDArray[np.bool_]:
        """Return whether each slot is still inexact after `slots` are computed.  # [len(tokens)]."""
        inexact = self.edits > 0
        inexact[slots] = False
        return inexact
