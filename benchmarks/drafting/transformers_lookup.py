"""The same completions by the prompt lookup of transformers, on the same weights."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import torch
from transformers import AutoModelForCausalLM

from benchmarks.figures import percentile
from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.model.store.gguf_source import with_safetensors
from completion.model.store.model_store import prepare
from completion.request import CompletionRequest
from drafting.session import Drafters, DraftingSession

LOOKUP_TOKENS = 10
"""Usual `prompt_lookup_num_tokens` of transformers."""


class TheirPromptLookup:
    """`generate` of transformers with `prompt_lookup_num_tokens`, in bfloat16."""

    def __init__(self, model: str, threads: int | None, device: str = "cpu") -> None:
        """Load the weights a second time, on a device of torch."""
        if threads is not None:
            torch.set_num_threads(threads)
        folder = with_safetensors(prepare(model).folder)
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval().to(device)

    def ratio(self, engine: Engine, drafters: Drafters, requests: Sequence[CompletionRequest]) -> float | None:
        """Return the median of (their time / our time) for completions of equal length, prompts not cached.

        Requests that are answered with nothing are left out. It is None if all are.
        """
        self._seconds([1, 2, 3], 2)
        ratios = (self._ratio_of(engine, drafters, one) for one in requests)
        return percentile([ratio for ratio in ratios if ratio is not None], 0.5)

    def _ratio_of(self, engine: Engine, drafters: Drafters, request: CompletionRequest) -> float | None:
        prompts: list[Sequence[int]] = []
        make = drafters.session

        def noted(
            prompt: Sequence[int], workspace: str = "", tail: Sequence[int] = (), *, single_line: bool = False
        ) -> DraftingSession:
            prompts.append(prompt)
            return make(prompt, workspace, tail, single_line=single_line)

        drafters.session = noted  # type: ignore[method-assign]
        asked = replace(request, document="comparison " + request.document)
        try:
            ours, _ = self._ours(engine, asked)
        finally:
            drafters.session = make  # type: ignore[method-assign]
        _, tokens = self._ours(engine, replace(asked, drafting=False))  # drafts may add some after the text's end
        return self._seconds(prompts[-1], tokens) / ours if tokens else None

    @staticmethod
    def _ours(engine: Engine, request: CompletionRequest) -> tuple[float, int]:
        """Return the seconds and generated tokens of a request."""
        started = time.perf_counter()
        *_, last = engine.complete(request, CancelToken())
        seconds = time.perf_counter() - started
        assert last.statistics is not None
        return seconds, last.statistics.generated_tokens

    def _seconds(self, prompt: Sequence[int], tokens: int) -> float:
        ids = torch.tensor([list(prompt)], device=self._model.device)
        started = time.perf_counter()
        with torch.inference_mode():
            self._model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=tokens,
                min_new_tokens=tokens,
                do_sample=False,
                prompt_lookup_num_tokens=LOOKUP_TOKENS,
                pad_token_id=0,
            )
        return time.perf_counter() - started
