"""Instruction sets of the processor that kernels are compiled for. On Linux, x86 processors are known without LLVM."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from completion.model.int8.worker_threads import macos_number

ON_ARM = platform.machine().lower() in {"aarch64", "arm64"}
_HWCAPS = {"dotprod": (16, 1 << 20), "i8mm": (26, 1 << 13)}
"""Entry of Linux's auxiliary vector, AT_HWCAP or AT_HWCAP2, and the bit in it; from its auxvec.h and hwcap.h."""
_SYSCTLS = {"dotprod": "hw.optional.arm.FEAT_DotProd", "i8mm": "hw.optional.arm.FEAT_I8MM"}
"""macOS's names of the numbers that are 1 where a processor has the feature."""


_NAMES = {name: name for name in ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq")} | {
    "avx512_vnni": "avx512vnni",
    "avx_vnni": "avxvnni",
    "amx_tile": "amx-tile",
    "amx_int8": "amx-int8",
}
"""LLVM's names of the instruction sets that matter here, by Linux's names."""
_WIDE = {"avx512f", "avx512bw", "avx512vl", "avx512dq"}
_CPUINFO = Path("/proc/cpuinfo")
_AMX = {"amx-tile", "amx-int8"}
_AMX_REQUEST = (158, 0x1023, 18)
"""Linux's system call for tile registers: arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA), from its prctl.h and xstate.h."""


class WeightLayout(NamedTuple):
    """Layout of the int8 weights of panels; see `Instructions`."""

    weight_offset: int
    run: int


X86_WEIGHTS, ARM_WEIGHTS, ARM_MATRIX_WEIGHTS = WeightLayout(128, 4), WeightLayout(0, 4), WeightLayout(0, 8)


def processor_features() -> frozenset[str]:
    """Return LLVM's names of the instruction sets: this processor's, or those in NUMBA_CPU_FEATURES."""
    chosen = os.environ.get("NUMBA_CPU_FEATURES")
    if chosen is not None:
        return frozenset(name[1:] for name in chosen.split(",") if name.startswith("+"))
    flags = processor_flags()
    if flags and not ON_ARM:
        return frozenset(_NAMES[flag] for flag in flags.split() if flag in _NAMES)
    from llvmlite import binding  # noqa: PLC0415  (65 MB and a second)

    found = {name for name, present in binding.get_host_cpu_features().items() if present}
    return frozenset(found | _arm_features() if ON_ARM else found)


@cache
def processor_flags() -> str:
    """Return what Linux says that the processor can, "" on other systems."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(("flags", "Features"))), "")


def has_amx(features: frozenset[str]) -> bool:
    """Return whether an x86 processor has tile registers for int8, beside registers of sixteen numbers with VNNI."""
    return features >= _WIDE | _AMX | {"avx512vnni"}


def usable(features: frozenset[str]) -> frozenset[str]:
    """Return the features that this process may use: Linux gives a process tile registers when it asks for them."""
    if not features >= _AMX:
        return features
    given = sys.platform == "linux" and ctypes.CDLL(None).syscall(*_AMX_REQUEST) == 0
    return features if given else features - _AMX


def is_wide(features: frozenset[str]) -> bool:
    """Return whether an x86 processor has 32 registers of sixteen numbers."""
    return features >= _WIDE


def has_vnni(features: frozenset[str]) -> bool:
    """Return whether an x86 processor multiplies bytes and adds them in 32 bits with one instruction."""
    return (is_wide(features) and "avx512vnni" in features) or "avxvnni" in features


def weight_layout() -> WeightLayout:
    """Return the layout of this processor's int8 weights."""
    if ON_ARM:
        return ARM_MATRIX_WEIGHTS if "i8mm" in FEATURES else ARM_WEIGHTS
    return X86_WEIGHTS


def blocks_are_faster() -> bool:
    """Return whether completions take no longer with weights in blocks than with int8; see docs/forward-pass.md."""
    return not ON_ARM


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


FEATURES = usable(processor_features())
RUNS_INT8 = "dotprod" in FEATURES if ON_ARM else {"avx2", "fma", "f16c"} <= FEATURES
