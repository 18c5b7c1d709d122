"""Loads our own forward pass of the families in `families`, on a processor or a GPU."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from completion.errors import ModelError, TorchMissingError, UnsupportedModelError
from completion.memory import trim_gpu
from completion.model.architecture import read_architecture
from completion.model.causal_model import CausalModel
from completion.model.gpu_memory import GpuPlan, needed_bytes
from completion.model.store.converted_models import packed_dir
from completion.model.store.disk import storage_errors
from completion.model.store.gguf_source import has_kernels, with_safetensors
from completion.progress import Progress, silent

TORCH_EXTRA = ("torch", "transformers")
"""Libraries of the extra `torch`: for GPUs, bfloat16, float32 and families that only transformers runs."""
NEEDED_PROCESSOR = "an x86 processor with AVX2 and FMA, or a 64-bit Arm with dot products (ARMv8.2)"
"""What int8 and q4 run on."""
Backend = Literal["auto", "q4", "int8", "bf16", "fp32"]


def load_transformer(
    folder: Path,
    backend: Backend = "auto",
    threads: int | None = None,
    *,
    mapped: bool = False,
    progress: Progress = silent,
) -> CausalModel:
    """Load a converted model on the processor.

    Args:
        folder: The model; see `PreparedModel`.
        backend: Format of the weights. "auto" is the fastest on this processor: q4 or int8 if it has the instructions,
            else bfloat16. "q4" has the blocks of the GGUF file that the model comes from; "auto" takes it only then,
            since other models are rounded to blocks.
        threads: Threads of a forward pass; None for one a core that this process may use.
        mapped: Whether q4 and int8 weights are mapped at first; see `QuantizedTransformer.settle`.
        progress: Called while weights are packed.

    Raises:
        UnsupportedModelError: There is no forward pass for this family or these sizes.
        TorchMissingError: The backend needs the extra `torch`, which is not installed.
        ModelError: Files are missing or damaged, or the backend does not run on this processor.
        StorageError: The packed weights cannot be written to the cache.
    """
    if backend in {"q4", "int8"} and not has_int8_instructions():
        raise ModelError(f"The {backend} backend needs {NEEDED_PROCESSOR}. Use the backend bf16.")
    if backend in {"q4", "int8"}:
        return _load_int8(folder, backend, threads, mapped=mapped, progress=progress)
    needed_by = f"The backend {backend}" if backend != "auto" else f"This processor is not {NEEDED_PROCESSOR}. It"
    if backend == "auto" and has_int8_instructions():
        try:
            return _load_int8(folder, backend, threads, mapped=mapped, progress=progress)
        except UnsupportedModelError as error:  # the int8 kernels do not support every width
            needed_by = f"{error} This model"
    require_torch(needed_by)
    import torch  # noqa: PLC0415  (two seconds and 200 MB that the int8 path saves)

    from completion.model.dense.dense_transformer import load_dense  # noqa: PLC0415

    return load_dense(
        with_safetensors(folder, progress), torch.float32 if backend == "fp32" else torch.bfloat16, threads
    )


def require_torch(user: str) -> None:
    """Check that the libraries of the extra `torch` are installed. `user`, the start of a sentence, needs them.

    Raises:
        TorchMissingError: One of them is not.
    """
    missing = [name for name in TORCH_EXTRA if find_spec(name) is None]
    if missing:
        raise TorchMissingError(
            f"{user} needs {' and '.join(missing)}, which a CPU installation of draftline does not have. "
            "Run: python -m pip install 'draftline[torch]'"
        )


def has_int8_instructions() -> bool:
    """Return whether the processor runs the int8 kernels: `NEEDED_PROCESSOR`."""
    from completion.model.int8.kernels.processor import RUNS_INT8  # noqa: PLC0415  (which asks the processor)

    return RUNS_INT8


def load_on_gpu(folder: Path, device: str, plan: GpuPlan) -> CausalModel:
    """Load a converted model on a device of torch, with graphs where the device has them.

    All memory that it will need is allocated once and freed, so that a lack of it shows now and not in a request.

    Raises:
        UnsupportedModelError: There is no forward pass for this family or these sizes.
        ModelError: Files are missing or damaged.
        RuntimeError: torch cannot use the device, or its memory is too small.
    """
    import torch  # noqa: PLC0415

    from completion.model.dense.cuda_graphs import GraphedTransformer  # noqa: PLC0415
    from completion.model.dense.dense_transformer import DenseTransformer  # noqa: PLC0415
    from completion.model.dense.kernels.choice import kernels_for  # noqa: PLC0415
    from completion.model.dense.weights import read_weights  # noqa: PLC0415

    architecture = read_architecture(folder)
    if device == "cuda":
        torch.cuda.set_per_process_memory_fraction(plan.memory_share)
    needed = needed_bytes(architecture, plan.weights, int8_cache=plan.int8_cache)
    torch.empty(needed, dtype=torch.uint8, device=device)
    trim_gpu()
    weights = read_weights(with_safetensors(folder), architecture, torch.bfloat16, device, plan.weights)
    decoder = GraphedTransformer if device == "cuda" else DenseTransformer
    kernels = kernels_for(architecture, device, int8_cache=plan.int8_cache)
    return decoder(architecture, weights, int8_cache=plan.int8_cache, kernels=kernels)


def _load_int8(folder: Path, backend: Backend, threads: int | None, *, mapped: bool, progress: Progress) -> CausalModel:
    from completion.model.int8.kernels.processor import blocks_are_faster  # noqa: PLC0415
    from completion.model.int8.packed_weights import load_packed  # noqa: PLC0415
    from completion.model.int8.quantized import QuantizedTransformer  # noqa: PLC0415
    from completion.model.int8.worker_threads import usable_threads  # noqa: PLC0415

    packed = packed_dir()
    with storage_errors(packed):
        packed.mkdir(exist_ok=True)
    prefers_blocks = backend == "auto" and blocks_are_faster()
    in_blocks = backend == "q4" or (prefers_blocks and has_kernels(folder))
    weights = load_packed(folder, packed, "q4" if in_blocks else "int8", mapped=mapped, progress=progress)
    model = QuantizedTransformer(weights, threads or usable_threads())
    model.warm_up()
    return model
