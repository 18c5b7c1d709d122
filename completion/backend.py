"""The names of the ways to compute a model; importing them costs nothing."""

from __future__ import annotations

from typing import Literal, get_args

Backend = Literal["auto", "int8", "bf16", "fp32", "transformers"]
"""How weights are kept and computed; "auto" is the fastest that the machine and the model's family allow."""

BACKENDS: tuple[Backend, ...] = get_args(Backend)
