"""Compiled CPU kernels: numba for the control flow, LLVM vector instructions for the inner loops."""
