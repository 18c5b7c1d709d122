"""Loads a model for the engine: its weights on a backend, and its tokenizer."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from completion.backend import Backend
from completion.errors import UnsupportedModelError
from completion.model.causal_model import CausalModel
from completion.model.store.model_store import prepare
from completion.model.tokenizer import CodeTokenizer
from completion.progress import Progress, report_if_slow, silent

PREPARATION_SHARE = 0.9
"""Share of the progress of a first start that belongs to the conversion; the rest is loading."""

FIRST_START = "Making the model ready for this processor: once, about a minute"
"""Progress sentence of a first start, which packs weights and compiles kernels; later starts reuse both."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to run.

    Attributes:
        model: The weights on their backend.
        tokenizer: The model's tokenizer.
        name: Short name, for display and for choosing the prompt's format.
        digest: Changes when the model's content does; files made from a model have it in their names.
        device: Where it runs, as torch names it.
        folder: Folder of its files.
    """

    model: CausalModel
    tokenizer: CodeTokenizer
    name: str
    digest: str
    device: str
    folder: Path


def load_model(
    spec: str, *, backend: Backend = "auto", threads: int | None = None, progress: Progress = silent
) -> LoadedModel:
    """Find a model, convert it if necessary, and load it.

    Args:
        spec: A model as `model_store.prepare` takes it: "default", a name, a folder, a `.gguf` file, a hub id.
        backend: "auto" falls back to transformers for a family without a forward pass of our own.
        threads: Threads of a forward pass; None leaves the choice to the backend.
        progress: Called with a sentence and the finished fraction.

    Raises:
        ModelError: The model cannot be found, read or run.
        StorageError: There is too little disk space for the conversion.
    """
    prepared = prepare(spec, lambda sentence, fraction: progress(sentence, PREPARATION_SHARE * fraction))
    progress("Loading the model", PREPARATION_SHARE)
    # In parallel: parsing the vocabulary takes as long as reading the weights.
    with report_if_slow(progress, FIRST_START, PREPARATION_SHARE), ThreadPoolExecutor(1) as executor:
        tokenizer = executor.submit(_load_tokenizer, prepared.folder)
        model = _load_weights(prepared.folder, backend, threads)
    device = str(getattr(model, "device", "cpu"))
    return LoadedModel(model, tokenizer.result(), prepared.name, prepared.digest, device, prepared.folder)


def _load_tokenizer(folder: Path) -> CodeTokenizer:
    tokenizer = CodeTokenizer.from_folder(folder)
    tokenizer.tokens_with_prefix(b" ")  # sorts the vocabulary now rather than in the first request
    return tokenizer


def _map_torch() -> None:
    """Map torch's libraries without the interpreter's lock: `import torch` would stop all threads for 0.3 s."""
    spec = find_spec("torch")
    if os.name == "posix" and spec is not None and spec.origin:
        library = Path(spec.origin).parent / "lib" / "libtorch_python.so"
        ctypes.CDLL(None).dlopen(os.fsencode(library), os.RTLD_LAZY)  # a failure is left to the import


def _load_weights(folder: Path, backend: Backend, threads: int | None) -> CausalModel:
    if backend not in {"auto", "int8"}:
        _map_torch()
    if backend == "transformers":
        return _load_with_transformers(folder, "fp32", threads)
    from completion.model.transformer import load_transformer  # noqa: PLC0415 -- seconds of import that the transformers backend saves

    if backend != "auto":
        return load_transformer(folder, backend, threads)
    candidates: tuple[Literal["auto", "bf16"], ...] = ("auto", "bf16")  # int8 kernels do not support every width
    for candidate in candidates:
        with suppress(UnsupportedModelError):
            return load_transformer(folder, candidate, threads)
    return _load_with_transformers(folder, "bf16", threads)


def _load_with_transformers(folder: Path, dtype: Literal["fp32", "bf16"], threads: int | None) -> CausalModel:
    from completion.model.transformers_model import TransformersModel  # noqa: PLC0415 -- slow to import, rarely needed

    return TransformersModel.load(folder, dtype, threads)
