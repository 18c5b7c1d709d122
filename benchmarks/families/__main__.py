"""`python -m benchmarks.families`: our own forward pass of each family against transformers, on tiny random models.

For each family it prints the largest difference of a logit from transformers in float32, and what int8 costs: the mean
of Σ p · (log p − log q), the excess of its negative log-likelihood on text that the float32 model writes. The last line
is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.fidelity.tally import LogProbabilities, normalised
from completion.errors import UnsupportedModelError
from completion.model.causal_model import CausalModel
from completion.model.transformer import has_int8_instructions, load_transformer

SIZES: dict[str, Any] = {
    "vocab_size": 1024,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "initializer_range": 0.08,
    "bos_token_id": None,
    "eos_token_id": None,
}
TOKENS = 160
PAST = 128  # tokens before the rows that are scored alone and in a tree
_LINEAR = {"rope_type": "linear", "rope_theta": 100_000.0, "factor": 4.0}
_GRANITE = {"attention_multiplier": 0.1, "embedding_multiplier": 6.0, "residual_multiplier": 0.4, "logits_scaling": 1.0}
_GRANITE_4 = {
    "shared_intermediate_size": 512,
    "num_local_experts": 0,
    "position_embedding_type": "rope",
    "layer_types": ["full_attention"] * 4,
    "mamba_n_heads": 8,
}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "Qwen2.5-Coder, Zeta 1": ("qwen2", {}),
    "Qwen3": ("qwen3", {"head_dim": 64}),
    "Llama, CodeLlama, SmolLM2": ("llama", {"tie_word_embeddings": True}),
    "Seed-Coder, Zeta 2": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500_000.0}}),
    "Mellum": ("llama", {"num_key_value_heads": 4}),
    "DeepSeek-Coder V1": ("llama", {"rope_parameters": _LINEAR}),
    "Codestral": ("mistral", {"sliding_window": None}),
    "Granite 3": ("granite", _GRANITE | {"tie_word_embeddings": True}),
    "Granite 4, dense": ("granitemoehybrid", _GRANITE | _GRANITE_4),
    "StarCoder2": ("starcoder2", {"sliding_window": 64}),
    "CodeGemma": ("gemma", {"head_dim": 128}),
    "Gemma 3": ("gemma3_text", {"head_dim": 128, "sliding_window": 32, "sliding_window_pattern": 2}),
}
"""transformers' `model_type` and values of a config with all that is special about each family."""


def write_model(folder: Path, model_type: str, values: dict[str, Any]) -> Any:  # noqa: ANN401  (transformers is untyped)
    """Write a random model with random norms and biases; return transformers' module."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **{**SIZES, **values})
    module = AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith(("bias", "norm.weight")):
                parameter.add_(0.1 * torch.randn_like(parameter))
    module.save_pretrained(folder)
    return module


def own_logits(model: CausalModel, tokens: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
    """Return the logits of every token of a prefill.  # [tokens, vocabulary]."""
    slots = np.arange(len(tokens), dtype=np.int32)
    logits = model.prefill(tokens, slots, model.new_cache(len(tokens)), range(len(tokens)))
    return np.stack([logits.row(index) for index in range(len(tokens))])


def excess(exact: LogProbabilities, found: LogProbabilities) -> float:
    """Return the mean over rows of Σ p · (log p − log q)."""
    return float((np.exp(exact) * (exact - found)).sum(axis=1).mean())


def rows_are_independent(model: CausalModel, tokens: npt.NDArray[np.int32]) -> bool:
    """Return whether rows of a tree of two interleaved paths have bit for bit the logits of single steps."""
    past, ids = tokens[:PAST], tokens[PAST:]
    caches = [model.new_cache(2 * TOKENS) for _ in range(2)]
    for cache in caches:
        model.prefill(past, np.arange(PAST, dtype=np.int32), cache)
    tree = model.score(np.repeat(ids, 2), np.maximum(np.arange(2 * len(ids), dtype=np.int32) - 2, -1), caches[0])
    equal = True
    for index in range(len(ids)):
        alone = model.score(ids[index : index + 1], np.array([-1], dtype=np.int32), caches[1]).row(0)
        equal &= np.array_equal(alone, tree.row(2 * index)) and np.array_equal(alone, tree.row(2 * index + 1))
        caches[1].commit([0])
    return equal


def measure(folder: Path, model_type: str, values: dict[str, Any]) -> dict[str, float | bool]:
    """Compare one family's model with transformers."""
    import torch

    module = write_model(folder, model_type, values)
    tokens = np.random.default_rng(0).integers(0, SIZES["vocab_size"], TOKENS).astype(np.int32)
    with torch.inference_mode():
        reference = module(torch.from_numpy(tokens.astype(np.int64))[None]).logits[0].numpy()
    try:
        ours = own_logits(load_transformer(folder, "fp32", 1), tokens)
    except UnsupportedModelError as error:
        print(error)
        return {"own_forward_pass": False}
    result: dict[str, float | bool] = {
        "own_forward_pass": True,
        "logit_difference": float(np.abs(ours - reference).max()),
        "largest_logit": float(np.abs(reference).max()),
    }
    if has_int8_instructions():
        model, exact = load_transformer(folder, "int8", 1), normalised(reference)
        result["nll"] = float(-(np.exp(exact) * exact).sum(axis=1).mean())
        result["nll_excess"] = excess(exact, normalised(own_logits(model, tokens)))
        result["row_independence"] = rows_are_independent(model, tokens)
    return result


def largest(rows: Sequence[Mapping[str, float | bool]], key: str) -> float | None:
    """Return the largest figure of all families, None if one family has none: JSON has no infinity."""
    values = [row[key] for row in rows if key in row]
    return max(values) if len(values) == len(rows) else None


def main() -> None:
    """Print one row a family, then JSON."""
    argparse.ArgumentParser(prog="python -m benchmarks.families", description=__doc__).parse_args()
    found: dict[str, dict[str, float | bool]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["DRAFTLINE_CACHE_DIR"] = str(Path(scratch) / "cache")
        print(f"{'family':28} {'own':>5} {'logit difference':>17} {'of':>6} {'nll':>6} {'int8 excess':>12} {'rows':>5}")
        for number, (name, (model_type, values)) in enumerate(FAMILIES.items()):
            row = found[name] = measure(Path(scratch) / f"model-{number}", model_type, values)
            print(
                f"{name:28} {row['own_forward_pass']!s:>5} {row.get('logit_difference', np.nan):17.2e}"
                f" {row.get('largest_logit', np.nan):6.1f} {row.get('nll', np.nan):6.2f}"
                f" {row.get('nll_excess', np.nan):12.5f} {row.get('row_independence', '')!s:>5}",
                flush=True,
            )
    summary: dict[str, float | None] = {
        "families": len(found),
        "own_forward_pass": all(row["own_forward_pass"] for row in found.values()),
        "largest_logit_difference": largest(list(found.values()), "logit_difference"),
    }
    if has_int8_instructions():
        summary["worst_nll_excess"] = largest(list(found.values()), "nll_excess")
        summary["row_independence"] = all(row.get("row_independence", False) for row in found.values())
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
