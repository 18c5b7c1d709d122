"""One cache of keys and values for each document, brought up to date for a prompt with as little work as possible."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from completion.cache.kv_plan import CachePlan, plan_exact, plan_pie
from completion.cancellation import CancelToken
from completion.errors import PromptTooLongError, UnsupportedModelError
from completion.model.causal_model import CausalModel, KVCache
from completion.prompt.pace import PromptBudget
from completion.prompt.planner import Prompt
from completion.request import CacheMode
from drafting.arrays import IntArray

logger = logging.getLogger(__name__)

HOLE = -1
"""Stands in `KVSession.tokens` where a cancelled request left a slot uncomputed: it matches no token."""


NotePiece = Callable[[int, float], None]


def _unnoted(_tokens: int, _seconds: float) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Bounds of the sessions.

    Attributes:
        capacity: Most slots of one session: the longest prompt with what is generated and drafted behind it.
        spare_slots: Slots kept free behind the prompt for that.
        budget_bytes: Memory that all sessions may hold when a request opens one; the least recently used goes first.
        chunk_tokens: Tokens computed between two looks at the cancel token.
        repair_tokens: First tokens of a reused run that are computed again.
        max_edits: A token that was reused across so many changes before it is computed again.
    """

    capacity: int = 4096
    spare_slots: int = 512
    budget_bytes: int = 256 << 20
    chunk_tokens: int = 128
    repair_tokens: int = 16
    max_edits: int = 32

    def longest_prompt(self, max_positions: int) -> int:
        """Return how many tokens a prompt may have beside a completion, in a model with so many positions."""
        return min(self.capacity, max_positions) - self.spare_slots + 1


