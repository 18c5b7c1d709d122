"""`python -m benchmarks.instruct`: instructed edits with and without drafts, and against transformers in float32.

Each record is edited by the request that the editors' command sends. With and without drafts, one after the other on
one cached prompt, the model writes the edited code. One pass of transformers in float32 over the prompt and what was
drafted gives the token that its greedy decoding would have written at each position; up to the first other one, both
texts are the same. There, the gap is the lead of transformers' token over ours, in logits.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from benchmarks.data import read_records
from benchmarks.drafting.difference import recorded
from benchmarks.figures import percentile, ratio
from completion.backend import BACKENDS, Backend
from completion.cancellation import CancelToken
from completion.decoding.step_costs import make_drafters
from completion.engine import Engine, product_settings
from completion.instruct import edit_request
from completion.model.loading import load_model
from completion.model.store.gguf_source import with_safetensors
from completion.request import Statistics

TIE = 0.2
"""Largest gap of a difference that counts as a tie, in logits."""


@dataclass(frozen=True, slots=True)
class Result:
    """One edited record.

    Attributes:
        plain: Statistics without drafts.
        drafted: Statistics with drafts.
        lossless: Whether both runs wrote the same text.
        gap: Gap at the first token that transformers would not have written; None if there is none.
    """

    plain: Statistics
    drafted: Statistics
    lossless: bool
    gap: float | None


class Bench:
    """An engine and the reference for one model."""

    def __init__(self, model: str, backend: Backend, threads: int | None, max_tokens: int) -> None:
        loaded = load_model(model, backend=backend, threads=threads)
        self.facts = {"model": loaded.name, "device": loaded.device, "weights": type(loaded.model).__name__}
        self._max_tokens = max_tokens
        settings = product_settings()
        self._drafters = make_drafters(loaded, settings.max_nodes)
        self._engine = Engine(loaded, settings, self._drafters)
        self._reference = AutoModelForCausalLM.from_pretrained(
            with_safetensors(loaded.folder), dtype=torch.float32
        ).eval()

    def measure(self, record: dict[str, Any], *, drafted_first: bool) -> Result:
        """Edit one record with and without drafts, and compare the drafted turn with transformers'."""
        request = edit_request(record["before"], record["instruction"], record["language"])
        request = replace(request, max_tokens=self._max_tokens)
        self._engine.prepare(request, CancelToken())
        runs = {
            drafting: recorded(self._engine, self._drafters, request, drafting=drafting)
            for drafting in (drafted_first, not drafted_first)
        }
        (_, _, plain), (prompt, turn, drafted) = runs[False], runs[True]
        assert plain.statistics is not None
        assert drafted.statistics is not None
        texts = [[suggestion.text for suggestion in event.suggestions] for event in (plain, drafted)]
        lossless = texts[0] == texts[1]
        return Result(plain.statistics, drafted.statistics, lossless, self._gap(prompt, turn[: self._max_tokens]))

    def _gap(self, prompt: Sequence[int], turn: Sequence[int]) -> float | None:
        """Return the gap at the first token of a turn that transformers would not have written, None if none is."""
        with torch.inference_mode():
            # [turn, vocabulary]: row i has the logits of token i
            logits = self._reference(torch.tensor([[*prompt, *turn[:-1]]])).logits[0, len(prompt) - 1 :]
        leads = logits.max(dim=1).values - logits[torch.arange(len(turn)), torch.tensor(turn)]
        return next((float(lead) for lead in leads if lead > 0), None)


def speedup(result: Result) -> float | None:
    """Return the decode time without drafts over that with drafts, None if nothing was decoded."""
    return ratio(result.plain.decode_ms, result.drafted.decode_ms)


def summary(results: Sequence[Result]) -> dict[str, float | None]:
    """Return the figures of the last line by name, None where there is no data."""
    gaps = [result.gap for result in results if result.gap is not None]
    plain_s = sum(result.plain.decode_ms for result in results) / 1e3
    drafted_s = sum(result.drafted.decode_ms for result in results) / 1e3
    tokens = sum(result.plain.generated_tokens for result in results)  # the last drafted step may pass the end
    return {
        "records": len(results),
        "identical": len(results) - len(gaps),
        "ties": sum(gap < TIE for gap in gaps),
        "differences": sum(gap >= TIE for gap in gaps),
        "largest_gap": max(gaps, default=0.0),
        "drafts_change_nothing": sum(result.lossless for result in results),
        "drafted_speedup": ratio(plain_s, drafted_s),
        "median_speedup": percentile([one for each in results if (one := speedup(each)) is not None], 0.5),
        "tokens_per_step": ratio(tokens, sum(result.drafted.steps for result in results)),
        "edit_tokens_per_second": ratio(tokens, drafted_s),
    }


def main() -> None:
    """Print a line for each record, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instruct", description=__doc__)
    parser.add_argument("--records", type=int, default=60, help="number of records (default: %(default)s)")
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--model", default="default", help="model that is measured (default: %(default)s)")
    parser.add_argument(
        "--backend", default="auto", choices=BACKENDS, help="implementation that runs the model (default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, help="threads of the model; the engine chooses if it is not given")
    parser.add_argument("--max-tokens", type=int, default=400, help="longest turn (default: %(default)s)")
    arguments = parser.parse_args()
    bench = Bench(arguments.model, arguments.backend, arguments.threads, arguments.max_tokens)
    results: list[Result] = []
    for number, record in enumerate(read_records("open_editeval.jsonl.gz", arguments.data_dir)[: arguments.records]):
        result = bench.measure(record, drafted_first=number % 2 == 1)
        results.append(result)
        plain, drafted = result.plain, result.drafted
        gap = "" if result.gap is None else f"  gap {result.gap:.3f}"
        changed = "" if result.lossless else "  CHANGED BY DRAFTS"
        print(
            f"{record['id']:14}{plain.generated_tokens:5} tokens{drafted.steps:5} steps"
            f"{speedup(result) or 0.0:7.2f}x{gap}{changed}",
            flush=True,
        )
    print(json.dumps({"benchmark": "instruct", **summary(results), **bench.facts}))


if __name__ == "__main__":
    main()
