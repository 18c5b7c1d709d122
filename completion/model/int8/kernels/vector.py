"""Vectors of sixteen numbers in numba functions: types, loads and stores by address, arithmetic, exp.

numba has no vector type, and leaves wide registers to LLVM's vectorisation of loops. Here a vector is a value like any
other: `a + b`, `fma(a, b, c)`. Each lane does exactly the written operations in order, so a result
never depends on other lanes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from completion.model.int8.kernels.sizes import LANES

BYTE, SHORT, INT, LONG, FLOAT = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)
BYTES = ir.VectorType(BYTE, 4 * LANES)
SHORTS = ir.VectorType(SHORT, LANES)

Values = list[ir.Value]
Emit = Callable[..., ir.Value]


class _VectorType(types.Type):  # type: ignore[misc]
    """numba's type of sixteen numbers."""

    def __init__(self, name: str, llvm: ir.VectorType) -> None:
        super().__init__(name=name)
        self.llvm = llvm


@register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, front: Any) -> None:  # noqa: ANN401  (numba's own objects)
        super().__init__(manager, front, front.llvm)


Floats, Ints = _VectorType("Floats16", FLOATS), _VectorType("Ints16", INTS)


def operation(result: types.Type, *arguments: types.Type) -> Callable[[Emit], Any]:
    """Return a decorator that makes a numba function of code that emits LLVM: emit(builder, *values) -> value."""

    def decorate(emit: Emit) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:  # noqa: ANN401
            emitted = emit(builder, *values)
            return context.get_dummy_value() if result is types.void else emitted

        def typing(_context: Any, *_types: Any) -> tuple[Any, Any]:  # noqa: ANN401
            return result(*arguments), generate

        names = [Parameter(f"a{n}", Parameter.POSITIONAL_OR_KEYWORD) for n in range(1 + len(arguments))]
        typing.__signature__ = Signature(names)  # type: ignore[attr-defined]  # where numba reads their number
        return intrinsic(typing)

    return decorate


def choice(emits: Sequence[Emit]) -> Emit:
    """Return code that is one of several: its first argument is the number of the one that gets the other arguments."""

    def emit(builder: ir.IRBuilder, number: ir.Value, *values: ir.Value) -> None:
        blocks = [builder.append_basic_block() for _ in emits]
        end, chosen = builder.append_basic_block(), builder.switch(number, blocks[-1])
        for index, (block, emit_one) in enumerate(zip(blocks, emits, strict=True)):
            chosen.add_case(LONG(index), block)
            builder.position_at_end(block)
            emit_one(builder, *values)
            builder.branch(end)
        builder.position_at_end(end)

    return emit


def call(builder: ir.IRBuilder, name: str, result: ir.Type, *values: ir.Value) -> ir.Value:
    """Call an LLVM intrinsic by its name."""
    signature = ir.FunctionType(result, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), values)


def pointer(builder: ir.IRBuilder, address: ir.Value, offset: int, kind: ir.Type) -> ir.Value:
    """Return a typed pointer to `address` + `offset` bytes."""
    return builder.inttoptr(builder.add(address, LONG(offset)), kind.as_pointer())


def prefetch(builder: ir.IRBuilder, address: ir.Value, size: int, places: tuple[tuple[int, int], ...]) -> None:
    """Ask for bytes that are needed soon: the processor does not see what a loop with few loads, or in no order, reads.

    Args:
        builder: Builder.
        address: Where the loop reads now.
        size: Number of bytes that it reads in a round.
        places: How many bytes ahead, and into which cache, by LLVM's numbers: 3 is the first-level one, 2 the second.
    """
    function = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT, INT, INT])
    instruction = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0")
    for ahead, cache in places:
        for offset in range(ahead, ahead + size, 64):
            builder.call(instruction, [pointer(builder, address, offset, BYTE), INT(0), INT(cache), INT(1)])


def splat(builder: ir.IRBuilder, value: ir.Value, kind: ir.VectorType) -> ir.Value:
    """Return a vector with the same number in every lane."""
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, INT(0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(INT, kind.count), [0] * kind.count))


