"""Instruction sets of the processor that kernels are compiled for."""

from __future__ import annotations

import ctypes
import platform
import sys

from llvmlite import binding
from numba.core import config

from completion.model.worker_threads import macos_number

ON_ARM = platform.machine().lower() in {"aarch64", "arm64"}
_HWCAPS = {"dotprod": (16, 1 << 20), "i8mm": (26, 1 << 13)}
"""Entry of Linux's auxiliary vector, AT_HWCAP or AT_HWCAP2, and the bit in it; from its auxvec.h and hwcap.h."""
_SYSCTLS = {"dotprod": "hw.optional.arm.FEAT_DotProd", "i8mm": "hw.optional.arm.FEAT_I8MM"}
"""macOS's names of the numbers that are 1 where a processor has the feature."""


def processor_features() -> frozenset[str]:
    """Return LLVM's names of the instruction sets: this processor's, or those in NUMBA_CPU_FEATURES."""
    if config.CPU_FEATURES is not None:
        return frozenset(name[1:] for name in config.CPU_FEATURES.split(",") if name.startswith("+"))
    found = {name for name, present in binding.get_host_cpu_features().items() if present}
    return frozenset(found | _arm_features() if ON_ARM else found)


def _arm_features() -> set[str]:
    """Return what the system says of products of bytes: LLVM only knows them of processors that it knows by name."""
    if sys.platform == "linux":
        ask = ctypes.CDLL(None).getauxval
        ask.argtypes, ask.restype = [ctypes.c_ulong], ctypes.c_ulong
        return {name for name, (entry, bit) in _HWCAPS.items() if ask(entry) & bit}
    elif sys.platform == "darwin":
        return {name for name, key in _SYSCTLS.items() if macos_number(key)}
    else:
        return set()


FEATURES = processor_features()
RUNS_INT8 = "dotprod" in FEATURES if ON_ARM else {"avx2", "fma", "f16c"} <= FEATURES
