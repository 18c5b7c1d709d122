"""Weights of the torch decoder, joined as its forward pass needs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from completion.model.architecture import Architecture
from completion.model.families import family_of, layer_names
from completion.model.weights import StoredTensor, StoredTensors, head_name

_KINDS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Linear:
    """Linear layer y = x Wᵀ + b.  weight: # [out, in]; bias: # [out], None if the layer has none."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return y.  x: # [rows, in] → # [rows, out]."""
        return torch.nn.functional.linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class Norm:
    """Weight and bias of a norm.  # [width] each; the bias is None if the norm has none."""

    weight: torch.Tensor
    bias: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Weights of one decoder layer; query, key and value projections are one matrix, and so are gate and up."""

    attention_norm: Norm  # [hidden]
    qkv: Linear  # [(heads + 2 kv_heads) · head_dim, hidden]
    attention_out: Linear  # [hidden, heads · head_dim]
    mlp_norm: Norm  # [hidden]
    up: Linear  # [2 · intermediate, hidden]: gate and up; or up alone [intermediate, hidden]
    down: Linear  # [hidden, intermediate]
    query_norm: Norm | None = None  # [head_dim]
    key_norm: Norm | None = None  # [head_dim]
    attention_post_norm: Norm | None = None  # [hidden]
    mlp_post_norm: Norm | None = None  # [hidden]


@dataclass(frozen=True, slots=True)
class Weights:
    """All weights of a decoder."""

    embeddings: torch.Tensor  # [vocabulary, hidden]
    layers: tuple[LayerWeights, ...]
    final_norm: Norm  # [hidden]
    head: torch.Tensor  # [vocabulary, hidden]


def read_weights(folder: Path, architecture: Architecture, dtype: torch.dtype, device: str = "cpu") -> Weights:
    """Read every tensor of a model.

    Raises:
        ModelNotFoundError: The folder has no weights.
        ModelDamagedError: A file is damaged, or a tensor is missing.
        UnsupportedModelError: A tensor has a format that is not read.
    """
    tensors = StoredTensors(folder)
    family = family_of(architecture.family)

    def converted(stored: StoredTensor) -> torch.Tensor:
        return torch.from_numpy(stored.values).view(_KINDS[stored.kind]).to(device, dtype)

    def norm(name: str, scale: float = 1.0) -> Norm:
        weight, bias = tensors[f"{name}.weight"], tensors.get(f"{name}.bias")
        values = converted(weight) if not family.norm_offset else torch.from_numpy(weight.floats()).to(device)
        return Norm((values + family.norm_offset) * scale, None if bias is None else converted(bias) * scale)

    embeddings = converted(tensors["model.embed_tokens.weight"])
    head = head_name(tensors, tied=architecture.tied_head)
    return Weights(
        embeddings=embeddings,
        layers=tuple(
            _read_layer(architecture, index, tensors, converted, norm) for index in range(architecture.layers)
        ),
        final_norm=norm("model.norm", architecture.logits_scale),
        head=converted(tensors[head]) if head == "lm_head.weight" else embeddings,
    )


def _read_layer(
    architecture: Architecture,
    index: int,
    tensors: StoredTensors,
    converted: Callable[[StoredTensor], torch.Tensor],
    norm: Callable[[str], Norm],
) -> LayerWeights:
    names = layer_names(architecture.family, index)

    def linear(*parts: str) -> Linear:
        found = [names[part] for part in parts if part in names]
        weights = [converted(tensors[f"{name}.weight"]) for name in found]
        biases = [tensors.get(f"{name}.bias") for name in found]
        if all(bias is None for bias in biases):
            return Linear(torch.cat(weights), None)
        filled = [
            weight.new_zeros(len(weight)) if bias is None else converted(bias)
            for weight, bias in zip(weights, biases, strict=True)
        ]
        return Linear(torch.cat(weights), torch.cat(filled))

    return LayerWeights(
        qkv=linear("query", "key", "value"),
        attention_out=linear("attention_out"),
        up=linear("gate", "up"),
        down=linear("down"),
        **{part: norm(name) for part, name in names.items() if part.endswith("norm")},
    )
