"""`python -m benchmarks.gpu`: correctness of the GPU path, and the speed of its steps relative to the memory bandwidth.

It downloads nothing and needs no more than torch, numpy, safetensors and numba. On a small random model, in each format
of weights and cache, it compares a prefill, trees, branches, moved text and superposed rows with the plain decoder on
the CPU, and with float32. Then it times steps of 1 to 64 rows on 1,024 to 32,000 tokens of past in the shapes of the
coders of 0.5B, 1.5B and 7B parameters, and compares them with the time that reading the weights and the cache takes.
It counts how often the processor waits for the GPU in a step. While time is left, it runs `generate` of transformers,
where that is installed. Without a GPU the same code runs without graphs, and times a few layers of the smallest shape
in float32. The last line is JSON.
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

from benchmarks.gpu.correctness import DIVERGENCE_BOUNDS, ROWS, chosen_kernels, correctness, random_tree
from benchmarks.gpu.weights import SHAPES, random_weights
from completion.model.architecture import Architecture
from completion.model.dense.attention import PLAIN
from completion.model.dense.cuda_graphs import GraphedTransformer
from completion.model.dense.held_tensors import tensors_in
from completion.model.dense.kv_cache import TorchCache
from completion.model.dense.weights import Weights
from completion.model.gpu_memory import WeightFormat
from drafting.arrays import IntArray

PASTS = (1024, 8192, 32_000)
FORMATS_TIMED: tuple[WeightFormat, ...] = ("plain", "int8", "q4")
COMPARED_S = 300.0
"""Time after which nothing more is compared with transformers. A run should take less than eight minutes."""


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
    stored = sum(tensor.nbytes for tensor in tensors_in((weights.layers, weights.head)))
    return (stored + read * past / cache.slots) / 1e6 / bandwidth


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
    """Print a line for each past. Return times, floor over time at one row, and the cost of 32 rows over one.

    A capture is the first step of a shape.
    """
    found: dict[str, float] = {}
    for past in pasts:
        cache = filled_cache(model, past)
        times, captures = {}, []
        for rows in ROWS:
            tokens, parents = np.arange(rows, dtype=np.int32), random_tree(rows, np.random.default_rng(rows))
            step = partial(_step, model, tokens, parents, cache)
            started = time.perf_counter()
            step()
            captures.append(1000 * (time.perf_counter() - started))
            times[rows] = milliseconds(step, device, 10 if device == "cuda" else 3)
        floor = floor_ms(model.weights, cache, past, bandwidth)
        print(f"{name:>10}{past:>7}{floor:>9.2f}" + "".join(f"{times[rows]:>9.2f}" for rows in ROWS), flush=True)
        key = f"{name}_past_{past}"
        found |= {f"ms_{key}_rows_{rows}": ms for rows, ms in times.items()}
        found |= {f"share_of_bandwidth_rows_1_{key}": floor / times[1], f"ratio_rows_32_{key}": times[32] / times[1]}
        found[f"capture_ms_{key}"] = statistics.median(captures)
    return found


def waits_of_a_step(model: GraphedTransformer) -> float:
    """Return how often the processor waits for the GPU in a greedy step and its commit, by torch's profiler."""
    cache = filled_cache(model, 1024)
    tokens, parents, steps = np.arange(8, dtype=np.int32), np.array([-1, 0, 0, 1, 2, 2, 4, 5], dtype=np.int32), 10

    def step() -> None:
        logits = model.score(tokens, parents, cache)
        logits.argmax(), logits.top(8), logits.log_sum(0)
        cache.commit([0, 2, 4])

    step()
    with torch.profiler.profile() as profile:
        for _ in range(steps):
            step()
    waits = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy")
    counts: dict[str, int] = {event.key: event.count for event in profile.key_averages()}
    print(", ".join(f"{counts.get(name, 0) / steps:.1f} x {name}" for name in waits) + " a step")
    return sum(counts.get(name, 0) for name in waits) / steps


