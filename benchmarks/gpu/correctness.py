"""Every kind of call of the GPU path on a small random model, against the plain decoder on the CPU and float32."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from benchmarks.gpu.weights import coder, moved, random_weights
from completion.model.architecture import Architecture
from completion.model.causal_model import CausalModel
from completion.model.dense.attention import PLAIN, Kernels
from completion.model.dense.cuda_graphs import GraphedTransformer
from completion.model.dense.dense_transformer import DenseTransformer
from completion.model.dense.kernels.choice import kernels_for
from completion.model.gpu_memory import WeightFormat
from completion.model.logits import divergence
from drafting.arrays import FloatArray, IntArray

ROWS = (1, 2, 4, 8, 16, 32, 64)
DIVERGENCE_BOUNDS: dict[tuple[WeightFormat, bool], float] = {
    ("plain", False): 1e-3,
    ("plain", True): 5e-3,
    ("int8", False): 5e-3,
    ("q4", False): 0.1,
    ("q4", True): 0.1,
}
"""Largest mean divergence of each format, weights and whether the cache has 8 bits, from float32, in nats."""
DIFFERENCE_BOUNDS = {
    (torch.float32, False): (0.001, 0.001),
    (torch.float32, True): (0.05, 0.02),
    (torch.bfloat16, False): (0.25, 0.1),
    (torch.bfloat16, True): (0.5, 0.2),
}
"""Largest difference of a logit and largest `shortfall`, by type and whether inputs or keys are rounded to 8 bits.

Logits have a standard deviation of 1. From float32, bfloat16 moves one by up to 0.08, or by 0.24 with inputs in 8 bits;
best tokens fall short by up to 0.03, or 0.07. Two computations in bfloat16 differ by twice as much at most. In float32,
sums in another order may round an input to its neighbour, which moves a logit by 0.006, or by 0.038 where later layers
round others then (2 of 222 rows on an Intel Granite Rapids; all other rows are equal to 0.00005).
"""
_VOCABULARY = 2048


def random_tree(count: int, rng: np.random.Generator) -> IntArray:
    """Return the parents of a tree whose first half is a chain."""
    return np.array([i - 1 if i < count // 2 else rng.integers(-1, i) for i in range(count)], dtype=np.int32)


def exercise(model: CausalModel) -> list[FloatArray]:
    """Return the logits of every kind of call: a prefill, trees, branches, moved text, superposed rows."""
    rng = np.random.default_rng(0)
    cache = model.new_cache(2200)
    found: list[FloatArray] = []

    def score(rows: int, parents: IntArray) -> None:
        logits = model.score(rng.integers(0, _VOCABULARY, rows).astype(np.int32), parents, cache)
        found.extend(logits.row(row) for row in range(rows))

    past = rng.integers(0, _VOCABULARY, 1500).astype(np.int32)
    found.append(model.prefill(past, np.arange(1500, dtype=np.int32), cache, [1499]).row(0))
    for rows in (*ROWS, 3, 17, 50):
        score(rows, random_tree(rows, rng))
        cache.commit(list(range(max(1, rows // 2))))
    score(3, np.array([-1, -1, -1], dtype=np.int32))
    cache.keep([0, 1, 2])
    for _ in range(4):  # three branches grow by a token a step
        score(3, np.arange(cache.kept - 3, cache.kept, dtype=np.int32))
        cache.keep(list(range(cache.kept + 3)))
    cache.truncate(cache.length)
    cache.rearrange(np.concatenate((np.arange(700, 1400), np.arange(650))).astype(np.int32))
    score(5, random_tree(5, rng))
    tokens = rng.integers(0, _VOCABULARY, (4, 3)).astype(np.int32)
    weights = rng.dirichlet((1.0, 1.0, 1.0), 4).astype(np.float32)
    superposed = model.superpose(tokens, weights, random_tree(4, rng), cache)
    return found + [superposed.row(row) for row in range(4)]


def chosen_kernels(architecture: Architecture, device: str, choice: str, *, int8_cache: bool = False) -> Kernels:
    """Return the kernels of the product on a device, or torch's own operators."""
    return PLAIN if choice == "torch" else kernels_for(architecture, device, int8_cache=int8_cache)


def shortfall(expected: FloatArray, found: FloatArray) -> float:
    """Return how far the expected logit of a found best token is below the expected best one, in the worst row.

    So a bound allows another best token where two logits nearly are the same, and nowhere else.

    # [rows, vocabulary] twice
    """
    best = found.argmax(1)
    return float((expected.max(1) - expected[np.arange(len(best)), best]).max())


def correctness(device: str, dtype: torch.dtype, choice: str) -> dict[str, float | bool]:
    """Compare fixed-shape steps on the device with plain ones on the CPU, on a small model in each format.

    The same format on the CPU tells whether the arithmetic is right. Plain float32 tells what the format costs.
    """
    architecture = dataclasses.replace(coder(4, 256, 4, 2, 704, 64), vocabulary_size=_VOCABULARY, max_positions=4096)
    weights = random_weights(architecture, torch.float32, "cpu")
    exact = np.stack(exercise(DenseTransformer(architecture, weights)))
    result: dict[str, float | bool] = {"correct": True}
    print(f"{'format':>18}{'difference':>12}{'shortfall':>12}{'argmax':>8}{'divergence':>12}")
    for (kind, int8_cache), most in DIVERGENCE_BOUNDS.items():
        plain = DenseTransformer(architecture, moved(weights, kind, dtype, "cpu"), int8_cache=int8_cache)
        kernels = chosen_kernels(architecture, device, choice, int8_cache=int8_cache)
        on_device = moved(weights, kind, dtype, device)
        graphed = GraphedTransformer(architecture, on_device, int8_cache=int8_cache, kernels=kernels)
        expected, found = np.stack(exercise(plain)), np.stack(exercise(graphed))
        name = kind + ("_int8_cache" if int8_cache else "")
        figures = {
            "max_logit_difference": float(np.abs(expected - found).max()),
            "best_token_shortfall": shortfall(expected, found),
            "argmax_agreement": float((expected.argmax(1) == found.argmax(1)).mean()),
            "divergence": divergence(list(exact), list(found)),
        }
        difference, short, agreement, lost = figures.values()
        print(
            f"{name:>18}{difference:>12.6f}{short:>12.6f}{agreement:>8.3f}{lost:>12.5f} of at most {most}", flush=True
        )
        result |= {f"{figure}_{name}": value for figure, value in figures.items()}
        most_difference, most_short = DIFFERENCE_BOUNDS[dtype, int8_cache or kind != "plain"]
        near = difference < most_difference and short < most_short
        result["correct"] = bool(result["correct"] and near and lost < most)
    return result
