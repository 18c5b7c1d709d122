"""Compares the shapes of a model's tensors with its config: kernels read as far as the config says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from completion.errors import ModelDamagedError
from completion.model.architecture import Architecture
from completion.model.families import layer_names
from completion.model.store.converted_models import read_record
from completion.model.store.gguf_source import GgufTensors
from completion.model.weights import StoredTensors, Tensors

Shape = tuple[int, ...]


def checked_tensors(folder: Path, architecture: Architecture) -> Tensors:
    """Return a model's tensors, from its safetensors files or the GGUF file that it was converted from.

    They have the shapes that its config implies.

    Raises:
        ModelNotFoundError: The folder has no weights.
        ModelDamagedError: A file is damaged, or its tensors are not those of the config.
        UnsupportedModelError: A tensor has a format that is not read.
    """
    is_elsewhere = read_record(folder) is not None and not any(folder.glob("*.safetensors"))
    tensors = GgufTensors(folder) if is_elsewhere else StoredTensors(folder)
    check_shapes(tensors.shapes, architecture, folder)
    return tensors


def check_shapes(found: Mapping[str, Shape], architecture: Architecture, where: Path) -> None:
    """Compare the shapes of all tensors, by name, with those that a config implies. Errors say `where` they are.

    Raises:
        ModelDamagedError: A matrix or norm is missing, a shape differs, or there are more layers.
    """
    for name, shape in _implied(architecture):
        weight, bias = found.get(f"{name}.weight"), found.get(f"{name}.bias")
        if weight is None and name != "lm_head":  # which is the matrix of the embeddings then
            raise ModelDamagedError(f"{where} lacks the tensor {name}.weight. Convert or download the model again.")
        for tensor, stored, implied in (("weight", weight, shape), ("bias", bias, shape[:1])):
            if stored is not None and stored != implied:
                raise ModelDamagedError(
                    f"The tensor {name}.{tensor} in {where} has the shape {stored}, but config.json implies {implied}. "
                    "One of them is damaged or of another model: convert or download the model again."
                )
    surplus = layer_names(architecture.family, architecture.layers)["attention_norm"]
    if f"{surplus}.weight" in found:
        raise ModelDamagedError(
            f"{where} has the tensor {surplus}.weight, but config.json says that there are {architecture.layers} "
            "layers. One of them is damaged or of another model: convert or download the model again."
        )


def part_shapes(architecture: Architecture) -> dict[str, Shape]:
    """Return the shape of the weight of each part of a layer (`families`): # [out, in] or [width]."""
    hidden, intermediate = architecture.hidden_size, architecture.intermediate_size
    queries, keys = architecture.heads * architecture.head_dim, architecture.kv_heads * architecture.head_dim
    names = layer_names(architecture.family, 0)
    holds_gate = architecture.gated and "gate" not in names
    return dict.fromkeys(names, (hidden,)) | {
        "query": (queries, hidden),
        "key": (keys, hidden),
        "value": (keys, hidden),
        "query_norm": (architecture.head_dim,),
        "key_norm": (architecture.head_dim,),
        "attention_out": (hidden, queries),
        "gate": (intermediate, hidden),
        "up": (2 * intermediate if holds_gate else intermediate, hidden),
        "down": (hidden, intermediate),
    }


def _implied(architecture: Architecture) -> Iterator[tuple[str, Shape]]:
    """Yield each matrix and norm with the shape of its weight."""
    hidden, shapes = architecture.hidden_size, part_shapes(architecture)
    yield "model.embed_tokens", (architecture.vocabulary_size, hidden)
    yield "lm_head", (architecture.vocabulary_size, hidden)
    yield "model.norm", (hidden,)
    for index in range(architecture.layers):
        for part, name in layer_names(architecture.family, index).items():
            yield name, shapes[part]
