"""Loads a model for the engine: its weights on a backend, and its tokenizer."""

from __future__ import annotations

import ctypes
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from completion.backend import GPU_MEMORY_SHARE, Backend
from completion.errors import ModelDamagedError, UnsupportedModelError
from completion.model import transformer
from completion.model.architecture import read_architecture
from completion.model.causal_model import CausalModel
from completion.model.devices import Trial, failed_lately, tried
from completion.model.gpu_memory import FORMATS, GpuPlan, find_gpu, plan_for
from completion.model.store.gguf_source import with_safetensors
from completion.model.store.model_store import PreparedModel, fetch, prepare
from completion.model.tokenizer import CodeTokenizer
from completion.model.transformer import load_transformer, require_torch
from completion.progress import FIRST_START, SLOW_S, Progress, called_after, share, silent

PREPARATION_SHARE, PACKED_SHARE = 0.2, 0.5
"""Shares of the progress of a start at which the model is converted, and packed; the rest is compiled or read."""

_FETCHED_SHARE = 0.7
"""Share of getting a model at which it is downloaded."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to run.

    Attributes:
        model: The weights on their backend.
        name: Short name, for display and for choosing the prompt's format.
        digest: Changes when the model's content does; files made from a model have it in their names.
        device: Where it runs, as torch names it.
        remark: A sentence on why it does not run on this machine's GPU; "" if it does, or if there is none.
        plan: How it is stored on the GPU, None if it runs on the processor.
        outcome: How the GPU did in its trial, "" if it had none.
        threads: Threads of a forward pass that `load_model` was told to take; None if the backend chose.
    """

    model: CausalModel
    tokenizer: CodeTokenizer
    name: str
    digest: str
    folder: Path
    device: str
    remark: str = ""
    plan: GpuPlan | None = None
    outcome: str = ""
    threads: int | None = None


class _OnGpu(NamedTuple):
    """A model on a GPU, or why it is not there; see `LoadedModel`."""

    model: CausalModel | None = None
    plan: GpuPlan | None = None
    remark: str = ""
    outcome: str = ""


def load_model(
    spec: str,
    *,
    backend: Backend = "auto",
    threads: int | None = None,
    gpu_memory_share: float = GPU_MEMORY_SHARE,
    mapped: bool = False,
    progress: Progress = silent,
) -> LoadedModel:
    """Find a model, convert it if necessary, and load it.

    Args:
        spec: A model as `model_store.prepare` takes it: "default", a name, a folder, a `.gguf` file, a hub id.
        backend: "auto" takes a GPU that proves itself (see `devices`), and transformers for a family without a forward
            pass of our own. "int8" and "q4" take such a GPU, too; "bf16" takes any that did not just fail.
        threads: Threads of a forward pass; None leaves the choice to the backend.
        gpu_memory_share: Share of a GPU's memory that the model may take; 0 for no GPU.
        mapped: Whether weights may be mapped at first; see `QuantizedTransformer.settle`.
        progress: Called with a sentence and the finished fraction.

    Raises:
        ModelError: The model cannot be found, read or run.
        StorageError: There is too little disk space for the conversion.
    """
    prepared = prepare(spec, share(progress, 0.0, PREPARATION_SHARE))
    progress("Loading the model", PREPARATION_SHARE)

    packing = share(progress, PREPARATION_SHARE, PACKED_SHARE)
    # In parallel: parsing the vocabulary takes as long as reading the weights.
    with called_after(SLOW_S, progress, FIRST_START, PREPARATION_SHARE), ThreadPoolExecutor(1) as executor:
        tokenizer = executor.submit(_load_tokenizer, prepared.folder)
        gpu = _load_on_gpu(prepared, backend, threads, gpu_memory_share, progress)
        model = gpu.model or _load_weights(prepared.folder, backend, threads, mapped=mapped, progress=packing)
    device = str(getattr(model, "device", "cpu"))
    _check_same_tokens(tokenizer.result(), model, prepared.folder)
    return LoadedModel(
        model,
        tokenizer.result(),
        prepared.name,
        prepared.digest,
        prepared.folder,
        device,
        gpu.remark,
        gpu.plan,
        gpu.outcome,
        threads,
    )


