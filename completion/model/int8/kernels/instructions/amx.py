"""Products of int8 rows with panels of int8 weights by AMX: tile registers of 16 rows of 64 bytes.

One instruction multiplies 16 rows by 64 columns of 16 channels. The tile registers take the layout of panels as it is.
Integer sums are exact and floats are summed as by `int8_product.emit_tile`, so results have the same bits.

Source: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 1, chapter 18.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from completion.model.int8.kernels.instructions import INSTRUCTIONS
from completion.model.int8.kernels.sizes import CHANNELS, LANES
from completion.model.int8.kernels.vector import (
    BYTE,
    BYTES,
    FLOAT,
    FLOATS,
    INT,
    INTS,
    LONG,
    Emit,
    bfloats,
    call,
    operation,
    pointer,
    prefetch,
    splat,
)

AMX_ROWS = 16
"""Number of rows that are multiplied together."""
_PREFETCHES = ((4096, 2),)
"""Where weights are prefetched; 2048 and 8192 bytes ahead were alike."""
_RUN = 4
"""Number of neighbouring columns of a channel that are adjacent in a panel."""
_STRIPS = CHANNELS // LANES
_INPUTS, _WEIGHTS, _FEW_INPUTS, _FEW_WEIGHTS = range(_STRIPS, _STRIPS + 4)
"""Tile registers after those of sums: of 64 columns, and of 16 where 64 do not divide a group."""


def emit_configuration(b: ir.IRBuilder, _: ir.Value) -> None:
    """Emit the sizes of this thread's tile registers."""
    sizes = dict.fromkeys(range(_STRIPS), (AMX_ROWS, 64))
    sizes |= {_INPUTS: (AMX_ROWS, 64), _WEIGHTS: (16, 64), _FEW_INPUTS: (AMX_ROWS, 16), _FEW_WEIGHTS: (4, 64)}
    content = [1] + [0] * 63  # the palette, then the bytes of a row from 16 on, and the rows from 48 on
    for register, (rows, row_bytes) in sizes.items():
        content[16 + 2 * register], content[48 + register] = row_bytes, rows
    room = cgutils.alloca_once(b, BYTES)
    room.align = 64
    b.store(ir.Constant(BYTES, content), room)
    call(b, "llvm.x86.ldtilecfg", ir.VoidType(), room)


def emit_release(b: ir.IRBuilder, _: ir.Value) -> None:
    """Emit the end of this thread's use of tile registers, which the system then no longer saves."""
    call(b, "llvm.x86.tilerelease", ir.VoidType())


def emit_sixteen(
    b: ir.IRBuilder,
    rows: ir.Value,
    x: ir.Value,
    stride: ir.Value,
    weights: ir.Value,
    depth: ir.Value,
    factors: ir.Value,
    factors_stride: ir.Value,
    out: ir.Value,
) -> None:
    """Emit the product of 1 to 16 rows with a panel's group; see `int8_product.multiply_tile`.

    Sixteen rows are read; what follows the last one is multiplied and forgotten.
    """
    scales = b.add(weights, b.mul(depth, LONG(CHANNELS)))
    for strip in range(_STRIPS):
        _tile(b, "tilezero", strip)
    whole = b.udiv(depth, LONG(64))
    _add_columns(b, x, stride, weights, whole, 64, (_INPUTS, _WEIGHTS))
    rest = b.mul(whole, LONG(64))
    few = b.udiv(b.sub(depth, rest), LONG(16))
    x, weights = b.add(x, rest), b.add(weights, b.mul(rest, LONG(CHANNELS)))
    _add_columns(b, x, stride, weights, few, 16, (_FEW_INPUTS, _FEW_WEIGHTS))
    room = cgutils.alloca_once(b, ir.ArrayType(INTS, _STRIPS * AMX_ROWS))
    room.align = 64
    products = b.ptrtoint(room, LONG)
    for strip in range(_STRIPS):
        _tile(b, "tilestored64", strip, pointer(b, products, 64 * AMX_ROWS * strip, BYTE), LONG(64))
    widened = [bfloats(b, b.add(scales, LONG(2 * LANES * n))) for n in range(_STRIPS)]
    with cgutils.for_range(b, rows, intp=LONG) as row:
        factor = b.add(factors, b.mul(factors_stride, row.index))
        scale = splat(b, b.load(pointer(b, factor, 0, FLOAT), align=4), FLOATS)
        offset = splat(b, b.load(pointer(b, factor, 4, INT), align=4), INTS)
        sums, results = b.add(products, b.mul(row.index, LONG(64))), b.add(out, b.mul(row.index, LONG(4 * CHANNELS)))
        for n in range(_STRIPS):
            total = b.load(pointer(b, sums, 64 * AMX_ROWS * n, INTS), align=64)
            exact = b.fmul(b.sitofp(b.sub(total, offset), FLOATS), widened[n])
            result = pointer(b, results, 4 * LANES * n, FLOATS)
            b.store(call(b, "llvm.fma.v16f32", FLOATS, exact, scale, b.load(result, align=4)), result, align=4)


def _add_columns(
    b: ir.IRBuilder,
    x: ir.Value,
    stride: ir.Value,
    weights: ir.Value,
    count: ir.Value,
    columns: int,
    registers: tuple[int, int],
) -> None:
    """Emit a loop that adds the products of `count` times some columns to the sums of all strips."""
    inputs, values = registers
    with cgutils.for_range(b, count, intp=LONG) as loop:
        _tile(b, "tileloadd64", inputs, pointer(b, b.add(x, b.mul(loop.index, LONG(columns))), 0, BYTE), stride)
        at = b.add(weights, b.mul(loop.index, LONG(columns * CHANNELS)))
        prefetch(b, at, columns * CHANNELS, _PREFETCHES)
        for strip in range(_STRIPS):
            _tile(b, "tileloadd64", values, pointer(b, at, LANES * _RUN * strip, BYTE), LONG(CHANNELS * _RUN))
            _tile(b, "tdpbsud", strip, inputs, values)


def _tile(b: ir.IRBuilder, name: str, *arguments: int | ir.Value) -> None:
    """Emit an instruction on tile registers, which are given by their numbers."""
    call(b, f"llvm.x86.{name}", ir.VoidType(), *(BYTE(each) if isinstance(each, int) else each for each in arguments))


def _nothing(*_: object) -> None:
    """Emit nothing, where there is no AMX and so no call."""


def _if_amx(emit: Emit) -> Emit:
    return emit if INSTRUCTIONS.has_amx else _nothing


configure = operation(types.void, types.int64)(_if_amx(emit_configuration))
release = operation(types.void, types.int64)(_if_amx(emit_release))
multiply_sixteen = operation(types.void, *[types.int64] * 8)(_if_amx(emit_sixteen))
