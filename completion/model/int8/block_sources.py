"""Where a packed model's blocks come from: its GGUF file, as they are, or its float matrices, which are rounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from completion.errors import UnsupportedModelError
from completion.model.architecture import Architecture
from completion.model.families import family_of, layer_names
from completion.model.int8.block_quantiser import quantised
from completion.model.int8.gguf_blocks import Strips, laid_out, repack
from completion.model.int8.kernels.block_kinds import KIND_NUMBERS, KINDS, STRIP
from completion.model.store.gguf_file import GgufFile
from completion.model.store.tensor_shapes import check_shapes
from completion.model.weights import Bits, Tensors, head_name
from completion.model.worker_threads import usable_threads
from drafting.arrays import FloatArray

_CHUNK_ROWS = 64 * STRIP  # rows that are repacked at a time, in memory that the processor's caches hold


class GgufBlocks:
    """The blocks of a GGUF file.

    Raises:
        ModelDamagedError: The file is damaged, or of another model than the config.
    """

    def __init__(self, paths: Sequence[Path], architecture: Architecture) -> None:
        self._path, self._tensors = paths[0], {tensor.name: tensor for tensor in GgufFile(*paths).tensors()}
        check_shapes({name: tensor.shape for name, tensor in self._tensors.items()}, architecture, self._path)

    def strips(self, name: str) -> Strips:
        """See `BlockSource`."""
        tensor = self._tensors[f"{name}.weight"]
        kind = tensor.blocks.kind.name
        if not tensor.has_kernel:
            raise UnsupportedModelError(
                f"{self._path} has the tensor {tensor.name} as {kind}; {', '.join(KIND_NUMBERS)} are multiplied. "
                "Use the backend int8."
            )
        number, rows = KIND_NUMBERS[kind], tensor.rows()

        def repacked(start: int) -> Strips:
            chunk = np.array(rows[start : start + _CHUNK_ROWS])
            whole = np.pad(chunk, ((0, -len(chunk) % STRIP), (0, 0)))
            return [(number, strip.ravel()) for strip in repack(whole, KINDS[number])]

        return _in_chunks(repacked, len(rows))

    def vector(self, name: str) -> FloatArray | None:
        """See `BlockSource`."""
        tensor = self._tensors.get(name)
        return None if tensor is None else tensor.vector()

    def embeddings(self) -> Iterator[Bits]:
        """See `BlockSource`."""
        return self._tensors["model.embed_tokens.weight"].bfloat16_chunks()


class RoundedBlocks:
    """The matrices of safetensors files, rounded to blocks of the kinds that llama.cpp's Q4_K_M has.

    These are 4 bits a weight; 6 where rounding costs most: in the head, and in values and down matrices of the first
    and last layers and of every third one between. Widths that are no multiple of 256 have 5 bits and 8.

    Args:
        tensors: The tensors.
        architecture: The model's sizes.
        importance: Mean square of the inputs of each matrix, by its name; see `calibration`.  # [columns] each
    """

    def __init__(self, tensors: Tensors, architecture: Architecture, importance: Mapping[str, FloatArray]) -> None:
        self._tensors, self._importance = tensors, importance
        self._norm_offset = np.float32(family_of(architecture.family).norm_offset)
        self._head = head_name(tensors, tied=architecture.tied_head).removesuffix(".weight")
        self._fine = {self._head}
        for index in filter(lambda layer: _is_delicate(layer, architecture.layers), range(architecture.layers)):
            names = layer_names(architecture.family, index)
            self._fine |= {names["value"], names["down"]}

    def strips(self, name: str) -> Strips:
        """See `BlockSource`."""
        name = self._head if name == "lm_head" else name
        stored = self._tensors[f"{name}.weight"]
        width = stored.values.shape[1]
        kinds = ("Q6_K", "Q4_K") if width % 256 == 0 else ("Q8_0", "Q5_0")
        number = KIND_NUMBERS[kinds[0 if name in self._fine else 1]]

        def rounded(start: int) -> Strips:
            chunk = replace(stored, values=stored.values[start : start + _CHUNK_ROWS]).floats()
            whole = np.pad(chunk, ((0, -len(chunk) % STRIP), (0, 0)))
            blocks = quantised(whole, self._importance[name], KINDS[number])
            return [(number, strip.ravel()) for strip in laid_out(blocks, KINDS[number])]

        return _in_chunks(rounded, len(stored.values))

    def vector(self, name: str) -> FloatArray | None:
        """See `BlockSource`."""
        if (stored := self._tensors.get(name)) is None:
            return None
        is_norm = name.endswith("norm.weight")
        return stored.floats() + self._norm_offset if is_norm else stored.floats()

    def embeddings(self) -> Iterator[Bits]:
        """See `BlockSource`."""
        yield self._tensors["model.embed_tokens.weight"].bfloats()


def _in_chunks(strips: Callable[[int], Strips], rows: int) -> Strips:
    """Return the strips of all rows; `strips` makes those from a row on, in several threads."""
    with ThreadPoolExecutor(usable_threads()) as pool:
        return [strip for part in pool.map(strips, range(0, rows, _CHUNK_ROWS)) for strip in part]


def _is_delicate(layer: int, layers: int) -> bool:
    """Return whether llama.cpp gives a layer's value and down matrices more bits."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2
