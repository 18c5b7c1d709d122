"""Kernels of GPUs, in Triton."""
