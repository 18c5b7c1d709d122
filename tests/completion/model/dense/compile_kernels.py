"""Compiles the kernels for GPUs, down to machine code, and prints what they need of them. No GPU is needed.

`python -m tests.completion.model.dense.compile_kernels`
"""

from __future__ import annotations

import itertools

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from completion.model.dense.kernels.keys import turn, write
from completion.model.dense.kernels.tree_attention import MAX_PARTS, MAX_TILE, SLOTS_TILE, attend, join

SHARED_BYTES = {80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10, 120: 99 << 10}
"""Shared memory of a program by compute capability: A100; RTX 30 and A10; RTX 40 and L4; H100 and H200; RTX 50."""


def compiled(kernel, types, constants, capability):
    """Return a kernel's machine code for a GPU, with its metadata."""
    source = ASTSource(kernel, types | dict.fromkeys(constants, "constexpr"), constants)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32))


def types_of(kernel, pointers):
    """Return the type of each argument that is no constant: of a pointer what it points to, of a number int32."""
    names = [p.name for p in kernel.params if not p.is_constexpr]
    return {name: f"*{pointers[name]}" if name in pointers else "fp32" if name == "scale" else "i32" for name in names}


def report(capability, name, found):
    shared = found.metadata.shared
    assert shared <= SHARED_BYTES[capability], (capability, name, shared)
    assert found.asm["cubin"]
    print(f"sm_{capability} {name}: {shared} bytes of shared memory, {len(found.asm['cubin'])} of code", flush=True)


def main() -> None:
    places = {"positions": "i64", "limits": "i64", "tree_start": "i64", "tree_end": "i64", "distances": "i16"}
    places |= {"cosines": "fp32", "sines": "fp32", "sums": "fp32", "totals": "fp32", "largest": "fp32"}
    exact = places | dict.fromkeys(
        ("q", "keys", "key_scales", "key_biases", "key_positions", "values", "value_scales"), "bf16"
    )
    scales = dict.fromkeys(("key_scales", "key_biases", "value_scales"), "fp32")
    rounded = exact | scales | {"keys": "i8", "values": "i8", "key_positions": "i64"}
    forms = itertools.product(
        SHARED_BYTES, ((128, True, 0, False), (128, True, 0, True), (256, False, 512, False), (64, True, 512, True))
    )
    for capability, (width, is_tree, window, int8) in forms:
        constants = {"WIDTH": width, "TILE": min(MAX_TILE, 8192 // width), "SLOTS": SLOTS_TILE, "TREE": is_tree}
        constants |= {"WINDOW": window, "INT8": int8}
        found_types = rounded if int8 else exact
        found = compiled(attend, types_of(attend, found_types), constants, capability)
        report(capability, f"attend {constants}", found)
        bf16 = dict.fromkeys(("k", "v", "turned", "plain"), "bf16") | {"row_slots": "i64"}
        found = compiled(write, types_of(write, found_types | bf16), {"WIDTH": width, "INT8": int8}, capability)
        report(capability, f"write {width} {int8}", found)
    turned = places | {"plain": "bf16", "keys": "bf16", "moved": "i64", "starts": "i64"}
    for capability in SHARED_BYTES:
        joined = compiled(
            join, types_of(join, places | {"out": "bf16"}), {"WIDTH": 128, "PARTS": MAX_PARTS}, capability
        )
        report(capability, "join", joined)
        tiles = {"HALF": 64, "PAIRS": 64, "TILE": 16}
        report(capability, "turn", compiled(turn, types_of(turn, turned), tiles, capability))


if __name__ == "__main__":
    main()
