"""The int8 path's cache of keys and values: bfloat16, in the layout of the attention kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from completion.memory import Held, large_memory
from completion.model.architecture import Architecture
from completion.model.draft_rows import TreeCache
from completion.model.int8.kernels.sizes import BLOCK_SLOTS, LANES, SPAN_SLOTS, VALUE_CHANNELS
from completion.model.int8.kernels.views import CacheView
from completion.model.worker_threads import WorkerThreads
from drafting.arrays import FloatArray, IntArray
from drafting.compiled import kernel_in

move_slots = kernel_in("completion.model.int8.kernels.slot_moves", "move_slots")
"""See `slot_moves`."""


class Int8Cache(TreeCache):
    """Keys and values of one sequence.

    Keys are also stored before rotation. A moved key is rotated from that original, so no error adds up.

    Attributes:
        view: The arrays, in the form that kernels take.
    """

    __slots__ = ("_architecture", "_threads", "view")
    growth_slots = SPAN_SLOTS  # short prompts would take twice the memory that they need with larger steps

    def __init__(
        self, architecture: Architecture, capacity: int, cosines: FloatArray, sines: FloatArray, threads: WorkerThreads
    ) -> None:
        self.view = _empty_view(architecture, 0, cosines, sines)
        super().__init__(min(capacity, architecture.max_positions))
        self._architecture, self._threads = architecture, threads

    @property
    def size_bytes(self) -> int:
        """Allocated memory."""
        return self.view.keys.nbytes + self.view.plain_keys.nbytes + self.view.values.nbytes

    def held(self) -> Held:
        """Return where its memory is."""
        return Held.arrays(self.view[:3])

    def shrink(self) -> None:
        """Give back allocated slots after the last row."""
        needed = _whole_spans(self.length + len(self.parents))
        if needed < self.slots:
            self.slots = needed
            self.resize(needed)

    def resize(self, slots: int) -> None:
        """Allocate whole spans of slots, and copy the content of the old ones."""
        old, size = self.view, _whole_spans(slots)
        kept = min(size, old.plain_keys.shape[2])
        self.view = _empty_view(self._architecture, size, old.cosines, old.sines)
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
        if len(moved):
            read, threads = sources[moved].astype(np.int32), self._threads
            scratch = np.empty((threads.count, len(moved) + 1, self.view.plain_keys.shape[3]), np.uint16)
            threads.run(lambda thread: move_slots(self.view, read, moved, scratch[thread], thread, threads.count))
        self.settle(len(sources))


def _whole_spans(slots: int) -> int:
    return -(-slots // SPAN_SLOTS) * SPAN_SLOTS


def _empty_view(architecture: Architecture, slots: int, cosines: FloatArray, sines: FloatArray) -> CacheView:
    """Return arrays of `slots` slots, a multiple of SPAN_SLOTS; zeros, since kernels multiply unused slots by zero."""
    heads, width = (architecture.layers, architecture.kv_heads), architecture.head_dim
    count = architecture.layers * architecture.kv_heads * slots * width
    numbers: npt.NDArray[Any] = np.frombuffer(large_memory(6 * count), np.uint16) if count else np.zeros(0, np.uint16)
    keys, plain_keys, values = numbers.reshape(3, count)
    return CacheView(
        keys=keys.reshape(*heads, slots // BLOCK_SLOTS, width // 2, BLOCK_SLOTS, 2),
        plain_keys=plain_keys.reshape(*heads, slots, width),
        values=values.reshape(*heads, width // VALUE_CHANNELS, slots, LANES, 2),
        cosines=cosines,
        sines=sines,
        first_angles=np.array(architecture.first_angles),
        windows=np.array([architecture.window_of(layer) for layer in range(architecture.layers)]),
    )
