"""`python -m benchmarks.fidelity`: accuracy of the forward passes on real source code against transformers in float32.

It prints the negative log-likelihood, the Kullback–Leibler divergence and the agreement of the next token for each
forward pass in four languages. Then it compares the logits of rows that are scored alone, in chains and in a tree, and
those of a cache that is rounded to 8 bits. The last line is JSON; keys that start with q4_ are of the blocks of the
GGUF file, those that start with rounded_ of float weights that are rounded to blocks here (`permuted`), those that
start with kv8_ compare the rounded cache with the one in bfloat16 on the file's blocks, the others are of int8.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from benchmarks.data import read_records
from benchmarks.edits.__main__ import drift_ratio
from benchmarks.fidelity.permuted import write_permuted
from benchmarks.fidelity.tally import LogProbabilities, Tally, Tokens, normalised
from completion.model.causal_model import CausalModel
from completion.model.int8.packed_weights import load_packed
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.int8.worker_threads import usable_threads
from completion.model.store.gguf_source import with_safetensors
from completion.model.store.model_store import prepare
from completion.model.tokenizer import CodeTokenizer
from completion.model.transformer import Backend, load_transformer

REFERENCE = "transformers fp32"
LANGUAGES = ("python", "typescript", "rust", "java")
BATCHES = (2, 8, 16, 64)
DRIFT_TOKENS = 192
"""Length of the texts that are edited a thousand times."""
ROUNDED_EVERY = 64
"""Number of tokens after which the cache is rounded: earlier ones are so several times."""
ROUNDED = "rounded"
Run = Callable[[Tokens], LogProbabilities]


def windows(argument: str | None, language: str, count: int, length: int) -> list[Tokens]:
    """Return the first `length` tokens of `count` different real files.

    Raises:
        SystemExit: There are fewer files of that length.
    """
    found = list(islice(_long_texts(argument, language, length), count))
    if len(found) < count:
        raise SystemExit(
            f"There are {len(found)} files of {length} tokens in {language}. Pass smaller --windows or --length."
        )
    return found


def _long_texts(argument: str | None, language: str, length: int) -> Iterator[Tokens]:
    tokenizer = CodeTokenizer.from_folder(prepare("default").folder)
    for record in read_records("open_cursor_positions.jsonl.gz", argument):
        if record["language"] == language:
            ids = tokenizer.encode(record["prefix"] + record["reference"] + record["suffix"])[:length]
            if len(ids) == length:
                yield np.array(ids, dtype=np.int32)


def own_path(model: CausalModel) -> Run:
    """Return a path that runs a model of draftline."""

    def run(window: Tokens) -> LogProbabilities:
        slots = np.arange(len(window), dtype=np.int32)
        logits = model.prefill(window, slots, model.new_cache(len(window)), range(len(window)))
        return normalised(np.stack([logits.row(index) for index in range(len(window))]))

    return run


def reference_path() -> Run:
    """Return a path that runs transformers in float32."""
    import torch
    from transformers import AutoModelForCausalLM

    module = AutoModelForCausalLM.from_pretrained(
        with_safetensors(prepare("default").folder), dtype=torch.float32
    ).eval()

    def run(window: Tokens) -> LogProbabilities:
        with torch.inference_mode():
            return normalised(module(torch.from_numpy(window.astype(np.int64))[None]).logits[0].numpy())

    return run


def compare(paths: dict[str, Run], texts: dict[str, list[Tokens]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return means by path and language. The first path is the reference."""
    tallies = {name: {language: Tally() for language in texts} for name in paths}
    for language, some in texts.items():
        for window in some:
            reference = next(iter(paths.values()))(window)
            for name, path in paths.items():
                ours = reference if name == next(iter(paths)) else path(window)
                tallies[name][language].add(window, ours, reference)
    return {name: {language: tally.means() for language, tally in found.items()} for name, found in tallies.items()}


