"""Limits every engine of the benchmark to instruction sets that other processors have, to measure as if on one."""

from __future__ import annotations

import os
import subprocess
import sys

_LEVEL_3 = "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+movbe,+lzcnt,+bmi,+bmi2,+avx,+f16c,+xsave"
"""What every processor with AVX2 and FMA has, too, in LLVM's names (the level x86-64-v3 of the psABI)."""
_LIMITS = {
    "avx2,fma": {
        "NUMBA_CPU_NAME": "x86-64",
        "NUMBA_CPU_FEATURES": f"{_LEVEL_3},+avx2,+fma",
        "OPENBLAS_CORETYPE": "Haswell",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
    }
}
FEATURES = tuple(_LIMITS)
"""Values of `--features`."""
_LLAMA_SETS = {"avx2,fma": {"SSE3", "SSSE3", "AVX", "AVX2", "F16C", "FMA", "BMI2"}}
"""Instruction sets that a limited llama.cpp may be built with, in its own names."""
_LLAMA_PARTS = {"LLAMAFILE", "OPENMP", "REPACK", "ACCELERATE", "KLEIDIAI"}
"""Parts of llama.cpp that its list of instruction sets names, too."""


def limited(features: str) -> bool:
    """Return whether this process runs within a limit."""
    return _LIMITS[features].items() <= os.environ.items()


def run_limited(features: str) -> int:
    """Run this process's command again within a limit, because numba and oneDNN read theirs when they load.

    Returns:
        The exit status.
    """
    command = [sys.executable, *sys.orig_argv[1:]]
    return subprocess.run(command, env={**os.environ, **_LIMITS[features]}, check=False).returncode


def check_llama(features: str) -> None:
    """Check that llama.cpp was built for nothing beyond a limit. It has no such limit when it runs.

    Raises:
        SystemExit: It was built for more.
    """
    import llama_cpp

    printed = llama_cpp.llama_print_system_info().decode().partition(":")[2].replace(" ", "")
    built = {part.removesuffix("=1") for part in printed.split("|") if part.endswith("=1")}
    beyond = sorted(built - _LLAMA_SETS[features] - _LLAMA_PARTS)
    if beyond:
        raise SystemExit(
            f"llama.cpp was built for {', '.join(beyond)}, too. Build it for these instruction sets only: "
            'CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON" '
            "pip install --force-reinstall --no-deps --no-cache-dir --no-binary llama-cpp-python llama-cpp-python"
        )
