"""Assembly that LLVM makes of the kernels for Arm processors, on any machine."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import NamedTuple

from llvmlite import binding, ir

from completion.model.int8.kernels.block_kinds import KINDS, BlockKind
from completion.model.int8.kernels.block_product import StripProduct
from completion.model.int8.kernels.instructions.arm import Arm, ArmWithMatrices
from completion.model.int8.kernels.int8_product import emit_tile
from completion.model.int8.kernels.vector import LONG

PROCESSORS = {"cortex-a76": Arm(), "neoverse-v1": ArmWithMatrices()}
"""A processor of each generation, by LLVM's name."""


class Loop(NamedTuple):
    """Innermost loop of products.

    Attributes:
        instructions: Number of each instruction.
        spills: Number of them that read or write the stack.
        products: Number of products of two bytes in a round.
    """

    instructions: Counter[str]
    spills: int
    products: int

    @property
    def per_product(self) -> float:
        """Instructions for each product of two bytes."""
        return sum(self.instructions.values()) / self.products


def tile_loop(processor: str, rows: int) -> Loop:
    """Return the loop of int8 panels; a round has sixteen columns of some channels."""
    described = PROCESSORS[processor]
    assembly = _assembly(partial(emit_tile, rows, described), 7, processor)
    return Loop(*_inner_loop(assembly), rows * described.tile_columns * described.tile_channels(rows))


def strip_loop(processor: str, kind: BlockKind, *, one_row: bool) -> Loop:
    """Return the loop of a strip: over 32 columns of one row, or over rows, with 32 columns of 8 channels."""
    described = PROCESSORS[processor]
    assembly = _assembly(partial(StripProduct(kind, described).emit, one_row=one_row), 6, processor)
    return Loop(*_inner_loop(assembly), 32 * (16 if one_row else 8 * described.strip_rows))


def _assembly(emit: partial[None], count: int, processor: str) -> str:
    """Compile a function of `count` int64 arguments as numba would on this processor."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = binding.Target.from_triple("aarch64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=processor, opt=3, jit=True)
    module = ir.Module()
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [LONG] * count), "kernel")
    builder = ir.IRBuilder(function.append_basic_block())
    emit(builder, *function.args)
    builder.ret_void()
    parsed = binding.parse_assembly(str(module))
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(parsed, passes)
    return machine.emit_assembly(parsed)


def _inner_loop(assembly: str) -> tuple[Counter[str], int]:
    """Return the instructions, and how many use the stack, of the first innermost loop with products of bytes."""
    lines = [line.partition("//")[0].strip() for line in assembly.splitlines()]
    labels = {line[:-1]: number for number, line in enumerate(lines) if line.endswith(":")}
    for end, line in enumerate(lines):
        jump = re.fullmatch(r"(?:b\.?\w*|cbn?z|tbn?z)\s.*?(\.L\w+)", line)
        start = labels.get(jump[1], end) if jump else end
        body = [word for word in lines[start + 1 : end + 1] if word and not word.startswith(".")]
        if any(word.startswith(("sdot", "smmla")) for word in body):
            return Counter(word.split()[0] for word in body), sum("[sp" in word for word in body)
    raise AssertionError("There is no loop with products of bytes.")


def main() -> None:
    """Print the instructions of each loop for each product of two bytes."""
    for processor in PROCESSORS:
        loops = {f"int8, {rows} rows": tile_loop(processor, rows) for rows in range(1, 5)}
        for kind in KINDS:
            loops |= {
                f"{kind.name}, {'1 row' if one else 'more rows'}": strip_loop(processor, kind, one_row=one)
                for one in (True, False)
            }
        for name, loop in loops.items():
            multiplying = loop.instructions["sdot"] + loop.instructions["smmla"]
            print(
                f"{processor:12} {name:16} {loop.per_product:.3f} instructions a product: "
                f"{sum(loop.instructions.values())} for {loop.products}, of which {multiplying} multiply"
            )


if __name__ == "__main__":
    main()
