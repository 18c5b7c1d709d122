"""The forward passes that benchmarks.engine times: draftline, transformers with eager attention, llama.cpp."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from completion.model.causal_model import CausalModel
from completion.model.store.gguf_source import source_files, with_safetensors
from completion.model.store.model_store import prepare
from completion.model.transformer import Backend, load_transformer
from completion.paths import cache_dir

Tokens = npt.NDArray[np.int32]
CAPACITY = 2048
"""Size of each cache, in tokens."""


class ForwardPath(Protocol):
    """One implementation of prefill and of scoring. Each call returns when its logits are computed."""

    name: str

    def prefill(self, tokens: Tokens) -> None:
        """Replace the past by `tokens` and compute the logits of the last one."""

    def score(self, tokens: Tokens) -> None:
        """Compute logits for each row of a chain on top of the past, and leave the past unchanged."""


class Ours:
    """Forward pass of draftline, on a backend; `auto` chooses one for this machine."""

    def __init__(self, model: str, threads: int, backend: Backend) -> None:
        self.name = f"draftline {backend}"
        self.model: CausalModel = load_transformer(prepare(model).folder, backend, threads)
        self.step_bytes = getattr(self.model, "step_bytes", 0)
        self._cache = self.model.new_cache(CAPACITY)

    def prefill(self, tokens: Tokens) -> None:
        """See `ForwardPath`."""
        self._cache.truncate(0)
        slots = np.arange(len(tokens), dtype=np.int32)
        self.model.prefill(tokens, slots, self._cache, [len(tokens) - 1]).argmax()

    def score(self, tokens: Tokens) -> None:
        """See `ForwardPath`."""
        self.model.score(tokens, np.arange(-1, len(tokens) - 1, dtype=np.int32), self._cache).argmax()


class TransformersEager:
    """The model of transformers in bfloat16 with eager attention and its dynamic cache."""

    name = "transformers bf16"

    def __init__(self, model: str, threads: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(threads)
        self._torch = torch
        self._model = AutoModelForCausalLM.from_pretrained(
            with_safetensors(prepare(model).folder), dtype=torch.bfloat16, attn_implementation="eager"
        ).eval()

    def prefill(self, tokens: Tokens) -> None:
        """See `ForwardPath`."""
        from transformers import DynamicCache

        self._past = DynamicCache(config=self._model.config)
        self._forward(tokens, 1)

    def score(self, tokens: Tokens) -> None:
        """See `ForwardPath`."""
        self._forward(tokens, len(tokens))
        self._past.crop(-len(tokens))

    def _forward(self, tokens: Tokens, logits: int) -> None:
        with self._torch.inference_mode():
            ids = self._torch.from_numpy(tokens.astype(np.int64))[None]
            result = self._model(ids, past_key_values=self._past, use_cache=True, logits_to_keep=logits)
            result.logits.argmax(-1).tolist()


class LlamaCpp:
    """llama.cpp in this process, with the model's own file or with Q8_0 that its quantiser makes from it."""

    def __init__(self, model: str, threads: int, kind: Literal["Q4_K_M", "Q8_0"]) -> None:
        import llama_cpp

        self.name = f"llama.cpp {kind}"

        self._llama = llama_cpp
        llama_cpp.llama_log_set(_SILENT, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        path = str(q8_file(model) if kind == "Q8_0" else gguf_file(model)).encode()
        self._model = llama_cpp.llama_model_load_from_file(path, llama_cpp.llama_model_default_params())
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = CAPACITY
        parameters.n_threads = parameters.n_threads_batch = threads
        self._context = llama_cpp.llama_init_from_model(self._model, parameters)
        self._batch = llama_cpp.llama_batch_init(CAPACITY, 0, 1)
        self._length = 0
        # llama.cpp configures AMX once a thread, and takes it that nobody else does.
        self._thread = ThreadPoolExecutor(1)

    def prefill(self, tokens: Tokens) -> None:
        """See `ForwardPath`."""
        self._forget(0)
        self._decode(tokens, 0, [index == len(tokens) - 1 for index in range(len(tokens))])
        self._length = len(tokens)

    def score(self, tokens: Tokens) -> None:
        """See `ForwardPath`."""
        self._decode(tokens, self._length, [True] * len(tokens))
        self._forget(self._length)

    def _forget(self, length: int) -> None:
        memory = self._llama.llama_get_memory(self._context)
        self._llama.llama_memory_seq_rm(memory, 0, length, -1)

    def _decode(self, tokens: Tokens, start: int, wanted: list[bool]) -> None:
        batch = self._batch
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens.tolist()):
            batch.token[index], batch.pos[index], batch.logits[index] = token, start + index, wanted[index]
            batch.n_seq_id[index], batch.seq_id[index][0] = 1, 0
        if self._thread.submit(self._llama.llama_decode, self._context, batch).result():
            raise SystemExit(
                f"llama.cpp could not decode {len(tokens)} tokens. Check that they fit its cache of {CAPACITY} tokens."
            )
        self._llama.llama_synchronize(self._context)


def gguf_file(model: str) -> Path:
    """Return a model's GGUF file; one that lies in parts is joined once and kept in the cache."""
    folder = prepare(model).folder
    parts, target = source_files(folder), cache_dir() / "benchmarks" / f"{folder.name}.gguf"
    if len(parts) == 1:
        return parts[0]
    if not target.is_file():
        target.parent.mkdir(exist_ok=True)
        unfinished = target.with_suffix(f".{os.getpid()}")
        with unfinished.open("wb") as joined:
            for part in parts:
                joined.write(part.read_bytes())
        unfinished.rename(target)
    return target


def q8_file(model: str) -> Path:
    """Return a model as Q8_0, made once by the quantiser of llama.cpp and kept in the cache."""
    folder = cache_dir() / "benchmarks"
    folder.mkdir(exist_ok=True)
    source = gguf_file(model)
    target = folder / f"{prepare(model).folder.name}-q8_0.gguf"
    if not target.is_file():
        import llama_cpp

        unfinished = folder / f"q8_0-{os.getpid()}.gguf"
        parameters = llama_cpp.llama_model_quantize_default_params()
        parameters.ftype, parameters.allow_requantize = llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0, True
        failed = llama_cpp.llama_model_quantize(str(source).encode(), str(unfinished).encode(), parameters)
        if failed:
            raise SystemExit(
                f"llama.cpp could not quantise {source} (status {failed}). Check the free space at {folder}."
            )
        unfinished.rename(target)
    return target


def _ignore(_level: int, _text: bytes, _data: ctypes.c_void_p) -> None:
    """Drop a message of the log of llama.cpp."""


_SILENT = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(_ignore)
