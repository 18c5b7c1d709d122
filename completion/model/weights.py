"""Weights in a model folder's safetensors files, mapped into memory and joined as the forward pass needs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open

from completion.errors import ModelDamagedError, ModelNotFoundError
from completion.model.architecture import Architecture

Read = Callable[[str], torch.Tensor | None]


@dataclass(frozen=True, slots=True)
class Linear:
    """Linear layer y = x Wᵀ + b.  weight: # [out, in]; bias: # [out], None if the layer has none."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return y.  x: # [rows, in] → # [rows, out]."""
        return torch.nn.functional.linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Weights of one decoder layer; query, key and value projections are one matrix, and so are gate and up."""

    attention_norm: torch.Tensor  # [hidden]
    qkv: Linear  # [(heads + 2 kv_heads) · head_dim, hidden]
    attention_out: Linear  # [hidden, heads · head_dim]
    mlp_norm: torch.Tensor  # [hidden]
    gate_up: Linear  # [2 · intermediate, hidden]
    down: Linear  # [hidden, intermediate]


@dataclass(frozen=True, slots=True)
class Weights:
    """All weights of a decoder."""

    embeddings: torch.Tensor  # [vocabulary, hidden]
    layers: tuple[LayerWeights, ...]
    final_norm: torch.Tensor  # [hidden]
    head: torch.Tensor  # [vocabulary, hidden]


def open_tensors(folder: Path, dtype: torch.dtype, device: str = "cpu") -> Read:
    """Return a function that reads one tensor by name from the folder's safetensors files; None for an unknown name.

    Raises:
        ModelNotFoundError: The folder has no safetensors file.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelNotFoundError(f"The folder {folder} holds no .safetensors file. Name a converted model's folder.")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        named = set(json.loads(index.read_text())["weight_map"].values())
        files = [file for file in files if file.name in named]
    handles = [safe_open(file, framework="pt", device=device) for file in files]
    where = {name: handle for handle in handles for name in handle.keys()}  # noqa: SIM118  (no dict: a file handle)

    def read(name: str) -> torch.Tensor | None:
        return where[name].get_tensor(name).to(dtype) if name in where else None

    return read


def read_layer(read: Read, index: int) -> LayerWeights:
    """Read one decoder layer and join its projections.

    Raises:
        ModelDamagedError: A tensor is missing.
    """
    prefix = f"model.layers.{index}."
    return LayerWeights(
        attention_norm=required(read, f"{prefix}input_layernorm.weight"),
        qkv=_joined(read, [f"{prefix}self_attn.{name}_proj" for name in "qkv"]),
        attention_out=_joined(read, [f"{prefix}self_attn.o_proj"]),
        mlp_norm=required(read, f"{prefix}post_attention_layernorm.weight"),
        gate_up=_joined(read, [f"{prefix}mlp.gate_proj", f"{prefix}mlp.up_proj"]),
        down=_joined(read, [f"{prefix}mlp.down_proj"]),
    )


def read_weights(folder: Path, architecture: Architecture, dtype: torch.dtype, device: str = "cpu") -> Weights:
    """Read every tensor of a model.

    Raises:
        ModelNotFoundError: The folder has no weights.
        ModelDamagedError: A tensor is missing.
    """
    read = open_tensors(folder, dtype, device)
    return Weights(
        embeddings=required(read, "model.embed_tokens.weight"),
        layers=tuple(read_layer(read, index) for index in range(architecture.layers)),
        final_norm=required(read, "model.norm.weight"),
        head=read_head(read, architecture),
    )


def read_head(read: Read, architecture: Architecture) -> torch.Tensor:
    """Read the matrix from hidden states to logits; with tied embeddings it is the embeddings' matrix."""
    head = None if architecture.tied_head else read("lm_head.weight")
    return required(read, "model.embed_tokens.weight") if head is None else head


def required(read: Read, name: str) -> torch.Tensor:
    """Read a tensor that must exist.

    Raises:
        ModelDamagedError: The tensor is missing.
    """
    tensor = read(name)
    if tensor is None:
        raise ModelDamagedError(f"The model's files lack the tensor {name}. Convert or download the model again.")
    return tensor


def _joined(read: Read, names: list[str]) -> Linear:
    """Join several projections of one input; where only some have a bias, the others' is zero."""
    weights = [required(read, f"{name}.weight") for name in names]
    biases = [read(f"{name}.bias") for name in names]
    if all(bias is None for bias in biases):
        return Linear(torch.cat(weights), None)
    filled = [
        weight.new_zeros(len(weight)) if bias is None else bias for weight, bias in zip(weights, biases, strict=True)
    ]
    return Linear(torch.cat(weights), torch.cat(filled))
