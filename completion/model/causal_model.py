"""Interface between the engine and a model: score rows of tokens on top of a cached past.

Implementations: `int8.quantized` (CPU), `dense.cuda_graphs` (GPU), `dense.dense_transformer` (torch on a CPU), and
`dense.transformers_model` (the reference in tests, and the fallback for other families).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from completion.cancellation import NEVER, CancelToken
from completion.memory import Held
from drafting.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a model that the engine needs.

    Attributes:
        family: transformers' `model_type`: "qwen2", "llama", ...
    """

    family: str
    vocabulary_size: int
    layers: int
    kv_heads: int
    head_dim: int
    max_positions: int


class Logits(Protocol):
    """Scores of the next token for some rows, which may stay on a device until they are read."""

    @property
    def pass_rows(self) -> int:
        """Number of rows of the pass that computed them: more than there are here if others shared it."""

    def argmax(self) -> IntArray:
        """Return the best token of each row, the lowest id among equals.  # [rows]."""

    def top(self, count: int) -> tuple[IntArray, FloatArray]:
        """Return the best `count` tokens of each row with their logits, best first.  # [rows, count] twice."""

    def log_sum(self, index: int) -> float:
        """Return log Σ exp of one row, which normalises its logits to log-probabilities."""

    def row(self, index: int) -> FloatArray:
        """Return one row, read-only.  # [vocabulary_size]."""


class KVCache(Protocol):
    """Keys and values of one token sequence. A slot is a position: slot s has the token at position s.

    Memory is allocated as slots are used: `prefill`, `score`, `superpose` and `rearrange` reserve what they write.

    Attributes:
        capacity: Maximum number of slots.
        length: Number of committed slots, 0 .. length-1; the others are scratch space.
        kept: Number of rows after the committed slots that stay when the next ones are scored.
    """

    __slots__ = ("capacity", "kept", "length")

    capacity: int
    length: int
    kept: int

    @property
    def size_bytes(self) -> int:
        """Allocated memory."""

    def held(self) -> Held:
        """Return where its memory is."""

    def reserve(self, needed: int) -> None:
        """Allocate slots 0 .. needed-1 at once, so that computing them piece by piece copies nothing.

        Raises:
            ModelError: `capacity` is smaller.
        """

    def shrink(self) -> None:
        """Give back allocated slots after the last row, if the system takes them."""

    def compress(self) -> bool:
        """Keep the past in less memory until it is needed, rounded; return whether it was rounded now.

        It is `shrink` for caches that know no such form, and where rows follow the past.
        """

    def truncate(self, length: int) -> None:
        """Forget every slot from `length` on, and all rows after the past."""

    def commit(self, rows: Sequence[int]) -> None:
        """Append rows after the past to it, in this order, and forget the other rows.

        `rows` is a path: the first is a root's row, and each next one is a child of the previous one.
        """

    def keep(self, rows: Sequence[int]) -> None:
        """Keep these rows for the next `score` call, renumbered in this order, and forget the others.

        A row's parent must be among them, before it. So a tree of several attempts grows over many steps.
        """

    def reopen(self, length: int) -> None:
        """Turn the slots from `length` on back into a chain of kept rows, as if they had never been committed."""

    def rearrange(self, sources: IntArray) -> None:
        """Fill slots 0 .. len(sources)-1 from other slots, as if all were copied at once; length becomes that number.

        Slot i gets the content of slot sources[i]: its key rotated by R(i − sources[i]), its value unchanged
        ("Let the Code LLM Edit Itself When You Edit the Code", section 3). −1 leaves the slot undefined until a
        `prefill` writes it. Repeated rotations add up no error: a key is rotated in float32, or kept before RoPE.

        Args:
            sources: Old slot of each new one, −1 for none, in any order, so that runs may change sides.  # [new length]
        """


@dataclass(frozen=True, slots=True)
class ScorePass:
    """What `CausalModel.score` computes."""

    tokens: IntArray
    parents: IntArray
    cache: KVCache
    skipped: int = 0


class CausalModel(Protocol):
    """Decoder with a key-value cache.

    A pass may end with a CancelledError soon after its token is cancelled, on a processor before the next layer. The
    slots that it was to write are undefined then; the cache is otherwise as before.

    Attributes:
        shape: Its sizes.
        joint_requests: Number of requests that `score_together` serves in less time than one after another; 1 if none.
    """

    shape: ModelShape
    joint_requests: int

    def held_weights(self) -> Held:
        """Return where the weights are. May be called on any thread."""

    def new_cache(self, capacity: int) -> KVCache:
        """Return an empty cache of at most `capacity` slots; the model's positions limit it as well."""

    def prefill(
        self,
        tokens: IntArray,
        slots: IntArray,
        cache: KVCache,
        logits_rows: Sequence[int] = (),
        cancel: CancelToken = NEVER,
    ) -> Logits:
        """Compute tokens into given slots; row i sees every slot ≤ slots[i] (causal by position).

        Slots ascend but need not be adjacent: all slots between them must hold valid keys and values.
        `cache.length` becomes max(length, slots[-1] + 1).

        Args:
            tokens: Token ids.  # [rows]
            slots: Slot of each token, which is also its position.  # [rows]
            cache: Changed in place.
            logits_rows: Rows whose next-token logits to return, as indices into `tokens`.
            cancel: Ends the pass.
        """

    def score(
        self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER, skipped: int = 0
    ) -> Logits:
        """Compute a draft tree on top of the past and of kept rows; return logits for the new rows after `skipped`.

        Rows are numbered from the kept ones on. Row i uses scratch slot length + i at position length + depth(i), where
        a root has depth 0, and sees the past, its ancestors and itself. Nothing is committed: call `cache.commit(path)`
        or `cache.keep(rows)` next; the next call of `score` overwrites all other rows.

        Args:
            tokens: Token ids of the new nodes.  # [rows]
            parents: Row of each new node's parent, −1 for a root; parents come before children.  # [rows]
            cache: Scratch slots are written, length stays.
            cancel: Ends the pass.
            skipped: Number of first new rows whose logits nobody needs.
        """

    def score_together(self, passes: Sequence[ScorePass]) -> Sequence[Logits]:
        """Do what `score` does for several caches, with the same results, in less time where the model can.

        Args:
            passes: What to score; no cache is there twice.

        Raises:
            ModelError, MemoryError: Of one of them. Each can be scored again then.
        """

    def superpose(
        self,
        tokens: IntArray,
        weights: FloatArray,
        parents: IntArray,
        cache: KVCache,
        cancel: CancelToken = NEVER,
    ) -> Logits:
        """Do what `score` does, for rows whose input is a weighted sum of token embeddings: Σ w·e(t).

        A single weight of 1 gives what `score` gives.  tokens, weights: # [rows, tokens]
        Source: "Superposed Decoding: Multiple Generations from a Single Autoregressive Inference Pass", section 3.
        """