def _define_arithmetic(function: Any, kind: types.Type, emit: Emit) -> None:  # noqa: ANN401
    @type_callable(function)
    def _type(_context: Any) -> Any:  # noqa: ANN401
        def result(left: types.Type, right: types.Type) -> types.Type | None:
            return kind if left == kind and right == kind else None

        return result

    @lower_builtin(function, kind, kind)
    def _lower(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:  # noqa: ANN401
        return emit(builder, *values)


_define_arithmetic(operator.add, Floats, lambda builder, a, b: builder.fadd(a, b))
_define_arithmetic(operator.sub, Floats, lambda builder, a, b: builder.fsub(a, b))
_define_arithmetic(operator.mul, Floats, lambda builder, a, b: builder.fmul(a, b))
_define_arithmetic(operator.truediv, Floats, lambda builder, a, b: builder.fdiv(a, b))
_define_arithmetic(operator.add, Ints, lambda builder, a, b: builder.add(a, b))
_define_arithmetic(operator.sub, Ints, lambda builder, a, b: builder.sub(a, b))

load_float = operation(types.float32, types.int64)(lambda b, at: b.load(pointer(b, at, 0, FLOAT), align=4))
store_float = operation(types.void, types.int64, types.float32)(
    lambda b, at, value: b.store(value, pointer(b, at, 0, FLOAT), align=4)
)
load_int = operation(types.int32, types.int64)(lambda b, at: b.load(pointer(b, at, 0, INT), align=4))
store_int = operation(types.void, types.int64, types.int32)(
    lambda b, at, value: b.store(value, pointer(b, at, 0, INT), align=4)
)
load_long = operation(types.int64, types.int64)(lambda b, at: b.load(pointer(b, at, 0, LONG), align=8))
load_floats = operation(Floats, types.int64)(lambda b, at: b.load(pointer(b, at, 0, FLOATS), align=4))
store_floats = operation(types.void, types.int64, Floats)(
    lambda b, at, value: b.store(value, pointer(b, at, 0, FLOATS), align=4)
)
load_ints = operation(Ints, types.int64)(lambda b, at: b.load(pointer(b, at, 0, INTS), align=4))
store_ints = operation(types.void, types.int64, Ints)(
    lambda b, at, value: b.store(value, pointer(b, at, 0, INTS), align=4)
)
bits_of = operation(types.int32, types.float32)(lambda b, value: b.bitcast(value, INT))
float_of = operation(types.float32, types.int32)(lambda b, bits: b.bitcast(bits, FLOAT))
floats = operation(Floats, types.float32)(lambda b, value: splat(b, value, FLOATS))
ints = operation(Ints, types.int32)(lambda b, value: splat(b, value, INTS))
nearest_ints = operation(Ints, Floats)(lambda b, value: b.fptosi(call(b, "llvm.rint.v16f32", FLOATS, value), INTS))
rounded = operation(Floats, Floats)(lambda b, value: call(b, "llvm.rint.v16f32", FLOATS, value))
absolute = operation(Floats, Floats)(lambda b, value: call(b, "llvm.fabs.v16f32", FLOATS, value))
fma = operation(Floats, Floats, Floats, Floats)(lambda b, x, y, z: call(b, "llvm.fma.v16f32", FLOATS, x, y, z))
larger = operation(Floats, Floats, Floats)(lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y))
power_of_two = operation(Floats, Ints)(  # 2ⁿ by its exponent bits, −126 ≤ n ≤ 127; −127 gives 0
    lambda b, n: b.bitcast(b.shl(b.add(n, INTS([127] * LANES)), INTS([23] * LANES)), FLOATS)
)
store_bytes = operation(types.void, types.int64, Ints)(  # the low byte of each lane
    lambda b, at, value: b.store(
        b.trunc(value, ir.VectorType(BYTE, LANES)), pointer(b, at, 0, ir.VectorType(BYTE, LANES)), align=1
    )
)

