"""Weights of the torch decoder, joined as its forward pass needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from completion.model.architecture import Architecture
from completion.model.dense.quantized_linear import Int4Linear, Int8Linear
from completion.model.families import family_of, layer_names
from completion.model.gpu_memory import WeightFormat
from completion.model.weights import StoredTensor, Tensors, head_name

_KINDS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Linear:
    """Linear layer y = x Wᵀ + b.  weight: # [out, in]; bias: # [out], None if the layer has none."""

    weight: torch.Tensor
    bias: torch.Tensor | None = None

    @property
    def dtype(self) -> torch.dtype:
        """Type of results."""
        return self.weight.dtype

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return y.  x: # [rows, in] → # [rows, out]."""
        return torch.nn.functional.linear(x, self.weight, self.bias)

    def rows(self, indices: torch.Tensor) -> torch.Tensor:
        """Return rows of the matrix.  # [...] → # [..., in]."""
        return self.weight[indices]


AnyLinear = Linear | Int8Linear | Int4Linear


@dataclass(frozen=True, slots=True)
class Norm:
    """Weight and bias of a norm.  # [width] each; the bias is None if the norm has none."""

    weight: torch.Tensor
    bias: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Weights of one decoder layer; query, key and value projections are one matrix, and so are gate and up."""

    attention_norm: Norm  # [hidden]
    qkv: AnyLinear  # [(heads + 2 kv_heads) · head_dim, hidden]
    attention_out: AnyLinear  # [hidden, heads · head_dim]
    mlp_norm: Norm  # [hidden]
    up: AnyLinear  # [2 · intermediate, hidden]: gate and up; or up alone [intermediate, hidden]
    down: AnyLinear  # [hidden, intermediate]
    query_norm: Norm | None = None  # [head_dim]
    key_norm: Norm | None = None  # [head_dim]
    attention_post_norm: Norm | None = None  # [hidden]
    mlp_post_norm: Norm | None = None  # [hidden]


@dataclass(frozen=True, slots=True)
class Weights:
    """All weights of a decoder."""

    embeddings: Linear | Int8Linear  # [vocabulary, hidden]
    layers: tuple[LayerWeights, ...]
    final_norm: Norm  # [hidden]
    head: Linear | Int8Linear  # [vocabulary, hidden]


def stored_linear(
    weights: Sequence[torch.Tensor], bias: torch.Tensor | None, kind: WeightFormat, dtype: torch.dtype, device: str
) -> AnyLinear:
    """Return a layer with matrices, which become one, in a format on a device.

    Raises:
        UnsupportedModelError: The shape has no product of 4-bit weights.
    """
    if bias is not None:
        bias = bias.to(device, dtype)
    if kind == "q4":
        return Int4Linear.rounded(weights, bias, dtype, device)
    if kind == "int8":
        return Int8Linear.rounded(weights, bias, dtype, device)
    return Linear(torch.cat([weight.to(device, dtype) for weight in weights]), bias)


def stored_table(weight: torch.Tensor, kind: WeightFormat, dtype: torch.dtype, device: str) -> Linear | Int8Linear:
    """Return embeddings or a head, which never have 4 bits."""
    if kind == "plain":
        return Linear(weight.to(device, dtype))
    return Int8Linear.rounded([weight], None, dtype, device)


def read_weights(
    folder: Path, architecture: Architecture, dtype: torch.dtype, device: str = "cpu", kind: WeightFormat = "plain"
) -> Weights:
    """Read every tensor of a model.

    Raises:
        ModelNotFoundError: The folder has no weights.
        ModelDamagedError: A file is damaged, or its tensors are not those of the config.
        UnsupportedModelError: A tensor has a format that is not read, or a shape that has no product of 4-bit weights.
    """
    from completion.model.store.tensor_shapes import checked_tensors  # noqa: PLC0415 - a GPU may be without the store

    tensors = checked_tensors(folder, architecture)
    family = family_of(architecture.family)

    def norm(name: str, scale: float = 1.0) -> Norm:
        weight, bias = tensors[f"{name}.weight"], tensors.get(f"{name}.bias")
        exact = torch.float32 if family.norm_offset else dtype
        values = (_mapped(weight).to(device, exact) + family.norm_offset) * scale
        return Norm(values, None if bias is None else _mapped(bias).to(device, dtype) * scale)

    def linear(names: Sequence[str]) -> AnyLinear:
        weights = [_mapped(tensors[f"{name}.weight"]) for name in names]
        return stored_linear(weights, _joined_bias(tensors, names, weights), kind, dtype, device)

    def table(name: str) -> Linear | Int8Linear:
        return stored_table(_mapped(tensors[name]), kind, dtype, device)

    embeddings = table("model.embed_tokens.weight")
    head = head_name(tensors, tied=architecture.tied_head)
    return Weights(
        embeddings=embeddings,
        layers=tuple(_read_layer(architecture, index, linear, norm) for index in range(architecture.layers)),
        final_norm=norm("model.norm", architecture.logits_scale),
        head=table(head) if head == "lm_head.weight" else embeddings,
    )


def _mapped(stored: StoredTensor) -> torch.Tensor:
    return torch.from_numpy(stored.values).view(_KINDS[stored.kind])


def _joined_bias(tensors: Tensors, names: Sequence[str], weights: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Return the biases of projections, zero where one is missing; None if all are."""
    stored = [tensors.get(f"{name}.bias") for name in names]
    if all(bias is None for bias in stored):
        return None
    return torch.cat(
        [
            torch.zeros(len(weight)) if bias is None else _mapped(bias).float()
            for weight, bias in zip(weights, stored, strict=True)
        ]
    )


def _read_layer(
    architecture: Architecture, index: int, linear: Callable[[Sequence[str]], AnyLinear], norm: Callable[[str], Norm]
) -> LayerWeights:
    names = layer_names(architecture.family, index)

    def joined(*parts: str) -> AnyLinear:
        return linear([names[part] for part in parts if part in names])

    return LayerWeights(
        qkv=joined("query", "key", "value"),
        attention_out=joined("attention_out"),
        up=joined("gate", "up"),
        down=joined("down"),
        **{part: norm(name) for part, name in names.items() if part.endswith("norm")},
    )
