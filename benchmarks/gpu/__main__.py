"""`python -m benchmarks.gpu`: correctness of the GPU path, and the speed of its steps relative to the memory bandwidth.

It needs only torch, numpy and safetensors and downloads nothing. The weights are random, in the shapes of the coders of
0.5B, 1.5B and 7B parameters. It scores trees on a small model and compares them with the plain float32 decoder on the
CPU. Then it times steps of 1 to 64 rows on 1,024 and 8,192 tokens of past, and compares them with the time that reading
the weights and the cache takes, and with `generate` of transformers where that is installed. Without a GPU the same
code runs without graphs on a few layers of the smallest shape. The last line is JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from completion.model.architecture import Architecture, RotaryScaling
from completion.model.causal_model import CausalModel
from completion.model.dense.cuda_graphs import GraphedTransformer
from completion.model.dense.dense_transformer import DenseTransformer
from completion.model.dense.kv_cache import TorchCache
from completion.model.dense.weights import LayerWeights, Linear, Norm, Weights
from drafting.arrays import IntArray

ROWS = (1, 2, 4, 8, 16, 32, 64)
PASTS = (1024, 8192)
_ROTARY = RotaryScaling("default", 1_000_000.0, {})


def coder(layers: int, hidden: int, heads: int, kv_heads: int, intermediate: int, head_dim: int) -> Architecture:
    """Return a shape of Qwen2.5-Coder."""
    return Architecture(
        family="qwen2",
        hidden_size=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate_size=intermediate,
        vocabulary_size=151_936,
        max_positions=32_768,
        norm_epsilon=1e-6,
        tied_head=False,
        attention_scale=head_dim**-0.5,
        rotary=_ROTARY,
    )


SHAPES = {
    "0.5B": coder(24, 896, 14, 2, 4864, 64),
    "1.5B": coder(28, 1536, 12, 2, 8960, 128),
    "7B": coder(28, 3584, 28, 4, 18944, 128),
}


def random_weights(architecture: Architecture, dtype: torch.dtype, device: str) -> Weights:
    """Return random weights of a realistic scale, drawn on the device."""
    generator = torch.Generator(device).manual_seed(0)

    def matrix(out: int, width: int) -> torch.Tensor:
        drawn = torch.randn(out, width, generator=generator, device=device, dtype=dtype)
        return drawn.mul_(1 / math.sqrt(width))

    def linear(out: int, width: int, *, bias: bool = False) -> Linear:
        return Linear(matrix(out, width), matrix(1, out)[0] if bias else None)

    hidden, attention = architecture.hidden_size, architecture.heads * architecture.head_dim
    qkv = attention + 2 * architecture.kv_heads * architecture.head_dim
    norm = Norm(torch.ones(hidden, device=device, dtype=dtype))
    layers = tuple(
        LayerWeights(
            norm,
            linear(qkv, hidden, bias=True),
            linear(hidden, attention),
            norm,
            linear(2 * architecture.intermediate_size, hidden),
            linear(hidden, architecture.intermediate_size),
        )
        for _ in range(architecture.layers)
    )
    embeddings = matrix(architecture.vocabulary_size, hidden)
    return Weights(embeddings, layers, norm, matrix(architecture.vocabulary_size, hidden))


def moved(weights: Weights, dtype: torch.dtype, device: str) -> Weights:
    """Return the weights with another type, on another device."""

    def convert(value: object) -> object:
        if isinstance(value, torch.Tensor):
            return value.to(device, dtype)
        if isinstance(value, tuple):
            return tuple(convert(item) for item in value)
        if isinstance(value, Linear | Norm | LayerWeights | Weights):
            names = [field.name for field in dataclasses.fields(value)]
            return type(value)(**{name: convert(getattr(value, name)) for name in names})  # type: ignore[arg-type]
        return value

    converted = convert(weights)
    if not isinstance(converted, Weights):
        raise TypeError(f"The converted weights are a {type(converted).__name__}; this is a bug of the benchmark.")
    return converted


def random_tree(count: int, rng: np.random.Generator) -> IntArray:
    """Return the parents of a tree whose first half is a chain."""
    return np.array([i - 1 if i < count // 2 else rng.integers(-1, i) for i in range(count)], dtype=np.int32)


def correctness(device: str, dtype: torch.dtype) -> dict[str, float | bool]:
    """Compare fixed-shape steps of trees on the device with plain float32 on the CPU, on a small model."""
    architecture = dataclasses.replace(coder(4, 256, 4, 2, 704, 64), vocabulary_size=2048, max_positions=4096)
    weights = random_weights(architecture, torch.float32, "cpu")
    models: list[CausalModel] = [
        DenseTransformer(architecture, weights),
        GraphedTransformer(architecture, moved(weights, dtype, device)),
    ]
    rng, largest, agreed, rows_seen = np.random.default_rng(0), 0.0, 0, 0
    caches = [model.new_cache(2200) for model in models]
    past = rng.integers(0, 2048, 1500).astype(np.int32)
    for model, cache in zip(models, caches, strict=True):
        model.prefill(past, np.arange(1500, dtype=np.int32), cache)
    for rows in (*ROWS, 3, 17, 50):
        tokens, parents = rng.integers(0, 2048, rows).astype(np.int32), random_tree(rows, rng)
        expected, found = (model.score(tokens, parents, cache) for model, cache in zip(models, caches, strict=True))
        for row in range(rows):
            largest = float(np.maximum(largest, np.abs(expected.row(row) - found.row(row)).max()))  # keeps a NaN
        agreed, rows_seen = agreed + int((expected.argmax() == found.argmax()).sum()), rows_seen + rows
        path = list(range(max(1, rows // 2)))
        for cache in caches:
            cache.commit(path)
    bound = 1e-3 if dtype == torch.float32 else 0.25  # logits have a standard deviation of about 1
    return {
        "correct": largest < bound and agreed >= 0.95 * rows_seen,
        "max_logit_difference": largest,
        "argmax_agreement": agreed / rows_seen,
    }


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


def floor_ms(architecture: Architecture, weights: Weights, past: int, bandwidth: float) -> float:
    """Return the time to read all weights of a step and the keys and values of the past once."""
    element = weights.head.element_size()
    matrices = sum(
        linear.weight.numel()
        for layer in weights.layers
        for linear in (layer.qkv, layer.attention_out, layer.up, layer.down)
    )
    cached = 2 * architecture.layers * architecture.kv_heads * architecture.head_dim * past
    return (matrices + weights.head.numel() + cached) * element / 1e6 / bandwidth


def filled_cache(model: GraphedTransformer, past: int) -> TorchCache:
    """Return a cache with a random past. The time of a step does not depend on the values."""
    cache = model.new_cache(past + 128)
    cache.reserve(past + 128)
    for store in (cache.keys, cache.values):
        store.normal_()
    cache.length = past
    return cache


def _step(model: GraphedTransformer, tokens: IntArray, parents: IntArray, cache: TorchCache) -> IntArray:
    return model.score(tokens, parents, cache).argmax()


def step_times(
    name: str, architecture: Architecture, pasts: tuple[int, ...], device: str, dtype: torch.dtype, bandwidth: float
) -> dict[str, float]:
    """Print a line for each past. Return times, floor over time at one row, and the cost of 32 rows over one."""
    weights = random_weights(architecture, dtype, device)
    found: dict[str, float] = {}
    model = GraphedTransformer(architecture, weights)
    for past in pasts:
        cache = filled_cache(model, past)
        times = {}
        for rows in ROWS:
            tokens, parents = np.arange(rows, dtype=np.int32), random_tree(rows, np.random.default_rng(rows))
            step = partial(_step, model, tokens, parents, cache)
            times[rows] = milliseconds(step, device, 10 if device == "cuda" else 3)
        floor = floor_ms(architecture, weights, past, bandwidth)
        print(f"{name:>6}{past:>7}{floor:>9.2f}" + "".join(f"{times[rows]:>9.2f}" for rows in ROWS))
        key = f"{name}_past_{past}"
        found |= {f"ms_{key}_rows_{rows}": ms for rows, ms in times.items()}
        found |= {f"floor_share_{key}": floor / times[1], f"ratio_32_rows_{key}": times[32] / times[1]}
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
        options = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False}
        return milliseconds(lambda: module.generate(prompt, **options), device, 2)

    return (run(24) - run(8)) / 16


def main() -> None:
    """Print tables, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--layers", type=int, default=2, help="number of layers of the 0.5B shape without a GPU (default: %(default)s)"
    )
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
    bandwidth = bandwidth_gb_s(device)
    result["bandwidth_gb_s"] = bandwidth
    print(f"{'shape':>6}{'past':>7}{'floor':>9}" + "".join(f"{f'{rows} rows':>9}" for rows in ROWS) + "   ms")
    for name, architecture in shapes.items():
        result |= step_times(name, architecture, PASTS if on_gpu else PASTS[:1], device, dtype, bandwidth)
        if on_gpu:
            result[f"generate_ms_{name}"] = generate_ms(architecture, device, dtype)
            torch.cuda.empty_cache()
    print(json.dumps({key: round(value, 4) if isinstance(value, float) else value for key, value in result.items()}))


if __name__ == "__main__":
    main()