load_byte_floats = operation(Floats, types.int64)(  # sixteen int8 as numbers
    lambda b, at: b.sitofp(b.load(pointer(b, at, 0, ir.VectorType(BYTE, LANES)), align=1), FLOATS)
)


def _round_to_bfloat(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """Return the bits of the nearest bfloat16, ties to even, in the low half of each lane."""
    bits = b.bitcast(value, INTS)
    odd = b.and_(b.lshr(bits, INTS([16] * LANES)), INTS([1] * LANES))
    return b.lshr(b.add(b.add(bits, INTS([0x7FFF] * LANES)), odd), INTS([16] * LANES))


def bfloats(b: ir.IRBuilder, address: ir.Value) -> ir.Value:
    """Load sixteen neighbouring bfloat16."""
    bits = b.zext(b.load(pointer(b, address, 0, SHORTS), align=2), INTS)
    return b.bitcast(b.shl(bits, INTS([16] * LANES)), FLOATS)


load_bfloats = operation(Floats, types.int64)(bfloats)
store_bfloats = operation(types.void, types.int64, Floats)(
    lambda b, at, value: b.store(b.trunc(_round_to_bfloat(b, value), SHORTS), pointer(b, at, 0, SHORTS), align=2)
)


def _paired(b: ir.IRBuilder, low: ir.Value, high: ir.Value) -> ir.Value:
    return b.or_(_round_to_bfloat(b, low), b.shl(_round_to_bfloat(b, high), INTS([16] * LANES)))


store_bfloat_pairs = operation(types.void, types.int64, Floats, Floats)(  # each a word: its low and its high half
    lambda b, at, low, high: b.store(_paired(b, low, high), pointer(b, at, 0, INTS), align=4)
)


def _fold(builder: ir.IRBuilder, value: ir.Value, combine: Emit) -> ir.Value:
    """Combine halves of a vector until one lane is left, in a fixed order."""
    width = LANES
    while width > 1:
        width //= 2
        low, high = (
            builder.shuffle_vector(
                value, value, ir.Constant(ir.VectorType(INT, width), list(range(start, start + width)))
            )
            for start in (0, width)
        )
        value = combine(builder, low, high)
    return builder.extract_element(value, INT(0))


sum_of = operation(types.float32, Floats)(lambda b, value: _fold(b, value, lambda c, x, y: c.fadd(x, y)))
sum_of_ints = operation(types.int32, Ints)(lambda b, value: _fold(b, value, lambda c, x, y: c.add(x, y)))
largest_of = operation(types.float32, Floats)(
    lambda b, value: _fold(b, value, lambda c, x, y: c.select(c.fcmp_ordered(">", x, y), x, y))
)

_LOG2_E = np.float32(1.4426950408889634)
# 2^f on −½ ≤ f ≤ ½ by its Taylor series in f · ln 2; the relative error is below 2e-7.
_C1, _C2, _C3 = np.float32(0.6931471805599453), np.float32(0.2402265069591007), np.float32(0.05550410866482158)
_C4, _C5, _C6 = np.float32(0.009618129107628477), np.float32(0.0013333558146428443), np.float32(0.00015403530393381608)


@njit(inline="always")
def exp(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  (a vector type has no Python annotation)
    """Return e^x, 0 for x below −87.7, with x clamped to 88: 2ⁿ · 2^f with n the nearest integer to x · log₂ e."""
    scaled = larger(x * floats(_LOG2_E), floats(np.float32(-127.0)))
    scaled = floats(np.float32(0.0)) - larger(floats(np.float32(0.0)) - scaled, floats(np.float32(-127.0)))
    whole = rounded(scaled)
    f = scaled - whole
    series = fma(floats(_C6), f, floats(_C5))
    series = fma(series, f, floats(_C4))
    series = fma(series, f, floats(_C3))
    series = fma(series, f, floats(_C2))
    series = fma(series, f, floats(_C1))
    series = fma(series, f, floats(np.float32(1.0)))
    return series * power_of_two(nearest_ints(whole))
