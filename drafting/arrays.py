"""Array types that drafters, the model and the cache exchange, and arrays with memory of their own."""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]


def own_zeros(shape: tuple[int, ...], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros whose memory is taken as they are first used, and returned with the array."""
    return np.frombuffer(mmap.mmap(-1, math.prod(shape) * np.dtype(kind).itemsize), kind).reshape(shape)
