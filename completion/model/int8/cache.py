"""The int8 path's cache of keys and values: bfloat16, in the layout of the attention kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from completion.memory import Held, large_memory
from completion.model.architecture import Architecture
from completion.model.draft_rows import TreeCache
from completion.model.int8.kernels.sizes import BLOCK_SLOTS, LANES, SPAN_SLOTS, VALUE_CHANNELS
from completion.model.int8.kernels.views import CacheView, CompressedView
from completion.model.int8.worker_threads import WorkerThreads
from completion.model.weights import bfloat16_floats
from drafting.arrays import FloatArray, IntArray, own_zeros
from drafting.compiled import kernel_in

move_slots, compress_slots, expand_slots = (
    kernel_in("completion.model.int8.kernels.slots", name) for name in ("move_slots", "compress_slots", "expand_slots")
)
"""See `kernels.slots`."""
_MEAN_SLOTS = 256  # number of first slots whose keys give the means of channels


class Int8Cache(TreeCache):
    """Keys and values of one sequence.

    Keys are also stored before rotation. A moved key is rotated from that original, so no error adds up. A cache that
    shrinks gives its rotated keys back, a third of its memory; the next call that needs them rotates them again, to the
    same bits, at about a microsecond a slot. A cache that is compressed rounds its past to 8 bits, 0.35 of the memory,
    until the next call that needs it.

    Attributes:
        view: The arrays, in the form that kernels take.
    """

    __slots__ = ("_architecture", "_compressed", "_means", "_threads", "view")
    growth_slots = SPAN_SLOTS  # short prompts would take twice the memory that they need with larger steps

    def __init__(
        self, architecture: Architecture, capacity: int, cosines: FloatArray, sines: FloatArray, threads: WorkerThreads
    ) -> None:
        self.view = _empty_view(architecture, 0, cosines, sines)
        self._compressed: CompressedView | None = None
        self._means: FloatArray | None = None
        super().__init__(min(capacity, architecture.max_positions))
        self._architecture, self._threads = architecture, threads

    def held(self) -> Held:
        """Return where its memory is."""
        return Held.arrays(self._arrays())

    def reserve(self, needed: int) -> None:
        """Allocate slots 0 .. needed-1 and some more, with rotated keys."""
        self._restore()
        super().reserve(needed)

    def reopen(self, length: int) -> None:
        """Turn the slots from `length` on back into a chain of kept rows."""
        self._restore()
        super().reopen(length)

    def shrink(self) -> None:
        """Give back allocated slots after the last row, and the rotated keys of a past with no rows after it."""
        if self._compressed is not None:
            return
        needed = _whole_spans(self.length + len(self.parents))
        if needed < self.slots:
            self.resize(needed)
            self.slots = needed
        if not len(self.parents):
            self.view = self.view._replace(keys=_empty_keys(self._architecture, 0))

    def compress(self) -> bool:
        """Keep the past in 8 bits, and nothing else."""
        self.shrink()
        if len(self.parents) or not self.length or self._compressed is not None:
            return False
        if self._means is None:
            keys = bfloat16_floats(self.view.plain_keys[:, :, : min(self.length, _MEAN_SLOTS)])
            self._means = keys.mean(axis=2, dtype=np.float32)  # [layers, kv_heads, head_dim]
        into = _empty_compressed(self._architecture, self.length, self._means)
        self._share(lambda thread, count: compress_slots(self.view, into, thread, count))
        self._compressed, self.slots = into, 0
        self.view = _empty_view(self._architecture, 0, self.view.cosines, self.view.sines)
        return True

    def resize(self, slots: int) -> None:
        """Allocate whole spans of slots, and copy the content of the old ones."""
        old, size = self.view, _whole_spans(slots)
        kept = min(size, old.plain_keys.shape[2])
        self.view = _empty_view(self._architecture, size, old.cosines, old.sines)
        if old.keys.size:
            self.view.keys[:, :, : kept // BLOCK_SLOTS] = old.keys[:, :, : kept // BLOCK_SLOTS]
        self.view.plain_keys[:, :, :kept] = old.plain_keys[:, :, :kept]
        self.view.values[:, :, :, :kept] = old.values[:, :, :, :kept]

    def copy_slots(self, sources: IntArray, targets: IntArray) -> None:
        """Copy slots as if all at once."""
        keys, plain_keys, values = self.view[:3]
        plain_keys[:, :, targets] = plain_keys[:, :, sources]
        values[:, :, :, targets] = values[:, :, :, sources]
        into, lane = targets // BLOCK_SLOTS, targets % BLOCK_SLOTS
        keys[:, :, into, :, lane] = keys[:, :, sources // BLOCK_SLOTS, :, sources % BLOCK_SLOTS]

    def rearrange(self, sources: IntArray) -> None:
        """Fill slots 0 .. len(sources)-1 from old slots; keys are rotated from their unrotated originals."""
        self.reserve(len(sources))
        moved = np.flatnonzero((sources >= 0) & (sources != np.arange(len(sources)))).astype(np.int32)
        self._rotate(self.view, sources[moved].astype(np.int32), moved)
        self.settle(len(sources))

    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return (*self.view[:3], *(self._compressed or ()))

    def _restore(self) -> None:
        """Expand the past if it was compressed, and rotate its keys again if they were given back."""
        if (compressed := self._compressed) is not None:
            slots = _whole_spans(compressed.keys.shape[2])
            self.resize(slots)
            self._share(lambda thread, count: expand_slots(compressed, self.view, thread, count))
            self.view = self.view._replace(keys=_empty_keys(self._architecture, 0))
            self._compressed, self.slots = None, slots
        slots = self.view.plain_keys.shape[2]
        if self.view.keys.size == self.view.plain_keys.size:
            return
        whole = self.view._replace(keys=_empty_keys(self._architecture, slots))
        past = np.arange(self.length, dtype=np.int32)
        self._rotate(whole, past, past)
        self.view = whole

    def _rotate(self, view: CacheView, sources: IntArray, targets: IntArray) -> None:
        """Copy slots as if all at once, and rotate their keys to the positions of their new slots."""
        if len(sources):
            scratch = np.empty((self._threads.count, len(sources) + 1, view.plain_keys.shape[3]), np.uint16)
            self._share(lambda thread, count: move_slots(view, sources, targets, scratch[thread], thread, count))

    def _share(self, work: Callable[[int, int], None]) -> None:
        """Let each thread do its part; `work` takes the thread's number and the number of threads."""
        count = self._threads.count
        self._threads.run(lambda thread: work(thread, count))


