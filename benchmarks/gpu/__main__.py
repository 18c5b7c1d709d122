"""`python -m benchmarks.gpu`: correctness of the GPU path, and the speed of its steps relative to the memory bandwidth.

It downloads nothing. On a small random model, in each format of weights and cache, it compares a prefill, trees,
branches, moved text and superposed rows with the plain decoder on the CPU, and with float32. Then it times steps of 1
to 64 rows on 1,024 to 32,000 tokens of past in the shapes of the coders of 0.5B, 1.5B and 7B parameters, and compares
them with the time that reading the weights and the cache takes, and with `generate` of transformers where that is
installed. Without a GPU the same code runs without graphs, and times a few layers of the smallest shape in float32. The
last line is JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.real_model import losses
from benchmarks.gpu.weights import SHAPES, coder, moved, random_weights
from completion.model.architecture import Architecture
from completion.model.causal_model import CausalModel
from completion.model.dense.cuda_graphs import GraphedTransformer
from completion.model.dense.dense_transformer import DenseTransformer
from completion.model.dense.kv_cache import TorchCache
from completion.model.dense.weights import Weights
from completion.model.devices import divergence
from completion.model.gpu_memory import WeightFormat
from drafting.arrays import FloatArray, IntArray

ROWS = (1, 2, 4, 8, 16, 32, 64)
PASTS = (1024, 8192, 32_000)
FORMATS_TIMED: tuple[WeightFormat, ...] = ("plain", "int8", "q4")
DIVERGENCE_BOUNDS: dict[tuple[WeightFormat, bool], float] = {
    ("plain", False): 1e-3,
    ("plain", True): 5e-3,
    ("int8", False): 5e-3,
    ("q4", False): 0.1,
    ("q4", True): 0.1,
}
"""Largest mean divergence of each format, weights and whether the cache has 8 bits, from float32, in nats."""
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


def correctness(device: str, dtype: torch.dtype) -> dict[str, float | bool]:
    """Compare fixed-shape steps on the device with plain ones on the CPU, on a small model in each format.

    The same format on the CPU tells whether the arithmetic is right; plain float32 tells what the format costs.
    """
    architecture = dataclasses.replace(coder(4, 256, 4, 2, 704, 64), vocabulary_size=_VOCABULARY, max_positions=4096)
    weights = random_weights(architecture, torch.float32, "cpu")
    exact = exercise(DenseTransformer(architecture, weights))
    result: dict[str, float | bool] = {"correct": True}
    print(f"{'format':>18}{'difference':>12}{'argmax':>8}{'divergence':>12}")
    bound = 1e-3 if dtype == torch.float32 else 0.25  # logits have a standard deviation of about 1
    for (kind, int8_cache), most in DIVERGENCE_BOUNDS.items():
        plain = DenseTransformer(architecture, moved(weights, kind, dtype, "cpu"), int8_cache=int8_cache)
        graphed = GraphedTransformer(architecture, moved(weights, kind, dtype, device), int8_cache=int8_cache)
        expected, found = np.stack(exercise(plain)), np.stack(exercise(graphed))
        name = kind + ("_int8_cache" if int8_cache else "")
        difference = float(np.abs(expected - found).max())
        agreement = float((expected.argmax(1) == found.argmax(1)).mean())
        lost = divergence(exact, list(found))
        print(f"{name:>18}{difference:>12.6f}{agreement:>8.3f}{lost:>12.5f} of at most {most}", flush=True)
        result |= {
            f"max_logit_difference_{name}": difference,
            f"argmax_agreement_{name}": agreement,
            f"logit_error_{name}": float(np.abs(np.stack(exact) - found).max()),
            f"divergence_{name}": lost,
        }
        result["correct"] = bool(result["correct"] and difference < bound and agreement >= 0.95 and lost < most)
    return result


def milliseconds(action: Callable[[], object], device: str, repeats: int) -> float:
    """Return the median time of a call until it ends on the device."""
    times = []
    for _ in range(repeats + 2):
        _synchronise(device)
        start = time.perf_counter()
        action()
        _synchronise(device)
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[2:])


def _synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def bandwidth_gb_s(device: str) -> float:
    """Measure the memory bandwidth by summing a tensor that is larger than every cache."""
    size = 1 << (31 if device == "cuda" else 28)
    block = torch.ones(size // 4, device=device)
    return size / 1e6 / milliseconds(block.sum, device, 10)


def floor_ms(weights: Weights, cache: TorchCache, past: int, bandwidth: float) -> float:
    """Return the time to read all weights of a step and the keys and values of the past once."""
    read = sum(tensor.nbytes for name, tensor in cache.store.tensors.items() if name != "plain_keys")
    return (weights.step_bytes + read * past / cache.slots) / 1e6 / bandwidth


def filled_cache(model: GraphedTransformer, past: int) -> TorchCache:
    """Return a cache with a random past. The time of a step does not depend on the values."""
    cache = model.new_cache(past + 128)
    cache.reserve(past + 128)
    for tensor in cache.store.tensors.values():
        if tensor.is_floating_point():
            tensor.normal_()
    cache.length = past
    return cache


def _step(model: GraphedTransformer, tokens: IntArray, parents: IntArray, cache: TorchCache) -> IntArray:
    return model.score(tokens, parents, cache).argmax()


def step_times(
    name: str, model: GraphedTransformer, pasts: tuple[int, ...], device: str, bandwidth: float
) -> dict[str, float]:
    """Print a line for each past. Return times, floor over time at one row, and the cost of 32 rows over one."""
    found: dict[str, float] = {}
    for past in pasts:
        cache = filled_cache(model, past)
        times = {}
        for rows in ROWS:
            tokens, parents = np.arange(rows, dtype=np.int32), random_tree(rows, np.random.default_rng(rows))
            step = partial(_step, model, tokens, parents, cache)
            times[rows] = milliseconds(step, device, 10 if device == "cuda" else 3)
        floor = floor_ms(model.weights, cache, past, bandwidth)
        print(f"{name:>10}{past:>7}{floor:>9.2f}" + "".join(f"{times[rows]:>9.2f}" for rows in ROWS))
        key = f"{name}_past_{past}"
        found |= {f"ms_{key}_rows_{rows}": ms for rows, ms in times.items()}
        found |= {f"share_of_bandwidth_rows_1_{key}": floor / times[1], f"ratio_rows_32_{key}": times[32] / times[1]}
    return found


def generate_ms(architecture: Architecture, device: str, dtype: torch.dtype) -> float | None:
    """Return milliseconds per token of greedy `generate` of transformers after 1,024 tokens, None if not installed."""
    try:
        from transformers import Qwen2Config, Qwen2ForCausalLM
    except ImportError:
        return None
    config = Qwen2Config(
        vocab_size=architecture.vocabulary_size,
        hidden_size=architecture.hidden_size,
        intermediate_size=architecture.intermediate_size,
        num_hidden_layers=architecture.layers,
        num_attention_heads=architecture.heads,
        num_key_value_heads=architecture.kv_heads,
    )
    with torch.device(device):
        module = Qwen2ForCausalLM(config).to(dtype).eval()
    prompt = torch.arange(1024, device=device)[None]

    def run(count: int) -> float:
        options: dict[str, Any] = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False}
        options |= {"cache_implementation": "static"}  # which transformers compiles on a GPU
        return milliseconds(lambda: module.generate(prompt, **options), device, 2)

    return (run(24) - run(8)) / 16


def main() -> None:
    """Print tables, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--layers", type=int, default=2, help="number of layers of the 0.5B shape without a GPU (default: %(default)s)"
    )
    parser.add_argument("--model", help="measure also what the formats cost this model, for example: default")
    arguments = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    device, dtype = ("cuda", torch.bfloat16) if on_gpu else ("cpu", torch.float32)
    if not on_gpu:
        print(
            f"This machine has no GPU. The steps run on the CPU without graphs, on {arguments.layers} layers of 0.5B."
        )
    shapes = SHAPES if on_gpu else {"0.5B": dataclasses.replace(SHAPES["0.5B"], layers=arguments.layers)}
    result: dict[str, object] = {
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "graphs": on_gpu,
        **correctness(device, dtype),
    }
    if arguments.model:
        result |= losses(arguments.model, DIVERGENCE_BOUNDS, dtype, device)
    bandwidth = bandwidth_gb_s(device)
    result["bandwidth_gb_s"] = bandwidth
    print(f"{'shape':>10}{'past':>7}{'floor':>9}" + "".join(f"{f'{rows} rows':>9}" for rows in ROWS) + "   ms")
    for size, architecture in shapes.items():
        for kind in FORMATS_TIMED if on_gpu else FORMATS_TIMED[:1]:
            model = GraphedTransformer(architecture, random_weights(architecture, dtype, device, kind))
            name = size if kind == "plain" else f"{size}_{kind}"
            result |= step_times(name, model, PASTS if on_gpu else PASTS[:1], device, bandwidth)
            del model
        if on_gpu:
            result[f"generate_ms_{size}"] = generate_ms(architecture, device, dtype)
            torch.cuda.empty_cache()
    print(json.dumps({key: round(value, 6) if isinstance(value, float) else value for key, value in result.items()}))


if __name__ == "__main__":
    main()
