"""Where a packed model's blocks come from: its GGUF file, as they are, or its float matrices, which are rounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from completion.errors import UnsupportedModelError
from completion.model.architecture import Architecture
from completion.model.families import layer_names
from completion.model.int8.block_quantiser import quantised
from completion.model.int8.gguf_blocks import READERS, Blocks, Strips, laid_out
from completion.model.int8.int8_panels import FloatMatrices
from completion.model.int8.kernels.block_kinds import KIND_NUMBERS, KINDS, STRIP
from completion.model.int8.kernels.sizes import CHANNELS
from completion.model.int8.sections import Section, Sections
from completion.model.int8.worker_threads import usable_threads
from completion.model.store.gguf_file import GgufFile
from completion.model.store.tensor_shapes import check_shapes
from completion.model.weights import Bits, Tensors
from drafting.arrays import FloatArray

_CHUNK_ROWS = 64 * STRIP  # rows that are repacked at a time, in memory that the processor's caches hold


class GgufBlocks:
    """The blocks of a GGUF file.

    Raises:
        ModelDamagedError: The file is damaged, or of another model than the config.
    """

    def __init__(self, paths: Sequence[Path], architecture: Architecture) -> None:
        self.layers_at_once = usable_threads()
        self._path, self._tensors = paths[0], {tensor.name: tensor for tensor in GgufFile(*paths).tensors()}
        check_shapes({name: tensor.shape for name, tensor in self._tensors.items()}, architecture, self._path)

    def matrix(self, name: str, stored: Sequence[str], scale: float, *, paired: bool) -> Sections:
        """See `MatrixSource`."""
        return _sections(name, [strip for each in stored for strip in self._strips(each)], scale, paired=paired)

    def _strips(self, name: str) -> Strips:
        tensor = self._tensors[f"{name}.weight"]
        kind = tensor.blocks.kind.name
        if not tensor.has_kernel:
            raise UnsupportedModelError(
                f"{self._path} has the tensor {tensor.name} as {kind}; {', '.join(KIND_NUMBERS)} are multiplied. "
                "Use the backend int8."
            )
        return _laid_out(tensor.rows(), KIND_NUMBERS[kind], READERS[kind])

    def vector(self, name: str) -> FloatArray | None:
        """See `MatrixSource`."""
        tensor = self._tensors.get(name)
        return None if tensor is None else tensor.vector()

    def embeddings(self) -> Iterator[Bits]:
        """See `MatrixSource`."""
        return self._tensors["model.embed_tokens.weight"].bfloat16_chunks()


class RoundedBlocks(FloatMatrices):
    """The matrices of safetensors files, rounded to blocks of the kinds that llama.cpp's Q4_K_M has.

    These are 4 bits a weight; 6 where rounding costs most: in the head, and in values and down matrices of the first
    and last layers and of every third one between. Widths that are no multiple of 256 have 5 bits and 8.

    The importance of a matrix, by its name, is the mean square of its inputs; see `calibration`.  # [columns]
    """

    def __init__(self, tensors: Tensors, architecture: Architecture, importance: Mapping[str, FloatArray]) -> None:
        super().__init__(tensors, architecture)
        self.layers_at_once, self._importance = usable_threads(), importance
        self._fine = {"model.embed_tokens", "lm_head"}
        for index in filter(lambda layer: _is_delicate(layer, architecture.layers), range(architecture.layers)):
            names = layer_names(architecture.family, index)
            self._fine |= {names["value"], names["down"]}

    def matrix(self, name: str, stored: Sequence[str], scale: float, *, paired: bool) -> Sections:
        """See `MatrixSource`."""
        return _sections(name, [strip for each in stored for strip in self._strips(each)], scale, paired=paired)

    def _strips(self, name: str) -> Strips:
        stored = self.stored(name)
        width = stored.values.shape[1]
        kinds = ("Q6_K", "Q4_K") if width % 256 == 0 else ("Q8_0", "Q5_0")
        number = KIND_NUMBERS[kinds[0 if name in self._fine else 1]]

        def rounded(rows: Section) -> Blocks:
            return quantised(replace(stored, values=rows).floats(), self._importance[name], KINDS[number])

        return _laid_out(stored.values, number, rounded)


def _sections(name: str, strips: Strips, scale: float, *, paired: bool) -> Sections:
    """Yield "NAME.blocks", "NAME.strips" [strips, 2] (offset, kind), and "NAME.scales" where results are scaled."""
    if paired:
        gates, ups = strips[: len(strips) // 2], strips[len(strips) // 2 :]
        strips = [strip for n in range(0, len(ups), 2) for strip in gates[n : n + 2] + ups[n : n + 2]]
    strips = strips + [(kind, 0 * strip) for kind, strip in strips[: -len(strips) % (CHANNELS // STRIP)]]
    starts = np.cumsum([0, *(len(strip) for _, strip in strips[:-1])])
    yield f"{name}.blocks", np.concatenate([strip for _, strip in strips])
    yield f"{name}.strips", np.stack([starts, [kind for kind, _ in strips]], axis=1).astype(np.int64)
    if scale != 1.0:
        yield f"{name}.scales", np.full(STRIP * len(strips), scale, np.float32)


def _laid_out(rows: Section, number: int, blocks_of: Callable[[Section], Blocks]) -> Strips:
    """Return the strips of rows in blocks of a kind, made in several threads; `blocks_of` makes blocks of some rows."""

    def strips(start: int) -> Strips:
        chunk = np.array(rows[start : start + _CHUNK_ROWS])
        whole = np.pad(chunk, ((0, -len(chunk) % STRIP), (0, 0)))
        return [(number, strip.ravel()) for strip in laid_out(blocks_of(whole), KINDS[number])]

    with ThreadPoolExecutor(usable_threads()) as pool:
        return [strip for part in pool.map(strips, range(0, len(rows), _CHUNK_ROWS)) for strip in part]


def _is_delicate(layer: int, layers: int) -> bool:
    """Return whether llama.cpp gives a layer's value and down matrices more bits."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2
