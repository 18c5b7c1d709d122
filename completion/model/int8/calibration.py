"""How large the inputs of each matrix are in a short text of code: how much rounding each of its columns costs.

The text, `data/calibration.txt`, has nine languages. Source of the idea: the importance matrix of llama.cpp.
"""

from __future__ import annotations

from importlib import resources

import numpy as np

from completion.model.families import layer_names
from completion.model.int8.kernel_arguments import MAX_ROWS
from completion.model.int8.packed_weights import PackedWeights
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.tokenizer import CodeTokenizer
from drafting.arrays import FloatArray

_LEAST = 0.01
"""Least importance of a column, as a part of the mean: a short text does not show everything that a column is for."""


def text() -> str:
    """Return the text."""
    return resources.files("completion.model.int8").joinpath("data", "calibration.txt").read_text(encoding="utf-8")


def importance_of(weights: PackedWeights, tokenizer: CodeTokenizer, threads: int) -> dict[str, FloatArray]:
    """Return the mean square of each matrix's inputs, by its name in transformers, and at least a part of their mean.

    The model's weights are in int8.
    """
    tokens = np.array(tokenizer.encode(text()), np.int32)
    model, architecture = QuantizedTransformer(weights, threads), weights.architecture
    sums: dict[str, FloatArray] = {}

    def add(names: list[str], inputs: FloatArray) -> None:
        squares = np.square(inputs, dtype=np.float64).sum(axis=0)
        for name in names:
            sums[name] = sums[name] + squares if name in sums else squares

    def normalised(x: FloatArray, name: str) -> FloatArray:
        if architecture.centred_norms:
            x = x - x.mean(axis=1, keepdims=True)
        x = x / np.sqrt(np.square(x).mean(axis=1, keepdims=True) + architecture.norm_epsilon)
        bias = weights.sections.get(f"{name}.bias")
        return x * weights.sections[name] + (0 if bias is None else bias)

    for part in np.array_split(tokens, -(-len(tokens) // MAX_ROWS)):
        for layer, (before, after, buffers) in enumerate(model.layer_by_layer(part)):
            names = layer_names(architecture.family, layer)
            add([names["query"], names["key"], names["value"]], normalised(before, f"{layer}.attention_norm"))
            add([names["attention_out"]], buffers.attention[: len(part)])
            normal = buffers.normal[: len(part)]
            if "mlp_post_norm" in names:  # then it holds the norm of what the layer added last
                normal = normalised(after - normal, f"{layer}.mlp_norm")
            add([names[name] for name in ("gate", "up") if name in names], normal)
            add([names["down"]], buffers.gated[: len(part)])
        add(["lm_head", "model.embed_tokens"], normalised(after, "final.attention_norm"))
    return {name: _importance(each) for name, each in sums.items()}


def _importance(squares: FloatArray) -> FloatArray:
    """Scale sums to a mean of 1, and raise the least of them."""
    mean = squares.mean() or 1.0
    found: FloatArray = np.maximum(squares / mean, _LEAST).astype(np.float32)
    return found
