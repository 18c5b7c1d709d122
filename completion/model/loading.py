"""Loads what the engine needs of a model: weights on a backend, and the tokenizer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from completion.backend import Backend
from completion.errors import UnsupportedModelError
from completion.model.causal_model import CausalModel
from completion.model.store.model_store import prepare
from completion.model.tokenizer import CodeTokenizer
from completion.progress import Progress, silent, told_if_slow

PREPARATION = 0.9
"""Share of a first start, in which the model is converted, that passes before its loading."""

FIRST_START = "Making the model ready for this processor: once, about a minute"
"""Weights are packed, kernels and drafters compiled; all later starts find that done."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to run.

    Attributes:
        name: Short name, for people and for the choice of the prompt's format.
        digest: Changes when the model's content does: files made from a model carry it in their names.
        device: Where it runs, as torch names it.
    """

    model: CausalModel
    tokenizer: CodeTokenizer
    name: str
    digest: str
    device: str


def load_model(
    spec: str, *, backend: Backend = "auto", threads: int | None = None, progress: Progress = silent
) -> LoadedModel:
    """Find, if need be convert, and load a model.

    Args:
        spec: What `model_store.prepare` understands: "default", a name, a folder, a `.gguf` file, a hub id.
        backend: "auto" falls back to transformers for a family that has no forward pass of our own.
        threads: Threads of a forward pass; None leaves the choice to the backend.
        progress: Told what takes time.

    Raises:
        ModelError: The model cannot be found, read or run.
        StorageError: It cannot be converted for want of room.
    """
    prepared = prepare(spec, lambda sentence, fraction: progress(sentence, PREPARATION * fraction))
    progress("Loading the model", PREPARATION)
    # Parsing the vocabulary takes as long as reading the weights.
    with told_if_slow(progress, FIRST_START, PREPARATION), ThreadPoolExecutor(1) as beside:
        tokenizer = beside.submit(_load_tokenizer, prepared.folder)
        model = _load_weights(prepared.folder, backend, threads)
    device = str(getattr(model, "device", "cpu"))
    return LoadedModel(model, tokenizer.result(), prepared.name, prepared.digest, device)


def _load_tokenizer(folder: Path) -> CodeTokenizer:
    tokenizer = CodeTokenizer.from_folder(folder)
    tokenizer.tokens_with_prefix(b" ")  # sorts the vocabulary now, not in the first request
    return tokenizer


def _load_weights(folder: Path, backend: Backend, threads: int | None) -> CausalModel:
    if backend == "transformers":
        return _load_with_transformers(folder, "fp32", threads)
    from completion.model.transformer import load_transformer  # noqa: PLC0415 -- seconds that the other path saves

    if backend != "auto":
        return load_transformer(folder, backend, threads)
    ways: tuple[Literal["auto", "bf16"], ...] = ("auto", "bf16")  # the int8 kernels do not take every width
    for way in ways:
        with suppress(UnsupportedModelError):
            return load_transformer(folder, way, threads)
    return _load_with_transformers(folder, "bf16", threads)


def _load_with_transformers(folder: Path, dtype: Literal["fp32", "bf16"], threads: int | None) -> CausalModel:
    from completion.model.transformers_model import TransformersModel  # noqa: PLC0415 -- seldom needed, slow to import

    return TransformersModel.load(folder, dtype, threads)