def prefill_tokens_per_s(model: GraphedTransformer, device: str, count: int) -> float:
    """Return the speed of a prefill of an empty cache."""
    cache, slots = model.new_cache(count), np.arange(count, dtype=np.int32)
    return 1000 * count / milliseconds(lambda: model.prefill(slots, slots, cache, [count - 1]), device, 3)


def rearrange_ms(model: GraphedTransformer, device: str, past: int) -> float:
    """Return the time to move all keys of a past by one slot."""
    cache = filled_cache(model, past)
    sources = np.concatenate((np.zeros(1, dtype=np.int32), np.arange(past - 1, dtype=np.int32)))
    return milliseconds(lambda: cache.rearrange(sources), device, 3)


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


def generate_times(
    size: str, architecture: Architecture, device: str, dtype: torch.dtype, own_ms: float
) -> dict[str, object]:
    """Return the time that transformers takes for a token, and how often it is ours; nothing where it cannot."""
    theirs = generate_ms(architecture, device, dtype)
    torch.cuda.empty_cache()
    return {f"generate_ms_{size}": theirs, f"generate_ratio_{size}": theirs / own_ms} if theirs else {}


def options() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument(
        "--layers", type=int, default=2, help="number of layers of the 0.5B shape without a GPU (default: %(default)s)"
    )
    parser.add_argument(
        "--kernels", choices=("auto", "torch"), default="auto", help="those of the product, or torch's own operators"
    )
    parser.add_argument("--model", help="measure also what the formats cost this model, for example: default")
    return parser.parse_args()


def main() -> None:
    """Print tables, then one line of JSON."""
    arguments = options()
    started, on_gpu = time.perf_counter(), torch.cuda.is_available()
    device, dtype = ("cuda", torch.bfloat16) if on_gpu else ("cpu", torch.float32)
    if not on_gpu:
        print(
            f"This machine has no GPU. The steps run on the CPU without graphs, on {arguments.layers} layers of 0.5B."
        )
    shapes = SHAPES if on_gpu else {"0.5B": dataclasses.replace(SHAPES["0.5B"], layers=arguments.layers)}
    result: dict[str, object] = {
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "graphs": on_gpu,
        "kernels": "torch" if chosen_kernels(SHAPES["7B"], device, arguments.kernels) is PLAIN else "triton",
        **correctness(device, dtype, arguments.kernels),
    }
    if arguments.model:
        from benchmarks.gpu.real_model import losses

        result |= losses(arguments.model, DIVERGENCE_BOUNDS, dtype, device)
    bandwidth = bandwidth_gb_s(device)
    result["bandwidth_gb_s"] = bandwidth
    print(f"{'shape':>10}{'past':>7}{'floor':>9}" + "".join(f"{f'{rows} rows':>9}" for rows in ROWS) + "   ms")
    for size, architecture in shapes.items():
        kernels = chosen_kernels(architecture, device, arguments.kernels)
        for kind in FORMATS_TIMED if on_gpu else FORMATS_TIMED[:1]:
            weights = random_weights(architecture, dtype, device, kind)
            model = GraphedTransformer(architecture, weights, kernels=kernels)
            name = size if kind == "plain" else f"{size}_{kind}"
            result |= step_times(name, model, PASTS if on_gpu else PASTS[:1], device, bandwidth)
            if kind == "plain" and on_gpu:
                result[f"prefill_tokens_per_s_{size}"] = prefill_tokens_per_s(model, device, 8192)
                result[f"rearrange_ms_{size}"] = rearrange_ms(model, device, 8192)
                result[f"waits_of_a_step_{size}"] = waits_of_a_step(model)
            del model, weights
            if on_gpu:
                torch.cuda.empty_cache()
    for size, architecture in shapes.items() if on_gpu else ():
        if time.perf_counter() - started < COMPARED_S:
            result |= generate_times(
                size, architecture, device, dtype, float(str(result[f"ms_{size}_past_1024_rows_1"]))
            )
    result["seconds"] = time.perf_counter() - started
    print(json.dumps({key: round(value, 6) if isinstance(value, float) else value for key, value in result.items()}))


if __name__ == "__main__":
    main()
