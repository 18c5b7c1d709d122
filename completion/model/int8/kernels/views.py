"""What a forward pass reads and writes, as tuples of arrays that compiled code takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drafting.arrays import FloatArray, IntArray

ByteArray = npt.NDArray[np.int8]


class CacheView(NamedTuple):
    """One sequence's keys and values, as bfloat16 bits.

    Attributes:
        keys: Rotated keys.  # [layers, kv_heads, slots / 16, head_dim / 2, 16, 2]
        plain_keys: Keys before rotation.  # [layers, kv_heads, slots, head_dim]
        values: Values.  # [layers, kv_heads, head_dim / 32, slots, 16, 2]
        cosines: Cosines of the rotary angles.  # [positions or more, head_dim / 2]
        sines: Sines of the rotary angles.  # same shape
        first_angles: Row of the angles at which each layer's part starts.  # [layers]
        windows: Number of last positions that a row of each layer sees, its own included.  # [layers]
    """

    keys: IntArray
    plain_keys: IntArray
    values: IntArray
    cosines: FloatArray
    sines: FloatArray
    first_angles: IntArray
    windows: IntArray


class Sequences(NamedTuple):
    """The sequences of a pass: where the arrays of each one's `CacheView` are, and what they have in common.

    Attributes:
        addresses: Addresses of keys, keys before rotation, and values of each.  # int64 [sequences, 3]
        slots: Number of slots of each.  # [sequences]
    """

    addresses: IntArray
    slots: IntArray
    cosines: FloatArray
    sines: FloatArray
    first_angles: IntArray
    windows: IntArray


class CompressedView(NamedTuple):
    """One sequence's past in 8 bits; see `kernels.slots`.

    Attributes:
        keys: Unrotated keys less the means.  # int8 [layers, kv_heads, slots, head_dim]
        values: Values, each group of 32 channels in the order of `CacheView`.  # int8, same shape
        key_scales: What a step of each key is worth.  # float32 [layers, kv_heads, slots]
        value_scales: The same for values.
        key_means: Means of the keys' channels.  # float32 [layers, kv_heads, head_dim]
        value_means: Those of the values', which are not centred: zeros.  # float32 [head_dim]
    """

    keys: ByteArray
    values: ByteArray
    key_scales: FloatArray
    value_scales: FloatArray
    key_means: FloatArray
    value_means: FloatArray


class RowsView(NamedTuple):
    """Slots and positions of rows, and the slots that they see, each in its own sequence.

    Attributes:
        sequences: Index of a row's sequence. Rows of a sequence are mostly neighbours.  # [rows]
        slots: Slot that receives a row's key and value.  # [rows]
        positions: Rotary position of a row.  # [rows]
        contiguous: Number of first slots that a row sees.  # [rows]
        singles_start: A row also sees singles[singles_start[row] : singles_start[row + 1]].  # [rows + 1]
        singles: Single slots, ascending for each row.  # [any]
        wanted: Rows whose logits to compute.  # [any]
    """

    sequences: IntArray
    slots: IntArray
    positions: IntArray
    contiguous: IntArray
    singles_start: IntArray
    singles: IntArray
    wanted: IntArray


class Sizes(NamedTuple):
    """Sizes of the architecture; group widths are those of quantised inputs, LINES for blocks."""

    layers: int
    hidden: int
    attention: int  # heads · head_dim
    qkv: int  # (heads + 2 kv_heads) · head_dim
    intermediate: int
    up: int  # 2 · intermediate for gate and up, intermediate for up alone
    vocabulary: int  # a multiple of 64
    kv_heads: int
    group: int  # heads / kv_heads
    hidden_group: int
    attention_group: int
    intermediate_group: int
    epsilon: float
    attention_scale: float
    centred: bool  # whether norms remove the mean
    activation: int  # kind of target of the product with gate and up: GATE, GATE_GELU or GELU


class Buffers(NamedTuple):
    """Memory of a pass, reused by the next one. Widths of qkv and vocabulary are rounded up to whole panels."""

    x: FloatArray  # [rows, hidden]: the residual stream, first the embeddings
    normal: FloatArray  # [rows, hidden]
    qkv: FloatArray  # [rows, qkv]
    queries: FloatArray  # [kv_heads, rows · group, head_dim]
    attention: FloatArray  # [rows, heads · head_dim]
    gated: FloatArray  # [rows, intermediate]
    quantised: IntArray  # int8 [rows · 2 · widest]
    factors: IntArray  # int64 [rows · most groups]
    sums: FloatArray  # [threads, 32 · 64]
    scratch: FloatArray  # [threads, attention.SCRATCH_FLOATS + 6 · slots]
    counters: IntArray  # [stages, 16]


class Outputs(NamedTuple):
    """Results of a pass."""

    logits: FloatArray  # [wanted, vocabulary]
    largest: FloatArray  # [wanted, vocabulary / 64]: the largest logit of every 64