class KVSession:
    """The cache of one document and the tokens that it stands for.

    Attributes:
        tokens: What the slots hold, in order; HOLE where nothing valid is.
        edits: How many changes before it each slot's content has lived through; 0 is exact.  # [len(tokens)]
        budget: Of the document's prompts, settled while the cache is empty; None before.
        longest_chunk_ms: How long the slowest piece took that was computed for the last prompt.
    """

    __slots__ = (
        "_model",
        "_movable",
        "_note_piece",
        "_settings",
        "budget",
        "cache",
        "edits",
        "longest_chunk_ms",
        "tokens",
    )

    def __init__(self, model: CausalModel, settings: SessionSettings, note_piece: NotePiece = _unnoted) -> None:
        self._model = model
        self._settings = settings
        self._note_piece = note_piece
        self.budget: PromptBudget | None = None
        self.cache: KVCache = model.new_cache(settings.capacity)
        self._movable = True
        self.tokens: list[int] = []
        self.edits: IntArray = np.zeros(0, dtype=np.int32)
        self.longest_chunk_ms = 0.0

    def prepare(self, prompt: Prompt, mode: CacheMode, cancel: CancelToken, leave: int = 0) -> CachePlan:
        """Make the cache hold all of the prompt but its last token, which the first decoding step scores.

        Up to `leave` further tokens at the end may be left to that step as well: a pass over few rows costs hardly
        more than one over a single row, so the first token comes a step earlier. The plan counts them as computed.

        Raises:
            CancelledError: What was computed until then stays and is valid.
            PromptTooLongError: The prompt does not fit the session.
        """
        self.longest_chunk_ms = 0.0
        wanted = prompt.tokens[:-1]
        if len(wanted) + self._settings.spare_slots > self.cache.capacity:
            raise PromptTooLongError(
                f"The prompt has {len(prompt.tokens)} tokens, but {self.cache.capacity - self._settings.spare_slots} "
                "fit beside the completion. Lower the prompt's budgets (prefix, suffix, context)."
            )
        self.cache.reserve(len(prompt.tokens))
        plan = self.plan(prompt, mode)
        try:
            self._reuse(plan, wanted)
        except UnsupportedModelError as error:  # raised before anything is moved
            logger.warning("%s Text behind an edit is computed again.", error)
            self._movable = False
            plan = self.plan(prompt, mode)
            self._reuse(plan, wanted)
        if 0 < plan.computed <= leave and plan.compute[0] == len(wanted) - plan.computed:
            self.truncate(int(plan.compute[0]))
        else:
            self._compute(plan.compute, wanted, cancel)
        return plan

    def plan(self, prompt: Prompt, mode: CacheMode) -> CachePlan:
        """What `prepare` would do; nothing is changed."""
        wanted = prompt.tokens[:-1]
        if mode is CacheMode.OFF:
            return plan_exact((), wanted)
        if mode is CacheMode.EXACT or not self._movable:
            inexact = np.flatnonzero(self.edits)
            return plan_exact(self.tokens[: inexact[0]] if len(inexact) else self.tokens, wanted)
        plan = plan_pie(
            self.tokens, wanted, repair_tokens=self._settings.repair_tokens, always_compute=prompt.special_positions
        )
        worn = np.flatnonzero(self._edits_of(plan.sources) >= self._settings.max_edits)
        return CachePlan(plan.sources, np.union1d(plan.compute, worn).astype(np.int32))

    def refresh(self, cancel: CancelToken) -> int:
        """Compute everything from the first inexact slot on again, in place; returns how many tokens.

        Raises:
            CancelledError: Slots before the one reached are exact, those behind it as they were.
        """
        inexact = np.flatnonzero(self.edits)
        if not len(inexact):
            return 0
        end = self.tokens.index(HOLE) if HOLE in self.tokens else len(self.tokens)
        slots = np.arange(inexact[0], end, dtype=np.int32)
        self._compute(slots, tuple(self.tokens), cancel)
        return len(slots)

    def commit(self, rows: Sequence[int], tokens: Sequence[int]) -> None:
        """Make rows of the last scored tree, which hold `tokens`, part of the past."""
        self.cache.commit(rows)
        self.tokens += tokens
        inexact = np.int32(self.edits.any())
        self.edits = np.append(self.edits, np.full(len(tokens), inexact, dtype=np.int32))

    @property
    def room(self) -> int:
        """Slots that can be used at all."""
        return self.cache.capacity

    def reopen(self, length: int) -> list[int]:
        """Make what lies behind the first `length` tokens a chain of rows again; gives those tokens."""
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
        """Bring every reused slot to its new place; slots that no old one serves become holes."""
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
        first_inexact = int(np.argmax(np.append(self._inexact_but(slots), True)))
        for start in range(0, len(slots), self._settings.chunk_tokens):
            cancel.raise_if_cancelled()
            chunk = slots[start : start + self._settings.chunk_tokens]
            tokens = [wanted[slot] for slot in chunk]
            started = time.perf_counter()
            self._model.prefill(np.asarray(tokens, dtype=np.int32), chunk, self.cache)
            seconds = time.perf_counter() - started
            self._note_piece(len(chunk), seconds)
            self.longest_chunk_ms = max(self.longest_chunk_ms, 1e3 * seconds)
            for slot, token in zip(chunk, tokens, strict=True):
                self.tokens[slot] = token
            self.edits[chunk] = chunk > first_inexact  # computed on top of something inexact, it is inexact as well

    def _inexact_but(self, slots: IntArray) -> IntArray:
        """Which slots stay inexact once `slots` are computed."""
        inexact = self.edits.copy()
        inexact[slots] = 0
        return inexact


class KVSessions:
    """The sessions of all documents, under one memory budget.

    Args:
        model: What computes.
        settings: Bounds.
        note_piece: Told of every piece of a prompt that was computed: its tokens, and seconds.
    """

    def __init__(self, model: CausalModel, settings: SessionSettings, note_piece: NotePiece = _unnoted) -> None:
        self._model = model
        self._settings = settings
        self._note_piece = note_piece
        self._sessions: OrderedDict[str, KVSession] = OrderedDict()

    def open(self, document: str) -> KVSession:
        """The session of a document, made if need be; it becomes the most recently used one."""
        session = self._sessions.pop(document, None) or KVSession(self._model, self._settings, self._note_piece)
        self._sessions[document] = session
        self._evict()
        return session

    def close(self, document: str) -> None:
        """Forget a document."""
        self._sessions.pop(document, None)

    def __len__(self) -> int:
        """Sessions that are held."""
        return len(self._sessions)

    def _evict(self) -> None:
        while len(self._sessions) > 1 and self._held_bytes() > self._settings.budget_bytes:
            self._sessions.popitem(last=False)

    def _held_bytes(self) -> int:
        return sum(session.cache.size_bytes for session in self._sessions.values())