def get_model(spec: str, progress: Progress) -> LoadedModel:
    """Download what is missing of a model, convert it, and pack its weights, which happens only once.

    Raises:
        DraftlineError: It cannot be had.
    """
    fetch(spec, share(progress, 0.0, _FETCHED_SHARE))
    return load_model(spec, progress=share(progress, _FETCHED_SHARE, 1.0))


def get_in_background(spec: str, progress: Progress) -> None:
    """Get a model in this process, which gives way to all others."""
    if hasattr(os, "nice"):
        os.nice(19)
    get_model(spec, progress)


def _load_tokenizer(folder: Path) -> CodeTokenizer:
    tokenizer = CodeTokenizer.from_folder(folder)
    tokenizer.tokens_with_prefix(b" ")  # sorts the vocabulary now rather than in the first request
    return tokenizer


def _check_same_tokens(tokenizer: CodeTokenizer, model: CausalModel, folder: Path) -> None:
    rows = model.shape.vocabulary_size
    if tokenizer.vocabulary_size > rows:
        raise ModelDamagedError(
            f"The tokenizer in {folder} has {tokenizer.vocabulary_size:,} tokens, but the model knows {rows:,}. One of "
            "them is damaged or of another model: convert or download the model again."
        )


def _map_torch() -> None:
    """Map torch's libraries without the interpreter's lock: `import torch` would stop all threads for 0.3 s."""
    spec = find_spec("torch")
    if sys.platform != "win32" and spec is not None and spec.origin:
        library = Path(spec.origin).parent / "lib" / "libtorch_python.so"
        ctypes.CDLL(None).dlopen(os.fsencode(library), os.RTLD_LAZY)  # a failure is left to the import


def _load_on_gpu(
    prepared: PreparedModel, backend: Backend, threads: int | None, memory_share: float, progress: Progress
) -> _OnGpu:
    """Return the model on the GPU, or no model: with a sentence on why not, if there is a GPU."""
    if backend not in FORMATS or not memory_share or find_spec("torch") is None or (gpu := find_gpu()) is None:
        return _OnGpu()
    try:
        plan = plan_for(read_architecture(prepared.folder), backend, gpu.memory_bytes, memory_share)
        if plan is None:
            most = f"{memory_share:.0%} of its memory"
            return _OnGpu(remark=f"The GPU {gpu.name} is not used: the model needs more than {most}.")
        outcome = ""
        if backend == "bf16":
            refusal = failed_lately(prepared.digest, gpu, plan)
        else:
            trial = tried(prepared, gpu, plan, threads, progress)
            refusal, outcome = trial.refusal, trial.outcome
        if refusal:
            return _OnGpu(remark=refusal)
        return _OnGpu(transformer.load_on_gpu(prepared.folder, gpu.device, plan), plan, outcome=outcome)
    except UnsupportedModelError:
        return _OnGpu(remark=f"The GPU {gpu.name} is not used: it runs no model of this family.")
    # The boundary to torch and a driver: without the GPU, the processor runs the model.
    except Exception as error:  # noqa: BLE001
        return _OnGpu(remark=Trial.of_failure(gpu, error).refusal)


def _load_weights(
    folder: Path, backend: Backend, threads: int | None, *, mapped: bool, progress: Progress
) -> CausalModel:
    if backend not in {"auto", "int8", "q4"}:
        _map_torch()
    if backend != "transformers":
        try:
            return load_transformer(folder, backend, threads, mapped=mapped, progress=progress)
        except UnsupportedModelError:
            if backend != "auto":
                raise
    require_torch("The backend transformers")
    from completion.model.dense.transformers_model import TransformersModel  # noqa: PLC0415 -- slow to import, rarely needed

    dtype: Literal["fp32", "bf16"] = "fp32" if backend == "transformers" else "bf16"
    return TransformersModel.load(with_safetensors(folder, progress), dtype, threads)