def _whole_spans(slots: int) -> int:
    return -(-slots // SPAN_SLOTS) * SPAN_SLOTS


def _empty_view(architecture: Architecture, slots: int, cosines: FloatArray, sines: FloatArray) -> CacheView:
    """Return arrays of `slots` slots, a multiple of SPAN_SLOTS; zeros, since kernels multiply unused slots by zero."""
    heads, width = (architecture.layers, architecture.kv_heads), architecture.head_dim
    plain_keys, values = _zeros(2, *heads, slots * width)
    return CacheView(
        keys=_empty_keys(architecture, slots),
        plain_keys=plain_keys.reshape(*heads, slots, width),
        values=values.reshape(*heads, width // VALUE_CHANNELS, slots, LANES, 2),
        cosines=cosines,
        sines=sines,
        first_angles=np.array(architecture.first_angles),
        windows=np.array([architecture.window_of(layer) for layer in range(architecture.layers)]),
    )


def _empty_compressed(architecture: Architecture, slots: int, means: FloatArray) -> CompressedView:
    """Return arrays for `slots` slots in 8 bits."""
    rows = (architecture.layers, architecture.kv_heads, slots)
    keys, values = _zeros(2, *rows, architecture.head_dim, kind=np.int8)
    return CompressedView(
        keys=keys,
        values=values,
        key_scales=own_zeros(rows, np.float32),
        value_scales=own_zeros(rows, np.float32),
        key_means=means,
        value_means=np.zeros(architecture.head_dim, np.float32),
    )


def _empty_keys(architecture: Architecture, slots: int) -> IntArray:
    """Return rotated keys of `slots` slots."""
    heads = (architecture.layers, architecture.kv_heads)
    return _zeros(*heads, slots // BLOCK_SLOTS, architecture.head_dim // 2, BLOCK_SLOTS, 2)


def _zeros(*shape: int, kind: npt.DTypeLike = np.uint16) -> npt.NDArray[Any]:
    size = math.prod(shape) * np.dtype(kind).itemsize
    return np.frombuffer(large_memory(size), kind).reshape(shape) if size else np.zeros(shape, kind)
