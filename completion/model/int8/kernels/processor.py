"""Instruction sets of the processor that kernels are compiled for."""

from __future__ import annotations

from llvmlite import binding
from numba.core import config


def processor_features() -> frozenset[str]:
    """Return LLVM's names of the instruction sets: this processor's, or those in NUMBA_CPU_FEATURES."""
    if config.CPU_FEATURES is not None:
        return frozenset(name[1:] for name in config.CPU_FEATURES.split(",") if name.startswith("+"))
    return frozenset(name for name, present in binding.get_host_cpu_features().items() if present)


FEATURES = processor_features()
RUNS_INT8 = {"avx2", "fma", "f16c"} <= FEATURES
WIDE_VNNI = {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vnni"} <= FEATURES
NARROW_VNNI = "avxvnni" in FEATURES
BLOCKS_ARE_FASTER = not (WIDE_VNNI or NARROW_VNNI)
"""Whether weights in blocks are faster than int8 for any number of rows.

AVX2 has an instruction for products of bytes that only values below 7 bits do not overflow. VNNI multiplies both alike,
so blocks only save reading.
"""
WIDE_REGISTERS = {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= FEATURES
"""Whether there are 32 registers of sixteen numbers; otherwise there are 16 of eight."""
