"""Sizes and layouts that the kernels share with the code that calls them, which does not import numba."""

from __future__ import annotations

LANES = 16
"""Number of float32 or int32 in a vector."""
CHANNELS = 64
"""Number of output channels in a panel: four registers of sums a row."""
BLOCK_SLOTS = 16
"""Number of slots in a block of keys."""
SPAN_SLOTS = 4 * BLOCK_SLOTS
"""Number of slots whose scores are computed together; the arrays of a cache have a multiple of it."""
VALUE_CHANNELS = 32
"""Number of channels in a group of values; head_dim is a multiple of it."""
MAX_TILE_QUERIES = 6
"""Number of queries of attention that any processor computes together."""
SCRATCH_FLOATS = 2 * LANES + MAX_TILE_QUERIES * VALUE_CHANNELS
"""Floats of a thread's scratch before the scores: lanes of a sum, totals, a tile of weighted values."""
ROWS = 32
"""Maximum number of rows that share the widening; their lines of all columns and sums fit the second-level cache."""
LINES = 0
"""Group width of inputs in lines."""
GROUP_LIMIT = 128
"""Maximum number of columns that share an activation scale, and a scale of each channel's int8 weights.

One activation scale a row costs 0.014 of NLL on Python source, one scale for 128 columns 0.003.
"""
STORE, ADD, GATE, LOGITS, GATE_GELU, GELU = 0, 1, 2, 3, 4, 5
"""Kinds of target of a product: what happens to a panel's results; see `int8_product.finish_row`."""
COUNTERS = 16
"""Number of int64 a stage: the claimed count and, a cache line later, the finished count."""
LAYER_STAGES = 12
"""Number of stages of a layer."""
HEAD_STAGES = 2
"""Number of stages of the head."""
NORM_1, QKV, QUERY_NORM, KEY_NORM, ATTENTION_OUT, POST_NORM_1, NORM_2, UP, DOWN, POST_NORM_2 = range(10)
PARTS = (
    "attention_norm", "qkv", "query_norm", "key_norm", "attention_out", "attention_post_norm", "mlp_norm", "up", "down",
    "mlp_post_norm",
)  # fmt: skip
"""Parts of a layer in the table of addresses, three each: weights, scales and bias; of a norm no scales.

What the model lacks has the address 0.
"""


def group_width(width: int) -> int:
    """Return how many of `width` columns share scales: the widest divisor in whole vectors up to the limit."""
    return next(wide for wide in range(GROUP_LIMIT, 0, -LANES) if width % wide == 0)