def figures(found: dict[str, dict[str, float]], exact: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the figures of a path by key, from its means and those of the reference by language."""
    result: dict[str, float] = {}
    for language, means in found.items():
        result[f"nll_excess_{language}"] = means["nll"] - exact[language]["nll"]
        result[f"agreement_{language}"] = means["agreement"]
        result[f"kl_{language}"] = means["kl"]
    return result | {"worst_nll_excess": max(result[f"nll_excess_{language}"] for language in found)}


def row_independence(model: CausalModel, window: Tokens) -> dict[str, float | bool]:
    """Compare rows of chains with single steps, and the nodes of a tree of interleaved paths with the same steps."""
    past, ids = window[:-64], window[-64:]
    cache = model.new_cache(len(window))
    model.prefill(past, np.arange(len(past), dtype=np.int32), cache)
    alone = _single_steps(model, past, ids)
    argmax_equal, largest = True, 0.0
    for count in BATCHES:
        logits = model.score(ids[:count], np.arange(-1, count - 1, dtype=np.int32), cache)
        for row in range(count):
            argmax_equal &= int(logits.row(row).argmax()) == int(alone[row].argmax())
            largest = max(largest, float(np.abs(logits.row(row) - alone[row]).max()))
    twice = np.repeat(ids[:32], 2)  # two copies of a chain, interleaved node by node
    tree = model.score(twice, np.maximum(np.arange(64, dtype=np.int32) - 2, -1), cache)
    tree_largest = max(float(np.abs(tree.row(row) - alone[row // 2]).max()) for row in range(64))
    tree_equal = all(int(tree.row(row).argmax()) == int(alone[row // 2].argmax()) for row in range(64))
    return {
        "row_independence": argmax_equal and tree_equal,
        "row_max_logit_difference": largest,
        "tree_max_logit_difference": tree_largest,
    }


def rounded_path(model: QuantizedTransformer) -> Run:
    """Return a path on which each part of a text sees those before it through a cache that was rounded."""

    def run(window: Tokens) -> LogProbabilities:
        cache, rows = model.new_cache(len(window)), []
        for start in range(0, len(window), ROUNDED_EVERY):
            slots = np.arange(start, min(start + ROUNDED_EVERY, len(window)), dtype=np.int32)
            logits = model.prefill(window[slots], slots, cache, range(len(slots)))
            rows += [logits.row(row).copy() for row in range(len(slots))]
            cache.compress()
        return normalised(np.stack(rows))

    return run


def cache_in_8_bits(model: QuantizedTransformer, texts: dict[str, list[Tokens]]) -> dict[str, float]:
    """Compare a cache that is rounded to 8 bits with the one in bfloat16."""
    exact, rounded = Tally(), Tally()
    for window in chain.from_iterable(texts.values()):
        own = own_path(model)(window)
        exact.add(window, own, own)
        rounded.add(window, rounded_path(model)(window), own)
    found = rounded.means()
    return {
        "kv8_nll_excess": found["nll"] - exact.means()["nll"],
        "kv8_kl": found["kl"],
        "kv8_first_token_agreement": found["agreement"],
        "drift_ratio": drift_ratio(
            model, [some[0][:DRIFT_TOKENS].tolist() for some in texts.values()], compresses=True
        ),
    }


def _single_steps(model: CausalModel, past: Tokens, ids: Tokens) -> npt.NDArray[np.float32]:
    cache = model.new_cache(len(past) + len(ids))
    model.prefill(past, np.arange(len(past), dtype=np.int32), cache)
    rows = []
    for token in ids:
        rows.append(model.score(np.array([token]), np.array([-1], dtype=np.int32), cache).row(0).copy())
        cache.commit([0])
    return np.stack(rows)


def main() -> None:
    """Print a table, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument(
        "--windows", type=int, default=4, help="number of files of each language (default: %(default)s)"
    )
    parser.add_argument("--length", type=int, default=512, help="number of tokens of each file (default: %(default)s)")
    arguments = parser.parse_args()
    texts = {
        language: windows(arguments.data_dir, language, arguments.windows, arguments.length) for language in LANGUAGES
    }
    backends: tuple[Backend, ...] = ("bf16", "int8", "q4")
    models = {str(backend): load_transformer(prepare("default").folder, backend) for backend in backends}
    with TemporaryDirectory() as scratch:
        permuted = write_permuted(with_safetensors(prepare("default").folder), Path(scratch) / "permuted")
        models[ROUNDED] = QuantizedTransformer(load_packed(permuted, Path(scratch), "q4"), usable_threads())
    found = compare({REFERENCE: reference_path()} | {name: own_path(model) for name, model in models.items()}, texts)
    print(f"{'path':>18}{'language':>12}{'NLL':>10}{'KL':>10}{'agreement':>11}")
    for path, by_language in found.items():
        for language, means in by_language.items():
            print(f"{path:>18}{language:>12}{means['nll']:>10.4f}{means['kl']:>10.5f}{means['agreement']:>11.4f}")
    result: dict[str, float | bool] = {}
    prefixes = {"int8": "", "q4": "q4_", ROUNDED: "rounded_"}
    for path, prefix in prefixes.items():
        result |= {f"{prefix}{key}": value for key, value in figures(found[path], found[REFERENCE]).items()}
        independence = row_independence(models[path], texts["python"][0])
        result |= {f"{prefix}{key}": value for key, value in independence.items()}
    if isinstance(blocks := models["q4"], QuantizedTransformer):
        result |= cache_in_8_bits(blocks, texts)
    print(json.dumps({key: value if isinstance(value, bool) else round(value, 5) for key, value in result.items()}))


if __name__ == "__main__":
    main()
