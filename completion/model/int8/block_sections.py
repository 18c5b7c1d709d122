"""Sections of packed weights with the blocks of a model's GGUF file as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import torch

from completion.errors import UnsupportedModelError
from completion.model.architecture import Architecture
from completion.model.int8.gguf_blocks import repack
from completion.model.int8.kernels.block_kinds import KIND_NUMBERS, KINDS, STRIP
from completion.model.int8.kernels.int8_product import CHANNELS
from completion.model.store.converted_models import GGUF_NAME
from completion.model.store.gguf_conversion import GgufFile, Tensor
from completion.model.weights import open_tensors, required

_CHUNK_ROWS = 256 * STRIP  # rows that are repacked at a time
_PANEL_STRIPS = CHANNELS // STRIP
Section = npt.NDArray[Any]
Strips = list[tuple[int, Section]]
"""Kind and bytes of each strip of a matrix."""


def block_sections(folder: Path, architecture: Architecture) -> Iterator[tuple[str, Section]]:
    """Yield every section; a matrix has "NAME.blocks", the strips "NAME.strips" [strips, 2] (offset, kind), a bias.

    Raises:
        UnsupportedModelError: The model does not come from a GGUF file whose blocks all have a kernel.
    """
    if not (folder / GGUF_NAME).is_file():
        kinds = ", ".join(KIND_NUMBERS)
        raise UnsupportedModelError(f"{folder.name} is not from a GGUF file with {kinds} only. Use the backend int8.")
    tensors = {tensor.name: tensor for tensor in GgufFile(folder / GGUF_NAME).tensors()}

    def floats(name: str, size: int) -> Section:
        found = tensors.get(name)
        source = None if found is None else found.source
        return np.zeros(size, np.float32) if source is None else gguf.dequantize(source.data, source.tensor_type)

    def strips(name: str) -> Strips:
        return list(_strips(tensors[f"{name}.weight"]))

    def matrix(name: str, parts: Strips, bias: list[Section]) -> Iterator[tuple[str, Section]]:
        parts += [(kind, 0 * strip) for kind, strip in parts[: -len(parts) % _PANEL_STRIPS]]
        sizes = [len(strip) for _, strip in parts]
        starts = np.cumsum([0, *sizes[:-1]])
        yield f"{name}.blocks", np.concatenate([strip for _, strip in parts])
        yield f"{name}.strips", np.stack([starts, [kind for kind, _ in parts]], axis=1).astype(np.int64)
        yield f"{name}.bias", np.concatenate([*bias, np.zeros(STRIP * len(parts), np.float32)])[: STRIP * len(parts)]

    heads, hidden = architecture.heads * architecture.head_dim, architecture.hidden_size
    for index in range(architecture.layers):
        layer = f"model.layers.{index}."
        attention = [f"{layer}self_attn.{name}_proj" for name in "qkv"]
        widths = [heads, *[architecture.kv_heads * architecture.head_dim] * 2]
        biases = [floats(f"{name}.bias", width) for name, width in zip(attention, widths, strict=True)]
        gates, ups = strips(f"{layer}mlp.gate_proj"), strips(f"{layer}mlp.up_proj")
        pairs = [gates[n : n + 2] + ups[n : n + 2] for n in range(0, len(gates), 2)]
        yield f"{index}.norm_1", floats(f"{layer}input_layernorm.weight", hidden)
        yield from matrix(f"{index}.qkv", [strip for name in attention for strip in strips(name)], biases)
        yield from matrix(f"{index}.attention_out", strips(f"{layer}self_attn.o_proj"), [])
        yield f"{index}.norm_2", floats(f"{layer}post_attention_layernorm.weight", hidden)
        yield from matrix(f"{index}.gate_up", [strip for four in pairs for strip in four], [])
        yield from matrix(f"{index}.down", strips(f"{layer}mlp.down_proj"), [])
    yield "final.norm_1", floats("model.norm.weight", hidden)
    yield from matrix("final.qkv", strips("model.embed_tokens" if architecture.tied_head else "lm_head"), [])
    embeddings = required(open_tensors(folder, torch.bfloat16), "model.embed_tokens.weight")
    yield "embeddings", embeddings.view(torch.uint16).numpy()


def _strips(tensor: Tensor) -> Iterator[tuple[int, Section]]:
    """Yield a matrix's strips; rows are padded with zeros to a whole number of strips."""
    number = KIND_NUMBERS[tensor.source.tensor_type.name]
    rows = tensor.source.data if tensor.row_order is None else tensor.source.data[tensor.row_order]
    for start in range(0, len(rows), _CHUNK_ROWS):
        chunk = np.array(rows[start : start + _CHUNK_ROWS])
        whole = np.pad(chunk, ((0, -len(chunk) % STRIP), (0, 0)))
        for strip in repack(whole, KINDS[number]):
            yield number, strip.ravel()
