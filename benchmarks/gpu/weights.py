"""Random weights in the shapes of the coders of 0.5B, 1.5B and 7B parameters, in each format."""

from __future__ import annotations

import math

import torch

from completion.model.architecture import Architecture, RotaryScaling
from completion.model.dense.weights import AnyLinear, LayerWeights, Linear, Norm, Weights, stored_linear, stored_table
from completion.model.gpu_memory import WeightFormat

_ROTARY = RotaryScaling("default", 1_000_000.0, {})


def coder(layers: int, hidden: int, heads: int, kv_heads: int, intermediate: int, head_dim: int) -> Architecture:
    """Return a shape of Qwen2.5-Coder."""
    return Architecture(
        family="qwen2",
        hidden_size=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate_size=intermediate,
        vocabulary_size=151_936,
        max_positions=32_768,
        norm_epsilon=1e-6,
        tied_head=False,
        attention_scale=head_dim**-0.5,
        rotary=_ROTARY,
    )


SHAPES = {
    "0.5B": coder(24, 896, 14, 2, 4864, 64),
    "1.5B": coder(28, 1536, 12, 2, 8960, 128),
    "7B": coder(28, 3584, 28, 4, 18944, 128),
}


def random_weights(
    architecture: Architecture, dtype: torch.dtype, device: str, kind: WeightFormat = "plain"
) -> Weights:
    """Return random weights of a realistic scale, drawn on the device."""
    generator = torch.Generator(device).manual_seed(0)

    def matrix(out: int, width: int) -> torch.Tensor:
        drawn = torch.randn(out, width, generator=generator, device=device, dtype=dtype)
        return drawn.mul_(1 / math.sqrt(width))

    def linear(out: int, width: int, *, bias: bool = False) -> AnyLinear:
        return stored_linear([matrix(out, width)], matrix(1, out)[0] if bias else None, kind, dtype, device)

    hidden, attention = architecture.hidden_size, architecture.heads * architecture.head_dim
    qkv = attention + 2 * architecture.kv_heads * architecture.head_dim
    norm = Norm(torch.ones(hidden, device=device, dtype=dtype))
    layers = tuple(
        LayerWeights(
            norm,
            linear(qkv, hidden, bias=True),
            linear(hidden, attention),
            norm,
            linear(2 * architecture.intermediate_size, hidden),
            linear(hidden, architecture.intermediate_size),
        )
        for _ in range(architecture.layers)
    )
    embeddings, head = (
        stored_table(matrix(architecture.vocabulary_size, hidden), kind, dtype, device) for _ in range(2)
    )
    return Weights(embeddings, layers, norm, head)


def moved(weights: Weights, kind: WeightFormat, dtype: torch.dtype, device: str) -> Weights:
    """Return plain weights in another format, with another type, on another device."""

    def linear(given: AnyLinear) -> AnyLinear:
        return stored_linear([_plain(given)], given.bias, kind, dtype, device)

    def norm(given: Norm) -> Norm:
        return Norm(given.weight.to(device, dtype))

    layers = tuple(
        LayerWeights(
            norm(layer.attention_norm),
            linear(layer.qkv),
            linear(layer.attention_out),
            norm(layer.mlp_norm),
            linear(layer.up),
            linear(layer.down),
        )
        for layer in weights.layers
    )
    embeddings, head = (
        stored_table(_plain(table), kind, dtype, device) for table in (weights.embeddings, weights.head)
    )
    return Weights(embeddings, layers, norm(weights.final_norm), head)


def _plain(linear: AnyLinear) -> torch.Tensor:
    if not isinstance(linear, Linear):
        raise TypeError(f"A {type(linear).__name__} cannot be rounded again; this is a bug of the benchmark.")
    return linear.weight
