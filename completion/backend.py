"""Names of the ways to compute a model, in a module that imports no model code."""

from __future__ import annotations

from typing import Literal, get_args

Backend = Literal["auto", "q4", "int8", "bf16", "fp32", "transformers"]
"""Format and computation of the weights; "auto" is the fastest that the machine and the model's family support."""

GPU_MEMORY_SHARE = 0.8
"""Share of a GPU's memory that the engine takes at most by default; the rest is for the desktop."""

BACKENDS: tuple[Backend, ...] = get_args(Backend)
"""All values of `Backend`."""
