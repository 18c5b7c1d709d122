"""Finds the GPU, and chooses formats of weights and cache in which a model fits in a share of its memory."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from completion.backend import Backend
from completion.model.architecture import Architecture

WORKING_BYTES = 768 << 20
"""Memory for everything but weights and cache: torch's context, captured graphs, scores and logits."""
CACHE_SLOTS = 8192
"""Slots of all caches together: a session of 4,096 while it grows, and others."""
_NO_DEVICE = 100
"""CUDA_ERROR_NO_DEVICE of CUDA's driver: there is no GPU, or CUDA_VISIBLE_DEVICES hides it."""
WeightFormat = Literal["plain", "int8", "q4"]
"""Format of a torch decoder's matrices. In "q4" the embeddings and the head, which lose most, have 8 bits."""
_WEIGHT_BITS: Final[Mapping[WeightFormat, int]] = {"plain": 16, "int8": 8, "q4": 5}
"""Bits of a weight on a GPU; a group of 32 in 4 bits has a scale and a zero of 16 bits each."""


FORMATS: Final[Mapping[Backend, Sequence[tuple[WeightFormat, bool]]]] = {
    "auto": (("plain", False), ("int8", False), ("q4", False), ("q4", True)),
    "bf16": (("plain", False),),
    "int8": (("int8", False),),
    "q4": (("q4", False), ("q4", True)),
}
"""Weights, and whether the cache has 8 bits: what each backend may have on a GPU, the most exact first."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that torch may be able to use.

    Attributes:
        device: Its name in torch.
        name: Its name for users.
        driver: The version of its driver.
    """

    device: str
    name: str
    driver: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """How a model is stored on a GPU.

    Attributes:
        int8_cache: Whether keys and values have 8 bits instead of 16.
        memory_share: Share of the GPU's memory that it may take.
    """

    weights: WeightFormat
    int8_cache: bool
    memory_share: float


def find_gpu() -> Gpu | None:
    """Return the GPU that torch would take, without loading torch."""
    if platform.system() == "Darwin":
        if platform.machine() != "arm64":
            return None
        import psutil  # noqa: PLC0415  (`benchmarks.gpu` runs without it)

        return Gpu("mps", "Apple Silicon", platform.mac_ver()[0], psutil.virtual_memory().total)
    try:
        cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None
    return gpu_of_driver(cuda)


def gpu_of_driver(cuda: Any) -> Gpu | None:  # noqa: ANN401  (a library has functions of any name)
    """Return the first GPU of CUDA's driver, which is torch's.

    NVIDIA's management library, which knows the driver's version, may list another card first. It disregards
    CUDA_VISIBLE_DEVICES, gives a divided card (MIG) its whole memory, and one that shares the processor's memory none.
    A card that CUDA's driver cannot use is returned, too: torch will say why.
    """
    import pynvml  # noqa: PLC0415  (a file of 300 kB that most commands do not need)

    device, name, size = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
    fault = (
        cuda.cuInit(0)
        or cuda.cuDeviceGet(ctypes.byref(device), 0)
        or cuda.cuDeviceGetName(name, len(name), device)
        or cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    )
    if fault == _NO_DEVICE:
        return None
    version, card = "", None if fault else (name.value.decode(), size.value)
    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        version = pynvml.nvmlSystemGetDriverVersion()
        if card is None:
            found = pynvml.nvmlDeviceGetHandleByIndex(0)
            card = pynvml.nvmlDeviceGetName(found), pynvml.nvmlDeviceGetMemoryInfo(found).total
    return None if card is None else Gpu("cuda", card[0], version, card[1])


def needed_bytes(architecture: Architecture, weights: WeightFormat, *, int8_cache: bool) -> int:
    """Return the memory that a model needs on a GPU."""
    heads, groups, width = architecture.heads, architecture.kv_heads, architecture.head_dim
    attention = 2 * (heads + groups) * width * architecture.hidden_size
    mlp = (3 if architecture.gated else 2) * architecture.intermediate_size * architecture.hidden_size
    table = architecture.vocabulary_size * architecture.hidden_size * (1 if architecture.tied_head else 2)
    matrices = architecture.layers * (attention + mlp) * _WEIGHT_BITS[weights] // 8
    tables = table * (2 if weights == "plain" else 1)
    slot = 2 * (width + 4) if int8_cache else 3 * 2 * width  # the exact cache has keys before and after rotation
    return matrices + tables + CACHE_SLOTS * architecture.layers * groups * slot + WORKING_BYTES


def plan_for(architecture: Architecture, backend: Backend, memory_bytes: int, memory_share: float) -> GpuPlan | None:
    """Return the most exact plan of a backend that fits in a share of a GPU's memory, None if none does."""
    for weights, int8_cache in FORMATS[backend]:
        if needed_bytes(architecture, weights, int8_cache=int8_cache) <= memory_share * memory_bytes:
            return GpuPlan(weights, int8_cache, memory_share)
    return None
