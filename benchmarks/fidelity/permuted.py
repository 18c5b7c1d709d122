"""Writes a copy of a model that computes the same function with its columns in another order.

The default model's weights come from blocks of a GGUF file, so rounding them to such blocks again would lose nothing.
In the copy, each block has columns of many of the file's blocks, as if the weights had never been rounded.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from completion.model.architecture import read_architecture
from completion.model.families import layer_names

_READS_HIDDEN = ("query", "key", "value", "gate", "up")
_WRITES_HIDDEN = ("attention_out", "down")


def write_permuted(folder: Path, target: Path) -> Path:
    """Permute the hidden channels of a Llama-like model, and each layer's intermediate ones; return the new folder.

    Args:
        folder: A model whose MLPs have a gate, with one safetensors file.
        target: Where to write the copy, which is no longer one of a GGUF file.
    """
    target.mkdir()
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(folder / name, target)
    architecture, tensors = read_architecture(folder), load_file(folder / "model.safetensors")
    rng = np.random.default_rng(0)
    hidden = torch.from_numpy(rng.permutation(architecture.hidden_size))
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        if name in tensors:
            tensors[name] = tensors[name][:, hidden]
    tensors["model.norm.weight"] = tensors["model.norm.weight"][hidden]
    for index in range(architecture.layers):
        names = layer_names(architecture.family, index)
        inner = torch.from_numpy(rng.permutation(architecture.intermediate_size))
        for part, name in names.items():
            weight = tensors[f"{name}.weight"]
            if part in {"gate", "up"}:
                weight = weight[inner]
            elif part == "down":
                weight = weight[:, inner]
            if part in _READS_HIDDEN:
                weight = weight[:, hidden]
            elif part in _WRITES_HIDDEN or weight.ndim == 1:
                weight = weight[hidden]
            tensors[f"{name}.weight"] = weight
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, target / "model.safetensors")
    return target
