"""Compiled CPU kernels: numba for control flow, LLVM vector instructions for inner loops."""

from __future__ import annotations

import hashlib
from pathlib import Path


def kernel_sources() -> str:
    """Return a digest of this package's source files and the instruction sets, which identifies compiled code."""
    from completion.model.int8.kernels.processor import FEATURES  # noqa: PLC0415  (which asks the processor)

    digest = hashlib.sha256(repr(sorted(FEATURES)).encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
