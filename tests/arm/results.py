"""Results of products and models that every processor computes alike: `python -m tests.arm.results INPUTS RESULTS`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from numba import njit

from completion.memory import large_memory
from completion.model.int8.gguf_blocks import READERS, laid_out
from completion.model.int8.int8_panels import pack_matrix
from completion.model.int8.kernels import kernel_sources
from completion.model.int8.kernels.block_kinds import KIND_NUMBERS, KINDS
from completion.model.int8.kernels.instructions import INSTRUCTIONS
from completion.model.int8.kernels.instructions.amx import configure, release
from completion.model.int8.kernels.int8_product import Inputs, Matrix, Target, multiply_panel, uses_amx
from completion.model.int8.kernels.row_operations import quantise_row
from completion.model.int8.kernels.sizes import (
    ADD,
    CHANNELS,
    GATE,
    GATE_GELU,
    GELU,
    LINES,
    LOGITS,
    ROWS,
    STORE,
    group_width,
)
from completion.model.int8.packed_weights import read_packed
from completion.model.int8.packing import write_packed
from completion.model.int8.quantized import QuantizedTransformer
from completion.progress import silent
from tests.completion.model.rows import chain, rows_of, slots, tokens

EVERY_KIND = (STORE, ADD, GATE, LOGITS, GATE_GELU, GELU)
PARENTS = np.array([-1, 0, 1, 0, 3, 4, 1, -1, 7, 5, 9, 8, 2], np.int32)
"""A tree with branches, of which rows see single ancestors."""


def _compiled(sources):
    """Compile with the digest of the kernels enclosed; see `kernels.forward_pass`."""

    @njit(cache=True)
    def multiply(x, inputs, matrix, target, panels, sums):
        if not len(sources):
            return
        for row in range(len(x)):
            quantise_row(x[row].ctypes.data, row, inputs)
        by_amx = uses_amx(len(x), inputs.group_width)
        if by_amx:
            configure(0)
        for panel in range(panels):
            multiply_panel(len(x), panel, inputs, matrix, target, sums.ctypes.data)
        if by_amx:
            release(0)

    return multiply


multiply = _compiled(kernel_sources())


def product(x, weights_at, scales, bias, kind, group):
    """Return a product and what else its kind of target writes."""
    rows, width = x.shape
    quantised, factors = np.zeros(2 * rows * width, np.int8), np.zeros(rows * width, np.int64)
    out = np.ones((rows, len(bias)), np.float32)
    largest = np.zeros((rows, len(bias) // CHANNELS), np.float32)
    inputs = Inputs(quantised.ctypes.data, factors.ctypes.data, width, group)
    matrix = Matrix(weights_at, scales.ctypes.data, bias.ctypes.data)
    target = Target(kind, out.ctypes.data, out.shape[1], largest.ctypes.data, largest.shape[1])
    multiply(x, inputs, matrix, target, largest.shape[1], np.zeros(ROWS * CHANNELS, np.float32))
    return np.concatenate([out, largest], axis=1)


def products(inputs):
    """Yield the products of every matrix with 1 to 17 rows, by name."""
    for name in inputs.files:
        if name.endswith(".x"):
            continue
        x, group = inputs[f"{name.partition(' ')[0]}.x"], LINES
        if name.startswith("int8"):
            packed = pack_matrix(inputs[name])
            weights = np.frombuffer(large_memory(packed.nbytes), np.uint8)  # aligned, as packed files are
            weights[:] = packed.ravel()
            scales = np.ones(64 * len(packed), np.float32)
            group, at = group_width(x.shape[1]), weights.ctypes.data
        else:
            kind = KIND_NUMBERS[name.split()[1]]
            weights = laid_out(READERS[KINDS[kind].name](inputs[name]), KINDS[kind])
            strips = np.array([[strip.ctypes.data, kind] for strip in weights], np.int64)
            scales, at = np.ones(16 * len(strips), np.float32), strips.ctypes.data
        bias = np.linspace(-1, 1, len(scales), dtype=np.float32)
        for rows in range(1, 18):
            for target in EVERY_KIND if rows in {1, 6} else (STORE,):
                yield f"{name}, rows {rows}, target {target}", product(x[:rows], at, scales, bias, target, group)


def logits(folder, form):
    """Return the logits of a prefill, a tree, and a chain after a commit and after a move of keys."""
    with tempfile.TemporaryDirectory() as packed:
        write_packed(folder, Path(packed), form, silent)
        model = QuantizedTransformer(read_packed(Path(packed), mapped=True), 1)
        cache, found = model.new_cache(256), []
        found.append(rows_of(model.prefill(tokens(37), slots(37), cache, range(37)), 37))
        found.append(rows_of(model.score(tokens(13, 1), PARENTS, cache), 13))
        cache.commit([0, 3, 4])
        found.append(rows_of(model.score(tokens(6, 2), chain(6), cache), 6))
        cache.rearrange(slots(25, 9))
        found.append(rows_of(model.score(tokens(1, 3), chain(1), cache), 1))
    return np.concatenate(found)


def main():
    inputs, results = map(Path, sys.argv[1:])
    print(f"{type(INSTRUCTIONS).__name__}: products", flush=True)
    found = dict(products(np.load(inputs / "products.npz")))
    for folder in sorted((inputs / "models").iterdir()):
        print(f"{type(INSTRUCTIONS).__name__}: {folder.name}", flush=True)
        found[f"model {folder.name}"] = logits(folder, folder.suffix[1:])
    np.savez(results, processor=type(INSTRUCTIONS).__name__, **found)


if __name__ == "__main__":
    main()
