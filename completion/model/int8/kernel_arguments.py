"""What the kernels of a forward pass take besides rows and cache: sizes, addresses of the weights, buffers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from completion.model.architecture import Architecture
from completion.model.int8.kernels.sizes import (
    CHANNELS,
    COUNTERS,
    GATE,
    GATE_GELU,
    GELU,
    HEAD_STAGES,
    LANES,
    LAYER_STAGES,
    LINES,
    PARTS,
    ROWS,
    SCRATCH_FLOATS,
    group_width,
)
from completion.model.int8.kernels.views import Buffers, Sizes
from completion.model.int8.packed_weights import PackedWeights
from drafting.arrays import FloatArray, own_zeros

LongArray = npt.NDArray[np.int64]
MAX_ROWS = 256
"""Maximum number of rows in one pass; a longer prefill runs in several."""
_KINDS = {("silu", True): GATE, ("gelu_tanh", True): GATE_GELU, ("gelu_tanh", False): GELU}
"""Kind of target of the product with gate and up, by activation and whether there is a gate."""


def strip_tables(weights: PackedWeights) -> dict[str, LongArray]:
    """Return each matrix's strips, by the name of the matrix: their addresses and kinds.  # [strips, 2] each."""
    matrices = [name.removesuffix(".strips") for name in weights.sections if name.endswith(".strips")]
    starts = {name: weights.sections[f"{name}.blocks"].ctypes.data for name in matrices}
    return {name: weights.sections[f"{name}.strips"] + np.array([starts[name], 0]) for name in matrices}


def address_table(weights: PackedWeights, strips: dict[str, LongArray], ones: FloatArray) -> LongArray:
    """Return the addresses of every layer's weights; see `kernels.forward_pass`.

    Matrices have their scales inside, so a channel's is 1, unless the matrix has a section of them.

    Returns:
        # [layers + 1, parts, 3]
    """
    layers = weights.architecture.layers
    table = np.zeros((layers + 1, len(PARTS), 3), np.int64)
    parts = {"weights": 0, "scales": 1, "bias": 2}
    found = {name: section for name, section in weights.sections.items() if not name.endswith((".blocks", ".strips"))}
    found |= {f"{name}.weights": table for name, table in strips.items()}
    found = {name.replace(".weights", ".scales"): ones for name in found if name.endswith(".weights")} | found
    for name, section in found.items():
        owner, _, matrix = name.partition(".")
        if matrix:
            kind, _, part = matrix.partition(".")
            layer = layers if owner == "final" else int(owner)
            table[layer, PARTS.index(kind), parts.get(part, 0)] = section.ctypes.data
    return table


def sizes_of(architecture: Architecture, *, in_lines: bool) -> Sizes:
    """Return the sizes, for quantised rows in groups or in lines."""

    def group(width: int) -> int:
        return LINES if in_lines else group_width(width)

    attention = architecture.heads * architecture.head_dim
    return Sizes(
        layers=architecture.layers,
        hidden=architecture.hidden_size,
        attention=attention,
        qkv=attention + 2 * architecture.kv_heads * architecture.head_dim,
        intermediate=architecture.intermediate_size,
        up=architecture.intermediate_size * (2 if architecture.gated else 1),
        vocabulary=-(-architecture.vocabulary_size // CHANNELS) * CHANNELS,
        kv_heads=architecture.kv_heads,
        group=architecture.heads // architecture.kv_heads,
        hidden_group=group(architecture.hidden_size),
        attention_group=group(attention),
        intermediate_group=group(architecture.intermediate_size),
        epsilon=architecture.norm_epsilon,
        attention_scale=architecture.attention_scale,
        centred=architecture.centred_norms,
        activation=_KINDS[architecture.activation, architecture.gated],
    )


def widest_output(sizes: Sizes) -> int:
    """Return the number of channels of the matrix that has the most, in whole panels."""
    return -(-max(sizes.qkv, sizes.hidden, sizes.up, sizes.vocabulary) // CHANNELS) * CHANNELS


def new_buffers(sizes: Sizes, architecture: Architecture, threads: int) -> Buffers:
    """Return the buffers that all threads of a pass share; untouched ones take no memory.

    They start at pages: scores across two cache lines made a prefill take 1.1 times as long.
    """
    widest = max(sizes.hidden, sizes.attention, sizes.intermediate)

    def rows_of(width: int) -> FloatArray:
        return own_zeros((MAX_ROWS, width), np.float32)

    return Buffers(
        x=rows_of(sizes.hidden),
        normal=rows_of(sizes.hidden),
        qkv=rows_of(-(-sizes.qkv // CHANNELS) * CHANNELS),
        queries=own_zeros((sizes.kv_heads, MAX_ROWS * sizes.group, architecture.head_dim), np.float32),
        attention=rows_of(sizes.attention),
        gated=rows_of(sizes.intermediate),
        quantised=own_zeros((2 * MAX_ROWS * widest,), np.int8),
        factors=own_zeros((MAX_ROWS * widest // LANES,), np.int64),
        sums=own_zeros((threads, ROWS * CHANNELS), np.float32),
        scratch=own_zeros((threads, SCRATCH_FLOATS), np.float32),
        counters=own_zeros((sizes.layers * LAYER_STAGES + HEAD_STAGES, COUNTERS), np.int64),
    )
