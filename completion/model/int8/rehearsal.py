"""A pass of a model without content, which compiles the kernels while a first start still packs the weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from completion.model.architecture import Architecture, RotaryScaling
from completion.model.int8.kernels.sizes import CHANNELS, VALUE_CHANNELS
from completion.model.int8.packed_weights import PackedWeights, Section
from completion.model.int8.quantized import QuantizedTransformer
from drafting.arrays import own_zeros

_WIDTH, _POSITIONS = CHANNELS, 1024


def rehearse() -> None:
    """Compile what a pass calls: kernels take sizes and addresses, so they are the same for every model."""
    architecture = Architecture(
        family="llama",
        hidden_size=_WIDTH,
        layers=1,
        heads=_WIDTH // VALUE_CHANNELS,
        kv_heads=1,
        head_dim=VALUE_CHANNELS,
        intermediate_size=_WIDTH,
        vocabulary_size=_WIDTH,
        max_positions=_POSITIONS,
        norm_epsilon=1e-6,
        tied_head=False,
        attention_scale=1.0,
        rotary=RotaryScaling("default", 10_000.0, {}),
    )
    parts = {"weights": own_zeros((4 * _WIDTH, _WIDTH), np.int8), "bias": own_zeros((4 * _WIDTH,), np.float32)}
    matrices = ("0.qkv", "0.attention_out", "0.up", "0.down", "final.qkv")
    sections: dict[str, Section] = {f"{name}.{part}": zeros for name in matrices for part, zeros in parts.items()}
    sections |= dict.fromkeys(("0.attention_norm", "0.mlp_norm", "final.attention_norm"), parts["bias"])
    QuantizedTransformer(
        PackedWeights(architecture, np.zeros((_WIDTH, _WIDTH), np.uint16), sections, Path()), threads=1
    ).warm_up()
