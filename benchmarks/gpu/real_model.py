"""What each format of weights and cache costs a real model, on this project's own source code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from completion.model.architecture import read_architecture
from completion.model.causal_model import CausalModel
from completion.model.dense.cuda_graphs import GraphedTransformer
from completion.model.dense.dense_transformer import load_dense
from completion.model.dense.weights import read_weights
from completion.model.gpu_memory import WeightFormat
from completion.model.store.model_store import prepare
from completion.model.tokenizer import CodeTokenizer
from drafting.arrays import FloatArray, IntArray

_FILES = ("completion/engine.py", "completion/decoding/decoder.py", "lsp_server/server.py", "drafting/session.py")
_WINDOW = 256


def losses(name: str, forms: Iterable[tuple[WeightFormat, bool]], dtype: torch.dtype, device: str) -> dict[str, float]:
    """Print a line for each format. Return excess of NLL and divergence from float32 on the CPU, in nats a token."""
    folder = prepare(name).folder
    tokenizer = CodeTokenizer.from_folder(folder)
    root = Path(__file__).parents[2]
    texts = [tokenizer.encode((root / file).read_text(encoding="utf-8"))[:_WINDOW] for file in _FILES]
    windows = [np.array(text, dtype=np.int32) for text in texts]
    reference = load_dense(folder, torch.float32, None)
    exact = [_log_probabilities(reference, window) for window in windows]
    del reference
    nll = _nll(exact, windows)
    print(f"{name}: negative log-likelihood {nll:.4f} in float32; excess and divergence of other formats:")
    found: dict[str, float] = {}
    architecture = read_architecture(folder)
    for kind, int8_cache in forms:
        weights = read_weights(folder, architecture, dtype, device, kind)
        model = GraphedTransformer(architecture, weights, int8_cache=int8_cache)
        ours = [_log_probabilities(model, window) for window in windows]
        excess = _nll(ours, windows) - nll
        lost = float(np.mean([(np.exp(p) * (p - q)).sum(1).mean() for p, q in zip(exact, ours, strict=True)]))
        form = kind + ("_int8_cache" if int8_cache else "")
        print(f"{form:>18}{excess:>10.4f}{lost:>10.4f}", flush=True)
        found |= {f"nll_excess_{name}_{form}": excess, f"divergence_{name}_{form}": lost}
    return found


def _log_probabilities(model: CausalModel, window: IntArray) -> FloatArray:
    """Return the log-probabilities after each token.  # [window, vocabulary]."""
    slots = np.arange(len(window), dtype=np.int32)
    logits = model.prefill(window, slots, model.new_cache(len(window)), range(len(window)))
    rows = np.stack([logits.row(index) for index in range(len(window))])
    rows -= rows.max(axis=1, keepdims=True)
    rows -= np.log(np.exp(rows).sum(axis=1, keepdims=True))
    return rows


def _nll(log_probabilities: list[FloatArray], windows: list[IntArray]) -> float:
    each = [
        -rows[np.arange(len(window) - 1), window[1:]].mean()
        for rows, window in zip(log_probabilities, windows, strict=True)
    ]
    return float(np.mean(each))
