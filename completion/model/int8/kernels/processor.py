"""What the processor that kernels are compiled for can do."""

from __future__ import annotations

from llvmlite import binding
from numba.core import config


def processor_features() -> frozenset[str]:
    """LLVM's names of the instruction sets, of this processor or of the one that NUMBA_CPU_FEATURES describes."""
    if config.CPU_FEATURES is not None:
        return frozenset(name[1:] for name in config.CPU_FEATURES.split(",") if name.startswith("+"))
    return frozenset(name for name, present in binding.get_host_cpu_features().items() if present)


FEATURES = processor_features()
RUNS_INT8 = {"avx2", "fma"} <= FEATURES
WIDE_VNNI = {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vnni"} <= FEATURES
NARROW_VNNI = "avxvnni" in FEATURES
WIDE_REGISTERS = {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= FEATURES
"""Thirty-two registers of sixteen numbers; sixteen of eight otherwise."""
